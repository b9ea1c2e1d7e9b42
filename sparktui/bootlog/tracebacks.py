"""The exceptions that a log's tracebacks end in.

Up to 0.30 each line of a process has its prefix. From 0.32 on only records have one, so an uncaught exception
is told in bare lines, after ``Process EngineCore:`` where the process isn't the API server. Tracebacks of
several processes may be interleaved, and each may be told twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from sparktui.bootlog.lines import Line
from sparktui.bootlog.records import CHAINED

_TRACEBACK = "Traceback (most recent call last):"
_PROCESS = re.compile(r"Process ([A-Za-z][\w-]*):$")
_SURVIVED = re.compile(r"Exception (?:in thread |ignored in)")
_RANK = re.compile(r"\[rank\d+\]: ?")  # torch's own, before each line
_FRAME = re.compile(
    r'\s+File "(?:[^"]*/)?((?:vllm|flashinfer)/(?![^"]*-packages/)[^"]+)", line (\d+), in (.+)$'
)
_EXCEPTION = re.compile(r"((?:[A-Za-z_]\w*\.)*)([A-Za-z_]\w*)(?:\([\w.]+\))?(:?)(?: (.*))?$")
_KIND = re.compile(r"Error|Exception|Exit|Interrupt|Timeout|Warning|Failure|Cancelled|Empty|Stop")
_REMOTE = "RayTaskError"  # the remote traceback follows without its first line
_FIELDS = re.compile(r"validation errors? for [\w.]+$")
_FIELD = re.compile(r"[\w.\[\]-]+$")
_TYPE = re.compile(r" \[type=\w+, input_.*")
_PTXAS = re.compile(r"ptxas\S* fatal\s*: (.*)")
_BUILD = "Ninja build failed"
_KILLED = re.compile(
    r"Killed\b|.*\[code=(?:137|143)\]|.*\bexit(?:ed)?(?: with)?(?: code| status)? (?:137|143)\b"
)
_COMPILER = re.compile(r"nvcc fatal|\S+: (?:fatal )?error:? |\S+\(\d+\): error|(?:/usr/bin/)?ld(?:\.lld)?: ")
_OOM = "a compiler was killed, mostly because the host ran out of memory"
_LOOKS = 3000  # lines after an exception that may belong to it: a dump of PTX has hundreds
_Key = tuple[str | None, int | None, str | None, str | None]  # process, pid, level, source


@dataclass(slots=True)
class Raised:
    """The last exception of a chain of tracebacks. ``begun`` and ``ended`` are line numbers."""

    name: str
    text: str  # name and message, without modules
    line: Line  # that names the cause
    begun: int
    ended: int
    process: str | None
    pid: int | None
    frame: str = ""  # deepest one in vllm or flashinfer
    thread: bool = False  # that of a thread, or ignored: the process lived on

    @property
    def depth(self) -> int:
        """How far from the API server its process is."""
        return depth(self.process)


def depth(process: str | None) -> int:
    """0 the API server, 1 an engine, 2 a worker."""
    name = (process or "").lower()
    return 2 if "worker" in name else 1 if "engine" in name or "spawnprocess" in name else 0


def raised(lines: Sequence[Line]) -> list[Raised]:
    """In order of the ends of their tracebacks. Those logged as warnings were survived, and are left out."""
    found: list[Raised] = []
    streams: dict[_Key, _Stream] = {}
    for line in lines:
        if line.level not in (None, "ERROR", "CRITICAL"):
            continue
        key = (line.process, line.pid, line.level, line.source)
        stream = streams.get(key)
        if stream is None:
            stream = streams[key] = _Stream(line)
        one = stream.take(line)
        if one is not None:
            found.append(one)
    return found


class _Stream:
    """Reads the tracebacks of one process's records from one place, or the bare lines of all processes."""

    def __init__(self, line: Line) -> None:
        self._process, self._pid = line.process, line.pid
        self._named: str | None = None
        self._begun = 0  # number of the traceback's first line; 0: outside
        self._frame = ""
        self._thread = False
        self._chained = False
        self._last: Raised | None = None
        self._after = _After()

    def take(self, line: Line) -> Raised | None:
        """A new exception when ``line`` ends a traceback, else None."""
        message = line.message
        if message.startswith("[rank"):
            message = _RANK.sub("", message, count=1)
        if message.startswith(_TRACEBACK):
            self._begun, self._frame = line.number, ""
            if self._last is not None and self._last.text.endswith(":"):
                self._chained = True
        elif self._begun:
            return self._inner(line, message)
        elif message in CHAINED:
            self._chained = True
        elif (found := _PROCESS.match(message)) is not None:
            self._named = found[1]
        elif message.startswith("Exception ") and _SURVIVED.match(message):
            self._thread = True
        elif self._last is not None:
            self._after.take(self._last, line, message)
        return None

    def _inner(self, line: Line, message: str) -> Raised | None:
        if not message or message[0].isspace():
            if (frame := _FRAME.match(message)) is not None:
                self._frame = f"{frame[1]}:{frame[2]} in {frame[3]}"
            return None
        found = _exception(message)
        if found is None:
            return None  # a bare line of another process
        name, text = found
        begun, self._begun = self._begun, 0
        if name == _REMOTE:
            self._begun = begun
        self._after = _After()
        if self._chained and self._last is not None:
            self._chain(name, text, line)
            return None
        self._last = Raised(
            name,
            text,
            line,
            begun,
            line.number,
            self._named or self._process,
            self._pid,
            self._frame,
            self._thread,
        )
        self._named, self._thread = None, False
        return self._last

    def _chain(self, name: str, text: str, line: Line) -> None:
        """The end of a chain counts, unless it only says that there was something before."""
        last = self._last
        assert last is not None
        self._chained = False
        last.ended = line.number
        if is_echo(text) and not is_echo(last.text):
            return
        last.name, last.text, last.line, last.frame = name, text, line, self._frame or last.frame


