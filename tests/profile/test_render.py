from __future__ import annotations

import json
import subprocess

import pytest

from sparktui.profile.render import as_argv, as_shell, quote
from sparktui.schema.launch import LaunchSpec


def spec(*argv: str, added: tuple[int, ...] = (), env: dict[str, str] | None = None) -> LaunchSpec:
    return LaunchSpec("p", "on", "local", argv, "127.0.0.1", 8000, "m", True, env=env or {}, added=added)


def test_argv_is_a_json_list_with_a_token_a_line() -> None:
    text = as_argv(spec("vllm", "serve", "m", "--x", '{"a":1}', "two\nlines"))
    assert json.loads(text) == ["vllm", "serve", "m", "--x", '{"a":1}', "two\nlines"]
    assert len(text.splitlines()) == 8


def test_shell_has_environment_then_a_flag_a_line_and_names_what_was_added() -> None:
    made = spec(
        *("vllm", "serve", "m", "--names", "a", "b c", "--cfg", '{"a":1}', "--cudagraph-metrics"),
        added=(8,),
        env={"A": "1", "B": "x y"},
    )
    assert as_shell(made) == (
        "# added by sparktui: --cudagraph-metrics\n"
        "A=1 \\\n"
        "B='x y' \\\n"
        "vllm serve m \\\n"
        "  --names a 'b c' \\\n"
        "  --cfg '{\"a\":1}' \\\n"
        "  --cudagraph-metrics"
    )


def test_shell_gives_the_same_tokens_back() -> None:
    argv = ("printf", "%s\\0", "it's", "$(x) `y` \\", "a\nb", "\x1b[31m", "é\u202e!", "--", "--x", "", "*")
    ran = subprocess.run(["bash", "-c", as_shell(spec(*argv))], capture_output=True, check=True, env={})
    assert ran.stdout.decode().split("\0")[:-1] == list(argv[2:])


@pytest.mark.parametrize("token", ["\x1b[31m", "\x9b31m", "a\rb", "\u202eabc", "\x7f", "'\n\\"])
def test_nothing_a_terminal_acts_on_is_printed(token: str) -> None:
    made = spec("vllm", token, "--x", token, added=(2, 3), env={"A": token})
    assert quote(token).isprintable()
    assert all(line.isprintable() for text in (as_shell(made), as_argv(made)) for line in text.split("\n"))


@pytest.mark.parametrize("flag", ["--api-key", "--api_key", "--hf-token"])
def test_secrets_in_a_foreign_argv_do_not_show(flag: str) -> None:
    made = spec("vllm", "serve", "m", flag, "hunter2", "hunter2", f"{flag}=hunter2", "--x", "y")
    assert json.loads(as_argv(made)) == ["vllm", "serve", "m", flag, "•••", "•••", f"{flag}=•••", "--x", "y"]
    assert "hunter2" not in as_shell(made)
    assert "--x y" in as_shell(made)


def test_secrets_in_the_environment_do_not_show() -> None:
    text = as_shell(spec("vllm", env={"HF_TOKEN": "hunter2", "B": "1"}))
    assert text == "HF_TOKEN=••• \\\nB=1 \\\nvllm"


def test_an_env_file_is_named_and_not_read() -> None:
    made = LaunchSpec("p", "on", "local", ("vllm",), "h", 1, "m", False, env_file="/nowhere/x.env")
    assert as_shell(made) == "# environment also from /nowhere/x.env (not shown)\nvllm"
