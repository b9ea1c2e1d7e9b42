"""Machine-and-model files: the shipped ones, and what a broken one is told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sparktui.sim import arguments
from sparktui.sim.boot.facts import boot_facts
from sparktui.sim.cli import main
from sparktui.sim.model.curve import Curve
from sparktui.sim.model.modelfile import DEFAULT_MODEL, SECTIONS, ModelFileError, load, shipped
from sparktui.sim.model.truth import Truth
from sparktui.sim.release import RELEASES

SMALL = """\
name: mine
decode:
  off:
    step_ms: {1: 10, 4: 20}
  on:
    graphs: piecewise
    step_ms:
      2: {1: 15}
prefill: {tokens_per_s: 1000}
acceptance:
  measured:
    2: [0.8, 0.5]
kv_cache: {tokens: 32000}
"""


def problems(tmp_path: Path, text: str | bytes) -> list[str]:
    """What loading this file says, without its folder."""
    path = tmp_path / "mine.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(ModelFileError) as error:
        load(str(path))
    return str(error.value).replace(f"{tmp_path}/", "").splitlines()


def test_the_default_truth_is_the_shipped_file() -> None:
    assert load(DEFAULT_MODEL) == Truth()


@pytest.mark.parametrize("name", shipped())
def test_every_shipped_model_is_usable_and_has_its_files_name(name: str) -> None:
    truth = load(name)
    assert truth.name == name
    assert truth.about
    for k in (0, 1, 2, 3, 4, 8):
        for batch in (1, 5, 64, 300):
            assert truth.step_s(k, batch) > 0
        chain = truth.acceptance(k, 0.5)
        assert len(chain) == k
        assert list(chain) == sorted(chain, reverse=True)


def test_a_small_file_is_enough(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(SMALL)
    truth = load(str(path))
    assert truth.off_step_ms == Curve(((1, 10.0), (4, 20.0)))
    assert (truth.off_graphs, truth.on_graphs) == ("full", "piecewise")
    assert truth.step_s(0, 2) == pytest.approx(0.010 * 2**0.5)
    assert truth.decode_tok_s(2) == pytest.approx(2.3 / 0.015)
    assert truth.acceptance(2, 0.0) == truth.acceptance(2), "no greedy figures: temperature moves nothing"
    assert (truth.boot.attention_backend, truth.boot.mamba) == ("FLASH_ATTN", False)
    assert truth.boot.seconds == Truth().boot.seconds
    assert truth.step_s(2, graphs="full") == truth.step_s(2, graphs="none"), "nobody said what it costs"


def test_a_file_that_says_nothing_of_its_boot_keeps_the_speed_it_was_given(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(SMALL.replace("    graphs: piecewise\n", ""))
    for version in RELEASES:
        spec = '{"method": "eagle3", "model": "d", "num_speculative_tokens": 2}'
        given = arguments.parse(["m", "--sim-vllm", version, "--speculative-config", spec])
        assert boot_facts(given, load(str(path))).plan.mode == "full", version


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("name: mine\n", "", "mine.yaml:1: name: is missing"),
        ("prefill:", "prefil:", "mine.yaml:9: unknown key 'prefil'; did you mean 'prefill'?"),
        (
            "step_ms: {1: 10, 4: 20}",
            "step_s: {}",
            "mine.yaml:4: decode.off: unknown key 'step_s'; did you mean 'step_ms'?",
        ),
        ("{1: 15}", "{}", "mine.yaml:8: decode.on.step_ms.2: needs at least one entry"),
        ("{1: 15}", "15", "mine.yaml:8: decode.on.step_ms.2: expected a mapping, got '15'"),
        ("4: 20", "4: fast", "mine.yaml:4: decode.off.step_ms.4: expected a number, got 'fast'"),
        ("4: 20", "4: -1", "mine.yaml:4: decode.off.step_ms.4: expected a number above 0, got '-1'"),
        ("4: 20", "4: .nan", "mine.yaml:4: decode.off.step_ms.4: expected a number, got '.nan'"),
        ("4: 20", "4: '20'", "mine.yaml:4: decode.off.step_ms.4: expected a number, got the text '20'"),
        ("4: 20", "0: 20", "mine.yaml:4: decode.off.step_ms: key: expected an integer of at least 1"),
        ("4: 20", "4: 20, 04: 3", "mine.yaml:4: decode.off.step_ms: 4 is here twice"),
        ("4: 20", "1: 20", "mine.yaml:4: key '1' is here twice, first on line 4"),
        ("piecewise", "piecwise", "got 'piecwise'; did you mean 'piecewise'?"),
        ("[0.8, 0.5]", "[0.8]", "mine.yaml:12: acceptance.measured.2: expected 2 numbers"),
        ("[0.8, 0.5]", "[0.5, 0.8]", "mine.yaml:12: acceptance.measured.2: acceptance can't rise"),
        (
            "[0.8, 0.5]",
            "[80, 50]",
            "mine.yaml:12: acceptance.measured.2[0]: expected a number of at least 0 and of at most 1",
        ),
        ("[0.8, 0.5]", "0.8", "mine.yaml:12: acceptance.measured.2: expected a list, got '0.8'"),
        ("32000", "many", "mine.yaml:13: kv_cache.tokens: expected an integer, got 'many'"),
        ("32000", "1e999", "mine.yaml:13: kv_cache.tokens: expected an integer, got '1e999'"),
        (
            "32000}",
            "32000, prefix_cache: maybe}",
            "mine.yaml:13: kv_cache.prefix_cache: expected on or useless",
        ),
        ("32000}", "32000}\ngpu: {fan: 1}", "mine.yaml:14: gpu: unknown key 'fan'; known: busy_c, "),
        (
            "32000}",
            "32000}\nboot: {mamba: yes}",
            "mine.yaml:14: boot.mamba: expected true or false, got 'yes'",
        ),
        ("32000}", "32000}\n  x: [", "mine.yaml:14: "),
        ("{tokens: 32000}", "&a {tokens: *a}", "mine.yaml:13: aliases (*a) are not supported"),
        (
            "32000}",
            "32000}\nboot:\n  capability: sm_121",
            "mine.yaml:15: boot.capability: expected a compute capability such as 12.1, got 'sm_121'",
        ),
        ("name: mine", "name: [mine]", "mine.yaml:1: name: expected text, got a list"),
        ("name: mine", "[name]: mine", "mine.yaml:1: a key must be text"),
    ],
)
def test_a_broken_file_names_line_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    assert old in SMALL
    found = problems(tmp_path, SMALL.replace(old, new, 1))
    assert any(message in line for line in found), found


@pytest.mark.parametrize(
    ("section", "key"),
    [
        ("", "name"),
        ("", "about"),
        ("gpu", "name"),
        ("boot", "architecture"),
        ("boot", "attention_backend"),
        ("boot", "moe_backend"),
        ("boot", "quantization"),
    ],
)
@pytest.mark.parametrize(
    ("escape", "code"), [(r"\e[31m", "001B"), (r"\r", "000D"), (r"\n", "000A"), (r"\u202e", "202E")]
)
def test_text_that_is_printed_has_no_control_characters(
    tmp_path: Path, section: str, key: str, escape: str, code: str
) -> None:
    value = f'{key}: "red{escape}"'
    text = f"{SMALL}{section}: {{{value}}}\n" if section else SMALL.replace("name: mine\n", f"{value}\n")
    line = text.count("\n", 0, text.index(value)) + 1
    label = f"{section}.{key}" if section else key
    assert f"mine.yaml:{line}: {label}: character U+{code} is not allowed here" in problems(tmp_path, text)


def test_a_refused_key_is_not_also_a_repeated_one(tmp_path: Path) -> None:
    found = problems(tmp_path, SMALL.replace("{1: 10, 4: 20}", "{1: 10, 0: 20, x: 30}"))
    assert [line.split(", got")[0] for line in found] == [
        "mine.yaml:4: decode.off.step_ms: key: expected an integer of at least 1",
        "mine.yaml:4: decode.off.step_ms: key: expected an integer",
    ]


def test_all_problems_are_told_at_once_in_the_files_order(tmp_path: Path) -> None:
    text = SMALL.replace("4: 20", "4: x").replace("0.5]", "2]").replace("mine\n", "mine\nnmae: x\n", 1)
    lines = [int(line.split(":")[1]) for line in problems(tmp_path, text)]
    assert lines == sorted(lines)
    assert {2, 5, 13} <= set(lines)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "mine.yaml:1: the file is empty"),
        (b"- a\n- b\n", "mine.yaml:1: expected a mapping at the top"),
        (b"a: b\n\xff\n", "mine.yaml:2: not UTF-8: byte 0xff"),
        (b"a: b\nc: \x00\n", "mine.yaml:2: character U+0000 is not allowed"),
        (b"# " + b"x" * 300_000, "mine.yaml: is larger than 256 KiB"),
        (b"a: " + b"[" * 3000, "mine.yaml:1: nested more than 32 levels deep"),
        (b"a: 1\n---\nb: 2\n", "mine.yaml:2: "),
        (b"name: \x1b[31mred\n", "mine.yaml:"),
    ],
)
def test_what_is_no_model_file_at_all(tmp_path: Path, data: bytes, message: str) -> None:
    found = problems(tmp_path, data)
    assert any(line.startswith(message) for line in found), found
    assert all(line.isprintable() for line in found)


def test_a_missing_file_and_an_unknown_name(tmp_path: Path) -> None:
    with pytest.raises(ModelFileError, match=r"no\.yaml: can't be read: No such file or directory"):
        load(str(tmp_path / "no.yaml"))
    with pytest.raises(ModelFileError, match="there is no such model; did you mean 'nemotron-super-gb10'"):
        load("nemotron-supr-gb10")


def test_the_command_shows_a_model_or_what_is_wrong(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["model"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[4].split() == ["1", "77.5", "40.0", "41.0", "30.5"]
    path = tmp_path / "mine.yaml"
    path.write_text(SMALL.replace("15", "x"))
    assert main(["model", str(path)]) == 2
    assert f"{path}:8: decode.on.step_ms.2.1" in capsys.readouterr().err
    assert main(["model", "a", "b"]) == 2


def test_the_documented_file_is_usable(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs/sim.md").read_text("utf-8")
    example = page.split("## A whole file")[1].split("```yaml\n")[1].split("```")[0]
    path = tmp_path / "my-box.yaml"
    path.write_text(example)
    truth = load(str(path))
    assert truth.name == "my-box"
    assert truth.decode_tok_s(2) == pytest.approx(2.19 / 0.029)
    wrong = example.replace("graphs: full", "graph: full", 1).replace("[0.72, 0.47]", "[0.47, 0.72]")
    path.write_text(wrong)
    with pytest.raises(ModelFileError) as error:
        load(str(path))
    shown = page.split("## When a file is wrong")[1].split("```\n")[1].strip()
    assert str(error.value).replace(str(path), "my-box.yaml") == shown


def test_every_key_is_documented() -> None:
    page = (Path(__file__).parents[2] / "docs/sim.md").read_text("utf-8")
    keys = [key for section in SECTIONS.values() for key in section]
    assert len(keys) > 30
    assert [key for key in keys if not re.search(rf"[`.]{key}\b", page)] == []
    assert [name for name in shipped() if f"`{name}`" not in page] == []
