"""What differs between two boots, and what does not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sparktui.bootlog.difference import difference
from sparktui.bootlog.explain import explain
from sparktui.schema.bootlog import BootDifference, BootReport
from sparktui.schema.codec import dumps, loads
from sparktui.schema.live import BootPhase, Finding
from tests.bootlog.logs import log_bytes
from tests.bootlog.test_boots import RECORDED

H200 = "0.24.0-h200"


def recorded(name: str) -> BootReport:
    return explain([log_bytes(f"{H200}/{name}.log")])


def made(*, ready: bool = True, seconds: float = 50.0, cause: str | None = None, **facts: Any) -> BootReport:
    """A report with these facts, ready after ``seconds``."""
    last = BootPhase("ready", seconds, 0.0) if ready else BootPhase("weights", seconds)
    stated = {"device": "cuda", "non_default_args": {}, **facts}
    return BootReport(1, "0.27.1", ready, (BootPhase("launch", 0.0, 1.0), last), (), stated, root_cause=cause)


def found(id_: str, severity: Any = "costs speed", line: int = 7) -> Finding:
    return Finding(id_, severity, line, "a line", "what it means")


def changed(a: BootReport, b: BootReport) -> dict[str, tuple[Any, Any]]:
    return {change.name: (change.a, change.b) for change in difference(a, b).facts}


def test_what_speculation_changed_in_five_lines() -> None:
    text = difference(recorded("boot_off"), recorded("boot_draft")).text
    assert len(text) <= 5
    assert text[:4] == (
        "speculation: off → draft_model /models/tiny-draft, k=3",
        "scheduler: async scheduling on → off · model runner V2 → V1 · max_num_scheduled_tokens 8192 → 8128",
        "graphs and kernels: captured PIECEWISE 19 → 49, FULL 11 → 33",
        "memory: weights 1.19 → 1.22 GiB (+2.5 %) · KV 657,888 → 634,480 tokens (−3.6 %)",
    )
    assert text[4].startswith("findings: only in B: costs speed spec-async-off (line 14)")


@pytest.mark.parametrize(("backend", "mode"), [("fi", "PIECEWISE"), ("fa", None)])
def test_what_ngram_costs_with_each_attention_backend(backend: str, mode: str | None) -> None:
    a, b = recorded(f"boot_{backend}_off"), recorded(f"boot_{backend}_ngram")
    changes, text = changed(a, b), difference(a, b).text
    assert len(text) <= 5
    assert changes["spec_method"] == ("off", "ngram")
    assert changes["async_scheduling"] == (True, False)
    assert changes["model_runner"] == ("V2", "V1")
    assert changes.get("cudagraph_mode", (None, None))[1] == mode
    assert any("cg-spec-piecewise (line 34)" in line for line in text) is (mode is not None)


@pytest.mark.parametrize("name", RECORDED)
def test_a_boot_does_not_differ_from_itself(name: str) -> None:
    report = explain([log_bytes(name)])
    assert difference(report, report) == BootDifference(1, (), (), (), ("no difference",))


def test_the_other_way_round() -> None:
    there = difference(recorded("boot_off"), recorded("boot_draft"))
    back = difference(recorded("boot_draft"), recorded("boot_off"))
    assert (back.only_a, back.only_b) == (there.only_b, there.only_a)
    assert [(c.name, c.b, c.a) for c in back.facts] == [(c.name, c.a, c.b) for c in there.facts]
    assert back.text[0] == "speculation: draft_model /models/tiny-draft, k=3 → off"


def test_a_fact_of_one_log_is_no_difference() -> None:
    assert changed(made(), made(attention_backend="FLASHINFER", flash_attention_version=3)) == {}


def test_the_drafters_facts_are_one_where_there_is_no_drafter() -> None:
    on = made(spec_method="eagle3", num_speculative_tokens=3, draft_capture=False)
    assert changed(made(), on)["draft_capture"] == (None, False)
    text = "speculation: off → eagle3, k=3, no CUDA graphs for the drafter"
    assert difference(made(), on).text == (text,)
    unknown = replace(made(), facts={})  # cut before its arguments
    assert changed(unknown, on) == {}


def test_another_k() -> None:
    a, b = (made(spec_method="mtp", num_speculative_tokens=k) for k in (3, 2))
    assert difference(a, b).text == ("speculation: k 3 → 2",)


@pytest.mark.parametrize(
    ("name", "a", "b", "differs"),
    [
        ("kv_cache_tokens", 657_888, 656_128, False),
        ("kv_cache_tokens", 657_888, 640_000, True),
        ("weights_gib", 17.05, 17.06, False),
        ("max_num_scheduled_tokens", 8192, 8128, True),
        ("init_engine_s", 30.0, 90.0, False),
        ("gpu_free_gib", 30.0, 90.0, False),
        ("moe_backend", "MARLIN", "TRITON", True),
        ("a_new_fact", 1, 2, True),
    ],
)
def test_what_varies_by_itself_is_no_difference(name: str, a: Any, b: Any, differs: bool) -> None:
    assert (name in changed(made(**{name: a}), made(**{name: b}))) is differs


@pytest.mark.parametrize(
    ("a", "b", "told"),
    [
        (50.0, 60.0, False),
        (50.0, 63.0, True),
        (63.0, 50.0, True),
        (8.0, 12.0, False),
        (1000.0, 1200.0, False),
    ],
)
def test_boot_seconds_only_when_they_tell(a: float, b: float, told: bool) -> None:
    text = difference(made(seconds=a), made(seconds=b)).text
    assert text == ((f"boot: ready after {a:.0f} s → {b:.0f} s",) if told else ("no difference",))


def test_a_failed_boot_is_said_first() -> None:
    failed = made(ready=False, cause="ValueError: no room", spec_method="mtp", num_speculative_tokens=2)
    found = difference(made(seconds=50.0), failed)
    assert found.text[0] == "boot: A got ready after 50 s; B failed: ValueError: no room"
    assert found.text[1].startswith("speculation: ")
    unfinished = difference(made(ready=False), made(seconds=9.0)).text
    assert unfinished == ("boot: A is not ready: its log ends in phase weights; B got ready after 9 s",)


def test_arguments() -> None:
    a = made(non_default_args={"enforce_eager": True, "max_num_seqs": 8, "port": 8000, "seed": 1})
    b = made(non_default_args={"max_num_seqs": 16, "port": 9000, "seed": 2, "moe_backend": "marlin"})
    a.facts["max_num_seqs"], b.facts["max_num_seqs"] = 8, 16
    assert difference(a, b).text == (
        "scheduler: max_num_seqs 8 → 16",
        "arguments: only in A enforce_eager=on · only in B moe_backend=marlin · seed 1 → 2",
    )


def test_findings_by_what_they_are() -> None:
    a = replace(made(), findings=(found("both"), found("gone", "note"), found("silent", "harmless")))
    b = replace(
        made(), findings=(found("both", line=99), found("derived", line=0), found("new", "costs memory"))
    )
    differing = difference(a, b)
    assert [finding.id for finding in differing.only_a] == ["gone"]
    assert differing.text == (
        "findings: only in A: 1 note; only in B: costs speed derived, costs memory new (line 7)",
    )


def test_it_travels_as_json() -> None:
    found = difference(recorded("boot_off"), recorded("boot_draft"))
    assert loads(BootDifference, dumps(found)).text == found.text