class _After:
    """Lines after an exception's first: the rest of its message, of which the telling part is taken."""

    def __init__(self) -> None:
        self._count = 0
        self._fields = False  # pydantic tells field by field
        self._field = ""
        self._killed = False

    def take(self, last: Raised, line: Line, message: str) -> None:
        self._count += 1
        if self._count > _LOOKS or not message.strip():
            return
        if (found := _PTXAS.match(message)) is not None and not last.text.startswith("ptxas"):
            last.text, last.line = f"ptxas fatal: {found[1]}", line
        elif _BUILD in last.text:
            self._build(last, message)
        elif self._fields or _FIELDS.search(last.text):
            self._fields = True
            self._validation(last, line, message)
        elif last.text.endswith(": ") and self._count < 5:
            last.text += message.strip()

    def _build(self, last: Raised, message: str) -> None:
        if self._killed:
            return
        if _KILLED.match(message):
            last.text, self._killed = f"{last.name}: {_BUILD}: {_OOM}", True
        elif _COMPILER.match(message) and last.text.endswith("output:"):
            last.text = f"{last.name}: {_BUILD}: {message.strip()}"

    def _validation(self, last: Raised, line: Line, message: str) -> None:
        """pydantic's pairs of lines: a field, unless the whole is wrong, and what is wrong with it."""
        told = message.strip()
        first = _FIELDS.search(last.text) is not None
        if not message[0].isspace():
            self._field = f"{message}: " if _FIELD.match(message) else ""
            self._fields = first or bool(self._field)
        elif not told.startswith("For further information") and (first or self._field):
            last.text += f"{': ' if first else '; '}{self._field}{_TYPE.sub('', told)}"
            last.line = line if first else last.line
            self._field = ""


def _exception(message: str) -> tuple[str, str] | None:
    """Name and text of an exception's first line. A text that ends in ``: `` goes on in the next line."""
    found = _EXCEPTION.match(message)
    if found is None:
        return None
    modules, name, colon, text = found.groups()
    if not colon and (text or not (modules or _KIND.search(name))):
        return None
    if colon and not (modules or name[0].isupper()):
        return None
    return name, f"{name}: {text}" if text else f"{name}: " if colon else name


_ECHO = re.compile(
    r"Engine core initialization failed|Frontend process failed during engine core|^EngineDeadError"
    r"|WorkerProc initialization failed|Worker failed with error|Engine process failed to start"
    r"|^\w+: (?:Worker|Engine core) proc(?:ess)? .* died|Engine process \(pid \d+\) died"
    r"|EngineCore encountered an issue|^(?:BrokenPipe|EOF|ConnectionReset)Error"
    r"|failed to be inspected\. Please check the logs"
)


def is_echo(text: str) -> bool:
    """Whether an exception only says that another process, or another line, knows what happened."""
    return _ECHO.search(text) is not None
