"""Scripts and compose files that start vLLM."""

from __future__ import annotations

import os
from pathlib import Path

from sparktui.client.discover import scripts
from tests.client.servers import KEY

SCRIPTS = {
    "a.sh": f"""\
#!/bin/sh
# vllm serve old
export VLLM_API_KEY={KEY}
exec vllm serve \\
  "org/m" \\
  --api-key {KEY} \\
  --port 8123
""",
    "b.sh": f"docker run -e HF_TOKEN={KEY} vllm/vllm-openai:v0.27.1 --api-key {KEY} --model org/b\n",
    "c.sh": f"python3 -m vllm.entrypoints.openai.api_server --api-key {KEY}\n",
    "d.sh": "docker pull vllm/vllm-openai:latest && echo done\n",
    "e.yaml": """\
services:
  llm:
    image: vllm/vllm-openai:latest
    ports: ['8000:8000']
    command:
      - --model
      - org/e
""",
    "f.yml": 'services:\n  llm:\n    image: own\n    command: ["vllm", "serve", "org/f", "--port", "9"]\n',
    "g.sh": "vllm serve 'a\x1b[2J[/x]'\n",
    "h.sh": f"vllm serve --api-key {KEY} {KEY}\n",
    "no-1.sh": "# vllm serve m\necho vllm\n",
    "no-2.yaml": "model: org/m\n",
    "no-3.txt": "vllm serve m\n",
}


def test_scripts_that_start_vllm(tmp_path: Path) -> None:
    for name, text in SCRIPTS.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "deeper").mkdir()
    (tmp_path / "deeper" / "x.sh").write_text(SCRIPTS["a.sh"])
    found = scripts(tmp_path)
    assert [(script.path.name, script.title) for script in found] == [
        ("a.sh", "vllm serve org/m on port 8123"),
        ("b.sh", "vllm serve org/b"),
        ("c.sh", "vllm.entrypoints.openai.api_server"),
        ("d.sh", "vllm/vllm-openai:latest"),
        ("e.yaml", "vllm serve org/e"),
        ("f.yml", "vllm serve org/f on port 9"),
        ("g.sh", "vllm serve a[2J[/x]"),
        ("h.sh", "vllm serve"),
    ]
    assert found[0].path == tmp_path / "a.sh"


def test_odd_files_do_not_stop_the_search(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "a.sh")
    (tmp_path / "b.sh").mkdir()
    (tmp_path / "c.sh").symlink_to("/dev/zero")
    (tmp_path / "d.sh").symlink_to("nowhere")
    (tmp_path / "e.sh").write_bytes(b"\xff\xfe\x00 vllm serve m")
    (tmp_path / "f.sh").write_bytes(b"#" * (256 << 10) + b"\nvllm serve late")
    assert [script.path.name for script in scripts(tmp_path)] == ["e.sh"]
    assert scripts(tmp_path / "nowhere") == ()


def test_no_more_than_200_scripts(tmp_path: Path) -> None:
    for number in range(205):
        (tmp_path / f"{number:03}.sh").write_text("vllm serve m")
    assert len(scripts(tmp_path)) == 200
