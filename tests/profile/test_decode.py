from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest

from sparktui.profile.decode import examine, load
from sparktui.profile.model import Expectation, Slo
from sparktui.profile.problems import ProfileError
from sparktui.profile.table import LOAD, MEASURE, PROFILE
from sparktui.schema.launch import LoadSpec, MeasureSpec, Roof
from tests.profile.make import errors, profile, write

EVERYTHING = """
    name: nemotron-lightning-30b
    about: Nemotron with its drafter
    runner: local
    vllm_bin: ~/vllm/bin/vllm
    vllm: 0.27.1
    model: nvidia/Nemotron
    port: 8001
    host: 0.0.0.0
    env: {VLLM_LOGGING_LEVEL: INFO, OMP_NUM_THREADS: 4, EMPTY: "", FLAG: true}
    env_file: secrets.env
    args: {moe-backend: marlin, gpu_memory_utilization: 0.90}
    speculative: {model: /models/dspark, num_speculative_tokens: 3}
    variants:
      k2: {speculative: {num_speculative_tokens: 2}}
    docker: {image: "vllm/vllm-openai@sha256:0", ipc: host, gpus: all, volumes: ["~/a:/b"]}
    start: [./start.sh]
    stop: [./stop.sh, --now]
    url: http://127.0.0.1:8000/
    expect: ["Using 'MARLIN' NvFp4 MoE backend", {when: spec, line: Using TRITON}]
    observe: {cudagraph_metrics: true}
    roof: {bandwidth_gb_s: 273, gb_per_step: 1.5}
    load: {workload: chat, input_tokens: 100, output_tokens: 50, temperature: 1.0, top_p: 0.95,
           chat_template_kwargs: {enable_thinking: false}, ignore_eos: false, seed: 7, url: "http://127.0.0.1:4000"}
    measure: {settle_s: 3, batch_s: 2, min_window_s: 10, max_window_s: 20.5, precision: 0.02, stall_s: 60}
    slo: {ttft_s: 2.0}
    memory_floor_gib: 4
    ready_timeout_s: 600
"""


def test_every_key_of_the_format_is_read(tmp_path: Path) -> None:
    made = profile(tmp_path, EVERYTHING)
    assert made.lines.keys() == PROFILE.keys()
    assert made.path == str(tmp_path / "spark.yaml")
    assert (made.name, made.runner, made.model) == ("nemotron-lightning-30b", "local", "nvidia/Nemotron")
    assert (made.port, made.host, made.vllm_bin, made.vllm) == (8001, "0.0.0.0", "~/vllm/bin/vllm", "0.27.1")
    assert made.env == {"VLLM_LOGGING_LEVEL": "INFO", "OMP_NUM_THREADS": "4", "EMPTY": "", "FLAG": "true"}
    assert made.env_file == "secrets.env"
    assert made.args == {"moe-backend": "marlin", "gpu-memory-utilization": "0.90"}
    assert made.speculative == {"model": "/models/dspark", "num_speculative_tokens": 3}
    assert made.variants["k2"].speculative == {"num_speculative_tokens": 2}
    assert made.docker["volumes"] == ("~/a:/b",)
    assert (made.start, made.stop) == (("./start.sh",), ("./stop.sh", "--now"))
    assert made.url == "http://127.0.0.1:8000"
    assert made.expect == (
        Expectation("Using 'MARLIN' NvFp4 MoE backend"),
        Expectation("Using TRITON", when="spec"),
    )
    assert made.observe == {"cudagraph-metrics": True}
    assert made.roof == Roof(273.0, 1.5)
    assert made.slo == Slo(2.0)
    assert (made.memory_floor_gib, made.ready_timeout_s) == (4.0, 600.0)


def test_load_and_measure_become_schema_values(tmp_path: Path) -> None:
    made = profile(tmp_path, EVERYTHING)
    assert made.load == LoadSpec(
        workload="chat",
        input_tokens=100,
        output_tokens=50,
        temperature=1.0,
        top_p=0.95,
        chat_template_kwargs={"enable_thinking": False},
        ignore_eos=False,
        seed=7,
        url="http://127.0.0.1:4000",
    )
    assert made.measure == MeasureSpec(3.0, 2.0, 10.0, 20.5, 0.02, 60.0)


def test_the_table_has_every_field_of_the_schema() -> None:
    assert list(LOAD) == [field.name for field in fields(LoadSpec)]
    assert list(MEASURE) == [field.name for field in fields(MeasureSpec)]


