"""Logs of failed boots, written here."""

from __future__ import annotations

from sparktui.bootlog.failure import Failure, explanation, find_failure
from sparktui.bootlog.lines import Line, LineSplitter
from sparktui.bootlog.rules import shipped_rules

TRACEBACK = "Traceback (most recent call last):"
FRAME = '  File "/opt/vllm/site-packages/vllm/v1/engine/core.py", line 9, in run'
ECHO = "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}"

DEAD = (f"(APIServer pid=1) {TRACEBACK}", f"(APIServer pid=1) {ECHO}")


def lines(*texts: str) -> list[Line]:
    splitter = LineSplitter()
    return [*splitter.feed("".join(f"{text}\n" for text in texts).encode()), *splitter.flush()]


def failure(*texts: str) -> Failure:
    found = find_failure(lines(*texts))
    assert found is not None
    return found


def rule(found: Failure) -> str | None:
    explained = explanation(found, shipped_rules())
    return explained.id if explained else None


def record(process: str, *messages: str, level: str = "ERROR", source: str = "core.py:9") -> list[str]:
    """A record of vLLM's logger, of several lines."""
    return [f"({process}) {level} 11-30 12:00:20 [{source}] {message}" for message in messages]
