"""Every recorded log of a real vLLM: which of its lines matter, which phase it reached, and nothing else."""

from __future__ import annotations

import pytest

from tests.bootlog.logs import LOGS, read_log
from tests.cases.boots import ABOVE_NOTE

H200, CPU27, CPU32 = "0.24.0-h200", "0.27.1-cpu", "0.32.0-cpu"
NGRAM_ON_CPU = {"spec-async-off", "cpu-spec-omp"}
SERIOUS: dict[str, dict[str, int] | set[str]] = {
    f"{H200}/boot_fi_ngram.log": {"spec-async-off": 12, "cg-spec-piecewise": 34},
    f"{H200}/boot_fa_ngram.log": {"spec-async-off": 12},
    f"{H200}/boot_fa_ngram_pw.log": {"spec-async-off": 12},
    f"{H200}/boot_fa_off.log": {},
    f"{H200}/boot_fa_off_v1.log": {},
    f"{H200}/boot_fi_off.log": {},
    f"{H200}/boot_fi_off_v1.log": {},
    f"{H200}/boot_off.log": {},
    f"{H200}/boot_draft.log": {"spec-async-off": 14},
    f"{H200}/boot_flexdraft.log": {"spec-async-off": 14},
    f"{H200}/boot_ngram.log": {"spec-async-off": 12},
    f"{H200}/boot_fail_missing_flashinfer.log": {"core-fail": 23, "attn-fi-missing": 55},
    f"{CPU27}/boot_off.log": {},
    f"{CPU27}/boot_draft.log": {"spec-async-off": 14, "cpu-spec-omp": 35},
    f"{CPU32}/boot_apikey_pipe.log": {},
    f"{CPU32}/boot_draft_pipe.log": {"cpu-spec-omp": 38},
    f"{CPU32}/boot_draftw_pipe.log": {"cpu-spec-omp": 38},
    f"{CPU32}/boot_draftw2_pipe.log": {"cpu-spec-omp": 38},
    f"{CPU32}/boot_ngram_tty.log": NGRAM_ON_CPU,
    f"{CPU32}/boot_off_noconflict_pipe.log": {},
    f"{CPU32}/boot_off_noeager_pipe.log": {},
    f"{CPU32}/boot_off_pipe.log": {},
    f"{CPU32}/fail_attn_backend.log": {"attn-unknown": 53},
    f"{CPU32}/fail_badflag.log": {"argparse": 5},
    f"{CPU32}/fail_badmodel.log": {"hf-repoid": 52},
    f"{CPU32}/fail_maxlen.log": {"mem-maxlen-user": 54},
    f"{CPU32}/fail_moe_backend_bogus.log": {"argparse": 3},
    f"{CPU32}/fail_portinuse2.log": {"port-bind": 38},
    f"{CPU32}/fail_suffix.log": {"spec-suffix-missing": 57},
    f"{CPU32}/measure_off_18131.log": {},
    f"{CPU32}/measure_on_18132.log": NGRAM_ON_CPU,
    f"{CPU32}/runtime-crash-0.32.0-cpu.log": {*NGRAM_ON_CPU, "env-kernel", "core-fatal"},
    f"{CPU32}/sig_sigint_boot.log": {},
    f"{CPU32}/sig_sigint_boot_SIGIGN.log": {},
    f"{CPU32}/sig_sigint_serving.log": {},
    f"{CPU32}/sig_sigkill_parent.log": NGRAM_ON_CPU,
    f"{CPU32}/sig_sigterm_boot.log": {},
    f"{CPU32}/sig_sigterm_serving.log": {},
}


@pytest.mark.parametrize("name", SERIOUS)
def test_the_lines_that_matter_and_no_others(name: str) -> None:
    found = {f.id: f.line for f in read_log(name).findings if f.severity in ABOVE_NOTE}
    expected = SERIOUS[name]
    assert (set(found) if isinstance(expected, set) else found) == expected


@pytest.mark.parametrize("name", SERIOUS)
def test_whether_it_came_to_serve(name: str) -> None:
    file = name.split("/")[1]
    never = "fail" in file or file.startswith("sig_sigint_boot")
    assert read_log(name).ready is not never


def test_none_is_left_out() -> None:
    there = {f"{path.parent.name}/{path.name}" for path in LOGS.glob("0.*/*.log")}
    assert there == set(SERIOUS)


@pytest.mark.parametrize(
    ("name", "mode", "runner", "asynchronous"),
    [
        ("boot_fi_ngram", "PIECEWISE", "V1", False),
        ("boot_fa_ngram", "FULL_AND_PIECEWISE", "V1", False),
        ("boot_fa_ngram_pw", "PIECEWISE", "V1", False),
        ("boot_fa_off", "FULL_AND_PIECEWISE", "V2", True),
        ("boot_fi_off", "FULL_AND_PIECEWISE", "V2", True),
        ("boot_fi_off_v1", "FULL_AND_PIECEWISE", "V1", True),
        ("boot_draft", "FULL_AND_PIECEWISE", "V1", False),
    ],
)
def test_what_speculation_takes_with_it(name: str, mode: str, runner: str, asynchronous: bool) -> None:
    facts = read_log(f"{H200}/{name}.log").facts
    assert (facts["cudagraph_mode"], facts["model_runner"], facts["async_scheduling"]) == (
        mode,
        runner,
        asynchronous,
    )
