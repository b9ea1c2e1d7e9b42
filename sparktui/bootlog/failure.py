"""The first real error of a boot that failed.

One failure is told several times: by the worker, by the engine core and by the API server, which only says
that the engine failed. The process that failed first knows the cause; of those that failed together, the one
farthest from the API server. Besides tracebacks there are argparse's line, the last words of programs around
vLLM, and processes that were killed and said nothing.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sparktui.bootlog.lines import Line
from sparktui.bootlog.rules import SEVERITIES, Rule
from sparktui.bootlog.tracebacks import Raised, is_echo, raised
from sparktui.schema.live import Finding

_INTERESTING = 500  # characters of a cause
_ARGPARSE = re.compile(r"(?:vllm[\w -]*|[\w-]+\.py): (error: .*)")
_STOP = {"KeyboardInterrupt", "CancelledError", "SystemExit", "GeneratorExit"}
_WRAPPED = re.compile(r"(\w+): Worker failed with error ['\"](.+?)['\"], please check the stack trace")
_PROCESSES = re.compile(r"Failed core proc\(s\): (\{[^{}]{0,500}\})")
_EXIT = re.compile(r"\b([\w-]{1,80})['\"]?: (-?\d{1,6})\b")
_KERNEL_LOG = "look into the kernel log (dmesg) for the out-of-memory killer"
_ENDING = re.compile(
    r"(?i)shut(?:ting )?down|terminat|parent process exited|dumping|abort|destroy|exiting|exited"
)
_ANNOUNCES = re.compile(
    r"EngineCore (?:failed to start|encountered)|WorkerProc (?:failed|hit)|AsyncLLM output_handler"
    r"|Dumping |Engine core initialization failed"
)
_UNCLEAR = re.compile(  # that name no culprit: the place does
    r"(?:AssertionError|KeyError|IndexError|AttributeError|TypeError|NotImplementedError|ZeroDivisionError)\b"
    r"|RuntimeError: (?:shape '|The size of tensor|mat1 and mat2|Expected |Tensors must|Given )"
)
_LAST_WORDS = tuple(  # of what writes no traceback, most telling first
    re.compile(pattern)
    for pattern in (
        r"(?P<say>ptxas\S* fatal\s*: .*)",
        r"(?P<say>nvcc fatal\s*: .*)",
        r"(?P<say>\[Errno \d+\] error while attempting to bind on address.*)",
        r"(?P<say>Fatal Python error: .*)",
        r"\s+what\(\):\s+(?P<say>.*)",
        r"(?:docker: )?(?P<say>Error response from daemon: .*)",
        r"(?P<say>docker: (?!Error response).*)",
        r"(?P<say>(?:Worker|Engine core) proc(?:ess)? \S+ died unexpectedly.*)",
        r"(?P<say>ninja: build stopped: .*)",
    )
)
_KILLED = re.compile(r"(?:\S{1,80}: line \d+: +\d+ )?Killed(?: {2,}|$)")
_SHELL = re.compile(
    r"(?:\S+: )?(?:line \d+: |\d+: )?\S.*: (?:command not found|not found|No such file or directory"
    r"|Permission denied|cannot execute.*)$|\S*python[\d.]*: (?:can't open file |No module named ).*"
    r"|.*executable file not found in \$PATH.*"
)
_STOPS = re.compile(r"\[shutdown\] API server: shutdown triggered|Shutting down$")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a boot failed: in one line without module paths, and where the log says so.

    ``line`` is the one that rules explain. ``frame`` is the deepest in vllm or flashinfer,
    ``vllm/v1/engine/core.py:12 in run``.
    """

    cause: str
    line: Line
    process: str | None = None
    exception: str = ""
    frame: str = ""


def root_cause(lines: Sequence[Line], *, served: bool = False) -> str | None:
    """Cause of a failed boot in one line; None when the log shows no error."""
    failure = find_failure(lines, served=served)
    return failure.cause if failure else None


def find_failure(lines: Sequence[Line], *, served: bool = False) -> Failure | None:
    """The first real error among the lines of one boot, or None.

    A stop is no error, nor is what a process survived; what follows a stop is only its consequence. Of a
    server that ``served``, a mere line at level ERROR is none: requests make such lines.
    """
    lines = _before_stop(lines)
    for line in lines:
        if (found := _ARGPARSE.match(line.message)) is not None:
            return _made(found[1], line)
    all_raised = raised(lines)
    errors = [one for one in all_raised if one.name not in _STOP and not is_echo(one.text)]
    echoes = [one for one in all_raised if is_echo(one.text)]
    stopped = any(one.name == "KeyboardInterrupt" for one in all_raised)
    fatal = _fatal(errors, lines)
    return (
        _chosen(fatal)
        or _wrapped(echoes)
        or _chosen([one for one in errors if echoes and one.depth and not one.thread])
        or _last_words(lines)
        or _killed(lines)
        or (None if stopped else _wordless(echoes, lines))
        or (None if errors or served else _first_error(lines))
        or _never_started(lines)
    )


