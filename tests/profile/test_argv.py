from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from sparktui.profile.argv import human_int, launch_spec, plan
from sparktui.profile.decode import load
from sparktui.profile.problems import ProfileError
from sparktui.schema.codec import dumps, loads
from sparktui.schema.launch import LaunchSpec, LoadSpec, Plan
from tests.profile.make import HOME, profile

CHECKOUT = Path(__file__).parents[2]
NET = ("--host", "127.0.0.1", "--port", "8000")


def spec_of(folder: Path, text: str, variant: str = "base", *, exact: bool = False) -> LaunchSpec:
    return launch_spec(profile(folder, text), variant, exact=exact, environ=HOME)


@pytest.mark.parametrize(
    ("args", "tokens"),
    [
        ("{}", ()),
        ("{dtype: auto}", ("--dtype", "auto")),
        ("{gpu_memory_utilization: 0.90}", ("--gpu-memory-utilization", "0.90")),
        ("{x: 1e-3}", ("--x", "1e-3")),
        ("{max-model-len: 1k}", ("--max-model-len", "1k")),
        ("{x: off}", ("--x", "off")),
        ("{x: 0o17}", ("--x", "0o17")),
        ('{x: "true"}', ("--x", "true")),
        ('{x: ""}', ("--x", "")),
        ("{x: true}", ("--x",)),
        ("{x: false}", ("--no-x",)),
        ("{x: null}", ()),
        ("{x: }", ()),
        ("{b: 1, a: 2}", ("--b", "1", "--a", "2")),
        ("{served-model-name: [a, b]}", ("--served-model-name", "a", "b")),
        ("{x: [0.90, true, off]}", ("--x", "0.90", "true", "off")),
        (
            "{compilation-config: {cudagraph_mode: FULL, sizes: [1, 2.50], on: true, off: null, v: '3'}}",
            (
                "--compilation-config",
                '{"cudagraph_mode":"FULL","sizes":[1,2.5],"on":true,"off":null,"v":"3"}',
            ),
        ),
        ("{x: {a: {b: {c: no}}}}", ("--x", '{"a":{"b":{"c":"no"}}}')),
        ("{x: $(reboot)}", ("--x", "$(reboot)")),
        ("{x: 'é \" \\'}", ("--x", 'é " \\')),
        ("{x: {a: é}}", ("--x", '{"a":"é"}')),
    ],
)
def test_flags_become_these_tokens(tmp_path: Path, args: str, tokens: tuple[str, ...]) -> None:
    spec = spec_of(tmp_path, f"model: m\nargs: {args}\n")
    assert spec.argv == ("vllm", "serve", "m", *NET, *tokens)
    assert spec.added == ()


LIGHTNING = """
    name: lightning
    vllm: "0.27.1"
    model: nvidia/Lightning
    port: 8001
    host: 0.0.0.0
    env: {VLLM_LOGGING_LEVEL: INFO}
    env_file: lightning.env
    args: {moe-backend: marlin, max-num-seqs: 4}
    speculative: {model: /models/dspark, num_speculative_tokens: 3}
    observe: {cudagraph_metrics: true, x: y}
    load: {workload: code}
    measure: {precision: 0.02}
    ready_timeout_s: 60
"""


def test_a_whole_spec(tmp_path: Path) -> None:
    assert spec_of(tmp_path, LIGHTNING, "on") == LaunchSpec(
        profile="lightning",
        variant="on",
        runner="local",
        argv=(
            *("vllm", "serve", "nvidia/Lightning", "--host", "0.0.0.0", "--port", "8001"),
            *("--moe-backend", "marlin", "--max-num-seqs", "4"),
            *("--speculative-config", '{"model":"/models/dspark","num_speculative_tokens":3}'),
            *("--cudagraph-metrics", "--x", "y"),
        ),
        host="0.0.0.0",
        port=8001,
        model="nvidia/Lightning",
        speculating=True,
        env={"VLLM_LOGGING_LEVEL": "INFO"},
        env_file=str(tmp_path / "lightning.env"),
        added=(13, 14, 15),
        expected_version="0.27.1",
        max_num_seqs=4,
        ready_timeout_s=60.0,
    )


def test_off_lacks_the_speculative_config_and_nothing_else(tmp_path: Path) -> None:
    on, off = spec_of(tmp_path, LIGHTNING, "on"), spec_of(tmp_path, LIGHTNING, "off")
    at = on.argv.index("--speculative-config")
    assert off.argv == on.argv[:at] + on.argv[at + 2 :]
    assert [off.argv[i] for i in off.added] == ["--cudagraph-metrics", "--x", "y"]
    assert not off.speculating


def test_exact_leaves_out_what_sparktui_adds(tmp_path: Path) -> None:
    spec = spec_of(tmp_path, LIGHTNING, "off", exact=True)
    assert spec.argv[-4:] == ("--moe-backend", "marlin", "--max-num-seqs", "4")
    assert spec.added == ()


def test_a_flag_of_the_user_is_not_observed_over(tmp_path: Path) -> None:
    spec = spec_of(
        tmp_path, "model: m\nargs: {cudagraph-metrics: false}\nobserve: {cudagraph_metrics: true}\n"
    )
    assert spec.argv == ("vllm", "serve", "m", *NET, "--no-cudagraph-metrics")
    assert spec.added == ()


