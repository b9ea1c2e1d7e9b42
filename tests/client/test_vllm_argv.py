"""Command lines: which are API servers, and what is taken out of them."""

from __future__ import annotations

import pytest

from sparktui.client.vllm_argv import Asked, asked, safe, serve_arguments


@pytest.mark.parametrize(
    "argv",
    [
        "/opt/venv/bin/vllm serve m --port 1",
        "/opt/venv/bin/python3.12 /opt/venv/bin/vllm serve m --port 1",
        "python3 -m vllm.entrypoints.cli.main serve m --port 1",
        "python -X dev -u -m vllm.entrypoints.openai.api_server m --port 1",
        "python3.13t /opt/venv/lib/vllm/entrypoints/openai/api_server.py m --port 1",
        "/usr/bin/python3 -P -m sparktui sim serve m --port 1",
        "/home/user/.local/bin/sparktui sim serve m --port 1",
    ],
)
def test_api_servers(argv: str) -> None:
    assert serve_arguments(argv.split()) == ["m", "--port", "1"]


@pytest.mark.parametrize(
    "argv",
    [
        "",
        "/",
        "vllm bench serve",
        "vllm",
        "python3",
        "python3 -c import_time vllm serve",
        "python3 -m",
        "bash -c vllm serve m",
        "tail -f vllm serve",
        "grep vllm serve",
        "sparktui run demo",
        "sparktui sim table",
        "VLLM::EngineCore",
        "python3 -m my.vllm.entrypoints.openai.api_server_test",
    ],
)
def test_other_programs(argv: str) -> None:
    assert serve_arguments(argv.split()) is None


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        ("org/m --port 8123 --host ::1", Asked("org/m", "::1", 8123)),
        ("--model=org/m --port=8123", Asked("org/m", "", 8123)),
        ("a --port 1 --port 2 --model b", Asked("b", "", 2)),
        ("--port 99999 --model --host", Asked()),
        ("--port x² m", Asked()),
        ("--port", Asked()),
        ("", Asked()),
    ],
)
def test_what_is_asked_for(args: str, expected: Asked) -> None:
    assert asked(args.split()) == expected


@pytest.mark.parametrize(
    "args",
    [
        "--api-key SECRET SECRET2",
        "--api-key=SECRET m",
        "m --hf-token SECRET",
        "--enforce-eager --api-key SECRET m",
    ],
)
def test_secrets_are_never_taken_for_a_model(args: str) -> None:
    assert "SECRET" not in repr(asked(args.split()))


def test_foreign_text_is_made_safe() -> None:
    assert safe("a\x1b[31mb\nc\u202ed") == "a[31mb cd"
    assert len(safe("x" * 10_000)) == 200