def test_a_model_alone_is_a_profile_named_after_its_file(tmp_path: Path) -> None:
    made = profile(tmp_path, "model: m")
    assert (made.name, made.runner, made.port, made.host) == ("spark", "local", 8000, "127.0.0.1")
    assert (made.load, made.measure, made.speculative) == (LoadSpec(), MeasureSpec(), None)


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("port: eighty", "2: port: expected an integer, got 'eighty'"),
        ('port: "80"', "2: port: expected an integer, got the text '80'"),
        ("port: 80.5", "2: port: expected an integer, got '80.5'"),
        ("port: 70000", "2: port: expected an integer from 1 to 65535, got '70000'"),
        ("port: 0", "2: port: expected an integer from 1 to 65535, got '0'"),
        ("port: {a: 1}", "2: port: expected an integer, got a mapping"),
        ("port:", "2: port: expected an integer, got nothing"),
        ("about: [a]", "2: about: expected text, got a list"),
        ("about: ~", "2: about: expected text, got nothing"),
        ("name: a b", "2: name: 'a b' is not a name: letters, digits, '.', '_' and '-', at most 100"),
        ("name: a:b", "2: name: 'a:b' is not a name: letters, digits, '.', '_' and '-', at most 100"),
        (
            "runner: dokcer",
            "2: runner: expected local, docker, command, attach or sim, got 'dokcer'; did you mean 'docker'?",
        ),
        ("hots: x", "2: unknown key 'hots'; did you mean 'host'?"),
        ("variant: {}", "2: unknown key 'variant'; did you mean 'variants'?"),
        ("args: [a]", "2: args: expected a mapping, got a list"),
        ("args: text", "2: args: expected a mapping, got 'text'"),
        ("start: ./run.sh", "2: start: expected a list, got './run.sh'"),
        ("start: []", "2: start: expected a list, got a list"),
        ("start: [a, [b]]", "2: start[1]: expected text, got a list"),
        ("url: localhost:8000", "2: url: expected a URL such as http://127.0.0.1:8000, got 'localhost:8000'"),
        ("url: http://h:99999", "2: url: expected a URL such as http://127.0.0.1:8000, got 'http://h:99999'"),
        ("url: http://u:p@h", "2: url: no user or password in a URL: a profile holds no secrets"),
        ("load: {ignore_eos: yes}", "2: load.ignore_eos: expected true or false, got 'yes'"),
        ("load: {input_tokens: 0}", "2: load.input_tokens: expected an integer of at least 1, got '0'"),
        ("load: {temperature: -1}", "2: load.temperature: expected a number of at least 0, got '-1'"),
        ("load: {temperature: hot}", "2: load.temperature: expected a number, got 'hot'"),
        ("load: {top_p: 1.5}", "2: load.top_p: expected a number above 0 and of at most 1, got '1.5'"),
        ("load: {temprature: 1}", "2: load: unknown key 'temprature'; did you mean 'temperature'?"),
        (
            "load: {chat_template_kwargs: {a: .inf}}",
            "2: load.chat_template_kwargs.a: JSON has no .inf; quote it if it is text",
        ),
        ("measure: {batch_s: 0}", "2: measure.batch_s: expected a number above 0, got '0'"),
        ("measure: {batch_s: .inf}", "2: measure.batch_s: expected a number, got '.inf'"),
        ("measure: {min_window_s: 300}", "2: measure: max_window_s is 240, less than min_window_s is 300"),
        ("roof: {bandwidth_gb_s: 273}", "2: roof.gb_per_step: is missing"),
        ("slo: {tpot: 1}", "2: slo: unknown key 'tpot'; known: ttft_s"),
        (
            "expect: [{when: spce, line: x}]",
            "2: expect[0].when: expected always, spec or off, got 'spce'; did you mean 'spec'?",
        ),
        ("expect: [{when: spec}]", "2: expect[0].line: is missing"),
        ("docker: {img: x}", "2: docker: unknown key 'img'; did you mean 'image'?"),
        ("memory_floor_gib: -1", "2: memory_floor_gib: expected a number of at least 0, got '-1'"),
        ("runner: attach", "2: url: is missing; runner attach needs it"),
        ("runner: command", "2: start: is missing; runner command needs it"),
        ("runner: docker", "2: docker: is missing; runner docker needs it"),
        (
            "variants: {on: {}}",
            "2: variants.on: off, on and base are made from the profile; choose another name",
        ),
        (
            "variants: {k2: {port: 1}}",
            "2: variants.k2: unknown key 'port'; "
            "known: args, docker, env, model, speculative, vllm, vllm_bin",
        ),
        (
            "variants: {k2: {speculative: on}}",
            "2: variants.k2.speculative: expected a mapping or off, got 'on'",
        ),
        ("variants: {k2: 3}", "2: variants.k2: expected a mapping, got '3'"),
        ("speculative: off", "2: speculative: expected a mapping, got 'off'"),
        ("speculative: {}", "2: speculative: is empty; leave it out when there is no speculation"),
        (
            "speculative: {num-speculative-tokens: 3}",
            "2: speculative: unknown key 'num-speculative-tokens'; did you mean 'num_speculative_tokens'?",
        ),
    ],
)
def test_a_wrong_value_says_what_and_where(tmp_path: Path, line: str, problem: str) -> None:
    assert errors(tmp_path, f"model: m\n{line}\n") == [problem]