def explanation(failure: Failure, rules: Iterable[Rule]) -> Finding | None:
    """What the gravest rule says about the line of the cause: its meaning and the remedy."""
    found = (rule.finding(failure.line) for rule in rules)
    return min(filter(None, found), key=lambda finding: SEVERITIES.index(finding.severity), default=None)


def _made(cause: str, line: Line, process: str | None = None) -> Failure:
    return Failure(_cut(" ".join(cause.split())), line, process or line.process)


def _cut(text: str, most: int = _INTERESTING) -> str:
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _told(one: Raised) -> Failure:
    text = " ".join(one.text.split()).rstrip(":")
    if one.frame and _UNCLEAR.match(text):
        text = f"{_cut(text, _INTERESTING - len(one.frame) - 3)} ({one.frame})"
    return Failure(_cut(text), one.line, one.process, one.name, one.frame)


def _before_stop(lines: Sequence[Line]) -> Sequence[Line]:
    stop = next((i for i, line in enumerate(lines) if _STOPS.match(line.message)), len(lines))
    return lines[:stop]


def _chosen(errors: list[Raised]) -> Failure | None:
    """The first; of those told at the same time the one of the deepest process."""
    if not errors:
        return None
    first = min(errors, key=lambda one: one.ended)
    return _told(max((one for one in errors if one.begun <= first.ended), key=lambda one: one.depth))


def _fatal(errors: list[Raised], lines: Sequence[Line]) -> list[Raised]:
    """Those that no process survived: it did when it went on to tell of its work."""
    if not errors:
        return []
    lived = _lived(lines)
    return [one for one in errors if not one.thread and one.ended >= lived.get(_who(one), 0)]


def _who(one: Raised) -> tuple[str | None, int | None]:
    return (one.process or "APIServer", one.pid)


def _lived(lines: Sequence[Line]) -> dict[tuple[str | None, int | None], int]:
    """By process, and by its name alone: number of the last line but two that tells of work, not of its end.

    Two such lines may be words at a death that are not known as such.
    """
    told: dict[tuple[str | None, int | None], deque[int]] = {}
    for line in lines:
        if line.source and line.level in ("INFO", "WARNING") and not _ENDING.search(line.message):
            for key in ((line.process, line.pid), (line.process, None)):
                told.setdefault(key, deque(maxlen=3)).append(line.number)
    return {key: numbers[0] for key, numbers in told.items() if len(numbers) == 3}


def _wrapped(echoes: list[Raised]) -> Failure | None:
    """A worker's error in the words of its engine."""
    for one in echoes:
        if (found := _WRAPPED.match(one.text)) is not None:
            return _made(f"{found[1]}: {found[2]}", one.line, one.process)
    return None


def _last_words(lines: Sequence[Line]) -> Failure | None:
    for pattern in _LAST_WORDS:
        for line in lines:
            if (found := pattern.match(line.message)) is not None:
                return _made(found["say"], line)
    return None


def _killed(lines: Sequence[Line]) -> Failure | None:
    for line in lines:
        if line.process is None and _KILLED.match(line.message):
            return _made(f"a process was killed from outside: {_KERNEL_LOG}", line)
    return None


def _wordless(echoes: list[Raised], lines: Sequence[Line]) -> Failure | None:
    """A process that died and left no error; one line of the API server may be all that says so."""
    if echoes:
        one = max(echoes, key=lambda one: (one.depth, "Failed core proc" in one.text))
        return _made(_death(one.text), one.line, one.process)
    line = next((line for line in lines if _PROCESSES.search(line.message)), None)
    return None if line is None else _made(_death(line.message), line)


def _death(text: str) -> str:
    found = _PROCESSES.search(text)
    ends = _EXIT.findall(found[1]) if found else []
    if not ends:
        known = f" ({found[0]})" if found else ""
        return f"the engine was killed or died without a word{known}: {_KERNEL_LOG}"
    name, code = ends[0]
    if int(code) < 0:
        return f"{name} was killed by signal {-int(code)} and left no word: {_KERNEL_LOG}"
    return f"{name} ended with exit code {code} and left no error in the log"


def _first_error(lines: Sequence[Line]) -> Failure | None:
    """The first line logged as an error, for errors without a traceback."""
    for line in lines:
        if (
            line.level in ("ERROR", "CRITICAL")
            and line.message.strip()
            and not _ANNOUNCES.match(line.message)
        ):
            return _made(line.message, line)
    return None


def _never_started(lines: Sequence[Line]) -> Failure | None:
    """The failure of what was to start vLLM: a shell, a wrapper script."""
    if any(line.source for line in lines):
        return None
    wrong = [line for line in lines if _SHELL.match(line.message)]
    return _made(wrong[-1].message, wrong[-1]) if wrong else None