def test_the_stand_in_gets_the_same_flags(tmp_path: Path) -> None:
    text = (
        "runner: sim\nmodel: m\nvllm_bin: /x/vllm\nargs: {sim-boot-seconds: 2.5}\nspeculative: {model: d}\n"
    )
    spec = spec_of(tmp_path, text, "on")
    assert spec.runner == "sim"
    assert spec.argv == (
        *(sys.executable, "-P", "-m", "sparktui", "sim", "serve", "m", *NET),
        *("--sim-boot-seconds", "2.5", "--speculative-config", '{"model":"d"}'),
    )


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("~/v/bin/vllm", "/home/ada/v/bin/vllm"),
        ("/opt/vllm", "/opt/vllm"),
        ("vllm-nightly", "vllm-nightly"),
        ("venv/bin/vllm", "{folder}/venv/bin/vllm"),
    ],
)
def test_where_the_binary_is(tmp_path: Path, written: str, expected: str) -> None:
    spec = spec_of(tmp_path, f"model: m\nvllm_bin: {written}\n")
    assert spec.argv[0] == expected.format(folder=tmp_path)


@pytest.mark.parametrize(
    ("written", "expected"),
    [("~/models/a", "/home/ada/models/a"), ("~ada/models/a", "~ada/models/a"), ("org/a", "org/a")],
)
def test_home_expands_in_the_model(tmp_path: Path, written: str, expected: str) -> None:
    spec = spec_of(tmp_path, f"model: {written}\n")
    assert spec.argv[2] == expected
    assert spec.model == expected


def test_home_expands_in_env_file(tmp_path: Path) -> None:
    assert spec_of(tmp_path, "model: m\nenv_file: ~/.vllm.env\n").env_file == "/home/ada/.vllm.env"


@pytest.mark.parametrize("names", ["a", "[a, b]"])
def test_requests_name_the_first_served_name(tmp_path: Path, names: str) -> None:
    assert spec_of(tmp_path, f"model: m\nargs: {{served-model-name: {names}}}\n").model == "a"


@pytest.mark.parametrize(
    ("text", "number"),
    [("32", 32), ("1k", 1000), ("1K", 1024), ("1.5k", 1500), ("2M", 2 << 20), ("1.5K", None), ("auto", None)],
)
def test_max_num_seqs_reads_integers_as_vllm_does(tmp_path: Path, text: str, number: int | None) -> None:
    assert spec_of(tmp_path, f"model: m\nargs: {{max_num_seqs: {text}}}\n").max_num_seqs == number
    assert human_int(text) == number


@pytest.mark.parametrize(
    ("runner", "more"),
    [("docker", "docker: {image: i}"), ("command", "start: [./s]"), ("attach", "url: http://h")],
)
def test_a_runner_that_nothing_starts_yet_is_refused_here_only(
    tmp_path: Path, runner: str, more: str
) -> None:
    made = profile(tmp_path, f"model: m\nrunner: {runner}\n{more}\n")
    with pytest.raises(ProfileError, match=f"spark.yaml:2: runner {runner} is not supported yet"):
        launch_spec(made, "base", environ=HOME)


def test_a_plan_resolves_its_arms_in_order(tmp_path: Path) -> None:
    made = plan(profile(tmp_path, LIGHTNING), ["off", "on"], [1, 8], rounds=2, after="winner", environ=HOME)
    assert [arm.variant for arm in made.arms] == ["off", "on"]
    assert (made.loads, made.rounds, made.after) == ((1, 8), 2, "winner")
    assert (made.profile, made.profile_path) == ("lightning", str(tmp_path / "spark.yaml"))
    assert made.load == LoadSpec(workload="code")
    assert made.measure.precision == 0.02


@pytest.mark.parametrize(("variants", "loads", "rounds"), [([], [1], 1), (["on"], [0], 1), (["on"], [1], 0)])
def test_a_plan_of_nothing_is_refused(
    tmp_path: Path, variants: list[str], loads: list[int], rounds: int
) -> None:
    with pytest.raises(ProfileError):
        plan(profile(tmp_path, LIGHTNING), variants, loads, rounds=rounds, environ=HOME)


def test_spec_and_plan_survive_the_codec(tmp_path: Path) -> None:
    made = plan(profile(tmp_path, LIGHTNING), ["off", "on"], [1, 8], environ=HOME)
    assert loads(Plan, dumps(made)) == made
    assert loads(LaunchSpec, dumps(made.arms[1])) == made.arms[1]


def test_the_flags_of_cpu_tiny_are_flags_of_that_vllm() -> None:
    shipped = load(CHECKOUT / "profiles" / "cpu-tiny.yaml")
    spec = launch_spec(shipped, "on", environ=HOME)
    listed = (CHECKOUT / "tests" / "fixtures" / "help" / f"{spec.expected_version}-cpu.txt").read_text()
    known = set(re.findall(r"--[a-z0-9-]+", listed))
    flags = {token for token in spec.argv if token.startswith("--")}
    assert len(flags) == 9
    assert flags <= known
