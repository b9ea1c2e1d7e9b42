"""``sparktui ab`` through a proxy before the server: ``load: {url: …, model: …}``."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from sparktui.schema.codec import loads
from sparktui.schema.records import Report
from tests.proxy import NAME, proxy_before
from tests.standin import rows_in
from tests.support import FAST, Home, events

OWN, PROXYS = "sk-of-the-server", "sk-of-the-proxy"

pytestmark = pytest.mark.usefixtures("nothing_left")


@pytest.mark.parametrize("place", ["env_file", "environment"])
async def test_figures_come_through_a_proxy_and_keys_stay_apart(
    home: Home, tmp_path: Path, place: str
) -> None:
    """The proxy has a name of its own for the model, and a key of its own, or none."""
    text = FAST
    if place == "env_file":
        secrets = tmp_path / "server.env"
        secrets.write_text(f"VLLM_API_KEY={OWN}\n", "utf-8")
        text += f"env_file: {secrets}\n"
        home.extra = {"SPARKTUI_LOAD_API_KEY": PROXYS}
    else:
        home.extra = {"VLLM_API_KEY": OWN}
    path = home.profile(boot=0.3, window=3.5, text=text)
    port = re.search(r"^port: (\d+)$", path.read_text("utf-8"), re.M)
    assert port is not None
    wants = PROXYS if place == "env_file" else ""
    async with proxy_before(f"http://127.0.0.1:{port[1]}", wants=wants, key=OWN) as proxy:
        front = f"load: {{url: '{proxy.url}', model: {NAME}, "
        path.write_text(path.read_text("utf-8").replace("load: {", front), "utf-8")
        code, output = await asyncio.to_thread(home.run, "ab", path, "-c", 2, "--json", tmp_path / "r.json")
    assert code == 0, output
    assert proxy.keys == {wants}
    assert proxy.models == {NAME}
    assert proxy.paths == {"/v1/chat/completions"}, "/tokenize is the server's"
    report = loads(Report, (tmp_path / "r.json").read_bytes())
    for arm in report.arms:
        (cell,) = arm.cells
        assert cell.errors == 0
        assert cell.output_tok_s
        assert cell.server_output_tok_s == pytest.approx(cell.output_tok_s, rel=0.25)
    run = home.only_run()
    assert {row.prompt_tokens for row in rows_in(run.rows) if row.ok} == {64}, "counted with the server's key"
    assert OWN not in output + (tmp_path / "r.json").read_text("utf-8")
    assert not [event.text for event in events(run) if "as estimated" in event.text]
