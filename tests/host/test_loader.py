"""The host's end of the load process."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from sparktui.host.loader import Loader, LoadGone
from sparktui.schema.launch import LoadSpec
from sparktui.schema.messages import TOKENIZE_KEY, LoadConfig, LoadTotals

PATIENCE_S = 30.0
CONFIG = LoadConfig("http://127.0.0.1:9", "tiny", LoadSpec(), "nonce")
HOST = """
import asyncio, signal, sys
from sparktui.host.loader import Loader
from sparktui.schema.launch import LoadSpec
from sparktui.schema.messages import LoadConfig, LoadTarget

async def main():
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGINT, stop.set)
    loader = Loader(lambda row: None, lambda totals: None)
    await loader.start(LoadConfig("http://127.0.0.1:9", "tiny", LoadSpec(), "nonce"))
    if sys.argv[1] == "loading":
        await loader.aim(LoadTarget(2))
        while not (await loader.next_totals()).errors:
            pass
    print(loader.pid, flush=True)
    await stop.wait()
    await loader.stop()

asyncio.run(main())
"""


@pytest.fixture
async def loader() -> AsyncIterator[Loader]:
    made = Loader(lambda row: None, lambda totals: None)
    yield made
    await made.stop()


async def host(when: str) -> tuple[asyncio.subprocess.Process, int]:
    """A host in a process group of its own, and the pid of its load process: just started, or loading."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", HOST, when,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE, process_group=0,
    )  # fmt: skip
    assert process.stdout is not None
    return process, int(await process.stdout.readline())


async def interruptible(pid: int) -> None:
    """Until Python has its handler for SIGINT: before, a signal ends it silently, and soon it ignores it."""
    async with asyncio.timeout(PATIENCE_S):
        while not minds_interrupts(pid):
            await asyncio.sleep(0.001)


def minds_interrupts(pid: int) -> bool:
    """Whether a process catches or ignores SIGINT (proc(5): masks of signals, in hex)."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    masks = dict(line.split(":", 1) for line in lines if line.startswith("Sig"))
    return bool((int(masks["SigCgt"], 16) | int(masks["SigIgn"], 16)) & 1 << (signal.SIGINT - 1))


async def last_words(process: asyncio.subprocess.Process) -> bytes:
    """What both wrote to stderr, read to its end: until neither has it open any more."""
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE_S):
        words = await process.stderr.read()
        await process.wait()
    return words


async def test_who_waits_for_totals_hears_that_they_cannot_be_taken() -> None:
    """As when the disk is full that they are written to; the load process itself is well."""

    def full(totals: LoadTotals) -> None:
        raise OSError(28, "No space left on device")

    loader = Loader(lambda row: None, full)
    await loader.start(CONFIG)
    try:
        with pytest.raises(LoadGone, match="No space left on device"):
            await loader.next_totals()
    finally:
        await loader.stop()


@pytest.mark.parametrize("when", ["just started", "loading"])
async def test_an_interrupt_of_the_host_s_group_is_no_traceback(when: str) -> None:
    process, child = await host(when)
    await interruptible(child)
    os.killpg(process.pid, signal.SIGINT)
    assert await last_words(process) == b""
    assert process.returncode == 0
    assert not psutil.pid_exists(child)


@pytest.mark.parametrize("when", ["just started", "loading"])
async def test_it_ends_in_silence_when_its_host_is_killed(when: str) -> None:
    process, _ = await host(when)
    process.kill()
    assert await last_words(process) == b""
    assert process.returncode == -signal.SIGKILL


async def test_starts_at_once_leave_one_process(loader: Loader) -> None:
    await asyncio.gather(*(loader.start(CONFIG) for _ in range(3)))
    mine = [child.pid for child in psutil.Process().children() if "sparktui.load" in child.cmdline()]
    assert mine == [loader.pid]
    await loader.next_totals()


async def test_a_stop_during_a_start_stops_it(loader: Loader) -> None:
    await asyncio.gather(loader.start(CONFIG), loader.stop())
    assert loader.pid is None
    assert not [child for child in psutil.Process().children() if "sparktui.load" in child.cmdline()]


async def test_a_stop_that_is_cancelled_leaves_nothing(loader: Loader) -> None:
    await loader.start(CONFIG)
    assert loader.pid is not None
    process = psutil.Process(loader.pid)
    process.suspend()  # so that it doesn't end by itself
    stopping = asyncio.create_task(loader.stop())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    stopping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stopping
    async with asyncio.timeout(PATIENCE_S):
        while process.is_running() and process.status() != psutil.STATUS_ZOMBIE:
            await asyncio.sleep(0.01)


@pytest.mark.parametrize(
    ("key", "tokenize_key", "expected"),
    [
        (None, None, {}),
        ("", "", {}),
        ("sk-given", None, {"VLLM_API_KEY": "sk-given"}),
        ("sk-given", "sk-own", {"VLLM_API_KEY": "sk-given", TOKENIZE_KEY: "sk-own"}),
    ],
)
async def test_it_gets_the_keys_that_are_given_and_no_others(
    loader: Loader,
    monkeypatch: pytest.MonkeyPatch,
    key: str | None,
    tokenize_key: str | None,
    expected: dict[str, str],
) -> None:
    monkeypatch.setenv("VLLM_API_KEY", "sk-of-the-environment")
    monkeypatch.setenv(TOKENIZE_KEY, "sk-of-the-environment-too")
    await loader.start(CONFIG, key, tokenize_key)
    await loader.next_totals()
    found = psutil.Process(loader.pid).environ()
    assert {name: found[name] for name in ("VLLM_API_KEY", TOKENIZE_KEY) if name in found} == expected
    assert found["PATH"] == os.environ["PATH"]


async def test_who_waits_while_it_is_started_anew_does_not_wait_for_ever(loader: Loader) -> None:
    await loader.start(CONFIG)
    await loader.next_totals()
    waiting = asyncio.create_task(loader.next_totals())
    await asyncio.sleep(0)
    await loader.start(CONFIG)
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.wait({waiting})
        await loader.next_totals()
    failure = waiting.exception()
    assert failure is None or str(failure).startswith("the load process "), "or a line came first"