@pytest.mark.parametrize(
    ("args", "problem"),
    [
        ("{port: 1}", "args.port: use the profile's own key 'port' instead"),
        ("{host: h}", "args.host: use the profile's own key 'host' instead"),
        (
            "{speculative_config: {}}",
            "args.speculative_config: use the profile's own key 'speculative' instead",
        ),
        ("{spec-tokens: 3}", "args.spec-tokens: use the profile's own key 'speculative' instead"),
        ("{model: m}", "args.model: use the profile's own key 'model' instead"),
        ("{--dtype: auto}", "args.--dtype: write flags without the leading dashes"),
        ("{a-b: 1, a_b: 2}", "args.a_b: --a-b is here twice"),
        ("{'a b': 1}", "args.a b: is not the name of a flag"),
        ("{no-x: false}", "args.no-x: is negated twice; write x: true"),
        ("{x: []}", "args.x: an empty list; leave the flag out or write null"),
        ("{x: [a, ~]}", "args.x[1]: expected text, got nothing"),
        (
            "{compilation-config.mode: 3}",
            "args.compilation-config.mode: nest it instead, as compilation-config: {mode: …} "
            "(vLLM drops one of two forms of a flag)",
        ),
    ],
)
def test_a_flag_that_would_go_wrong_is_refused(tmp_path: Path, args: str, problem: str) -> None:
    assert errors(tmp_path, f"model: m\nargs: {args}\n") == [f"2: {problem}"]


@pytest.mark.parametrize("flag", ["api-key", "api_key"])
@pytest.mark.parametrize("where", ["args: {%s: sk-1}", "variants: {v: {args: {%s: sk-1}}}"])
def test_an_api_key_in_args_is_refused(tmp_path: Path, flag: str, where: str) -> None:
    (found,) = errors(tmp_path, f"model: m\n{where % flag}\n")
    assert "a command line shows in ps" in found
    assert "VLLM_API_KEY in the environment or in env_file:" in found
    assert "sk-1" not in found


@pytest.mark.parametrize(
    "name", ["HF_TOKEN", "VLLM_API_KEY", "MY_SECRET", "DB_PASSWORD", "hf_token", "AWS_SECRET_ACCESS_KEY"]
)
@pytest.mark.parametrize("where", ["env: {%s: hunter2}", "variants: {v: {env: {%s: hunter2}}}"])
def test_a_secret_in_env_is_refused(tmp_path: Path, name: str, where: str) -> None:
    (found,) = errors(tmp_path, f"model: m\n{where % name}\n")
    assert "looks like a secret" in found
    assert f"set {name} in the environment or in env_file:" in found
    assert "hunter2" not in found


def test_names_that_only_resemble_secrets_pass(tmp_path: Path) -> None:
    made = profile(
        tmp_path, "model: m\nenv: {TOKENIZERS_PARALLELISM: false, MAX_TOKENS: 3}\nargs: {hf-token: true}"
    )
    assert made.env == {"TOKENIZERS_PARALLELISM": "false", "MAX_TOKENS": "3"}
    assert made.args == {"hf-token": True}


def test_all_problems_of_a_file_are_reported_in_its_order(tmp_path: Path) -> None:
    found = errors(tmp_path, "prot: 1\nport: x\nload:\n  seed: y\n  sed: 1\nenv: {A B: c}\n")
    assert found == [
        "1: unknown key 'prot'; did you mean 'port'?",
        "1: model: is missing; runner local needs it",
        "2: port: expected an integer, got 'x'",
        "4: load.seed: expected an integer, got 'y'",
        "5: load: unknown key 'sed'; did you mean 'seed'?",
        "6: env.A B: is not the name of an environment variable",
    ]


def test_problems_carry_their_place(tmp_path: Path) -> None:
    path = write(tmp_path, "model: m\nload: {seed: x}\n")
    with pytest.raises(ProfileError) as caught:
        load(path)
    (problem,) = caught.value.problems
    assert (problem.path, problem.line, problem.column) == (str(path), 2, 14)


def test_control_characters_of_a_file_never_reach_a_message(tmp_path: Path) -> None:
    (found,) = errors(tmp_path, 'model: m\n"x\\e[31m\\x9b": 1\n')
    assert found.isprintable()


@pytest.mark.parametrize("kind", ["missing", "folder"])
def test_what_is_no_file_is_an_error_that_names_it(tmp_path: Path, kind: str) -> None:
    path = tmp_path if kind == "folder" else tmp_path / "gone.yaml"
    with pytest.raises(ProfileError, match="is not a file" if kind == "folder" else "there is no such file"):
        load(path)


def test_a_broken_file_still_has_its_name(tmp_path: Path) -> None:
    entry = examine(write(tmp_path, "name: lightning\nport: x\n"))
    assert (entry.name, entry.profile) == ("lightning", None)
    assert entry.error is not None
    assert len(entry.error.problems) == 2


def test_attach_needs_no_model(tmp_path: Path) -> None:
    assert profile(tmp_path, "runner: attach\nurl: http://127.0.0.1:8000").model == ""
