"""Containers, as a stand-in for docker tells of them."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from sparktui.client.discover import Containers, FoundServer, containers
from tests.client.servers import KEY, fake_docker


# Fields and quoting as Docker 28's CLI prints them.
def entry(**told: Any) -> str:
    return json.dumps(
        {
            "Command": '"python3 -m vllm.entrypoints.openai.api_server --model org/m"',
            "CreatedAt": "2026-03-01 10:00:00 +0000 UTC", "ID": "ab" * 32,
            "Image": "vllm/vllm-openai:v0.27.1", "Labels": "", "LocalVolumes": "0",
            "Mounts": "/root/.cache", "Names": "llm", "Networks": "bridge",
            "Ports": "0.0.0.0:8001->8000/tcp, [::]:8001->8000/tcp", "RunningFor": "2 hours ago",
            "Size": "0B", "State": "running", "Status": "Up 2 hours",
        } | told
    )  # fmt: skip


def listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *lines: str) -> Containers:
    fake_docker(tmp_path / "path", f"print({chr(10).join(lines)!r})")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    return containers()


def test_docker_is_asked_once_and_only_to_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told = fake_docker(tmp_path / "path", f"print({entry()!r})")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    (found,) = containers().servers
    assert told.read_text() == "ps\n--no-trunc\n--format\n{{json .}}"
    assert found == FoundServer(
        kind="container", title="org/m on port 8001 (container llm)", model="org/m", host="0.0.0.0",
        port=8001, container="ab" * 32, name="llm", image="vllm/vllm-openai:v0.27.1",
        ports="0.0.0.0:8001->8000/tcp, [::]:8001->8000/tcp",
    )  # fmt: skip
    assert found.url == "http://127.0.0.1:8001"


def test_only_what_looks_like_vllm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = entry(
        Image="registry.local/llm:1", Command="\"bash -c 'exec vllm serve org/own --port 9000'\"", Names="own"
    )
    shell = entry(
        Image="nvcr.io/nvidia/vllm:26.02-py3", Command='"/opt/entrypoint.sh bash"', Names="shell", Ports=""
    )
    other = entry(Image="postgres:17", Command='"docker-entrypoint.sh postgres /"', Names="db")
    found = listed(
        tmp_path, monkeypatch, own, "not json", "[1]", '"text"', shell, other, entry(Names=["podman"])
    )
    assert [(server.name, server.model, server.port) for server in found.servers] == [
        ("own", "org/own", None),  # 9000 is not published
        ("shell", "", None),
        ("", "org/m", 8001),
    ]
    assert found.servers[0].url == ""
    assert found.problem == ""


def test_no_secret_of_a_container_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command = f'"vllm serve org/m --api-key {KEY} --hf-token={KEY} --port 8000"'
    found = listed(tmp_path, monkeypatch, entry(Command=command))
    assert found.servers[0].model == "org/m"
    assert KEY not in repr(found)


@pytest.mark.parametrize(
    ("ports", "networks", "flags", "expected"),
    [
        ("127.0.0.1:9->8000/tcp", "bridge", "", ("127.0.0.1", 9)),
        ("[::1]:9->8000/tcp", "bridge", "", ("::1", 9)),
        (":::9->8000/tcp", "bridge", "", ("::", 9)),
        ("0.0.0.0:7000->22/tcp, 0.0.0.0:9->8123/tcp", "bridge", " --port 8123", ("0.0.0.0", 9)),
        ("0.0.0.0:9000-9002->8000-8002/tcp", "bridge", " --port 8002", ("0.0.0.0", 9002)),
        ("0.0.0.0:9->5000/tcp, [::]:9->5000/tcp", "bridge", "", ("0.0.0.0", 9)),
        ("8000/tcp", "bridge", "", ("", None)),
        ("0.0.0.0:9->8000/udp", "bridge", "", ("", None)),
        ("", "host", " --port 8005", ("0.0.0.0", 8005)),
    ],
)
def test_the_port_on_this_machine(
    ports: str, networks: str, flags: str, expected: tuple[str, int | None],
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    command = f'"vllm serve m{flags}"'
    (found,) = listed(tmp_path, monkeypatch, entry(Ports=ports, Networks=networks, Command=command)).servers
    assert (found.host, found.port) == expected


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (
            "Cannot connect to the Docker daemon at unix:///run/docker.sock. Is the docker daemon running?",
            "docker is installed, its engine does not run",
        ),
        (
            "permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock",
            "no permission to ask docker (usually: the user is not in the group docker)",
        ),
        ("\n\x1b[31munknown flag: --format\nSee help", "docker: [31munknown flag: --format"),
        ("", "docker: it failed without a word"),
    ],
)
def test_a_refusal_is_told(said: str, problem: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_docker(tmp_path / "path", f"sys.exit({said!r})")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    assert containers() == Containers((), problem)


def test_docker_that_hangs_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_docker(tmp_path / "path", "signal.alarm(60); signal.pause()")
    monkeypatch.setenv("PATH", str(tmp_path / "path"))
    asked: list[dict[str, Any]] = []

    def run(argv: list[str], **options: Any) -> subprocess.CompletedProcess[bytes]:
        asked.append(options)
        return subprocess.run(argv, **options | {"timeout": 0.5})

    begun = time.monotonic()
    assert containers(run) == Containers((), "docker did not answer within 3 s")
    assert time.monotonic() - begun < 10
    assert asked[0]["timeout"] == 3
    assert asked[0]["start_new_session"] is True


def test_no_docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert containers().problem == "docker is not installed"
    (tmp_path / "docker").write_text("no program")
    (tmp_path / "docker").chmod(0o755)
    assert containers().problem == "docker does not start: Exec format error"
