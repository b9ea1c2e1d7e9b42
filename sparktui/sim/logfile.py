"""vLLM's log grammar: ``(APIServer pid=N) INFO 11-30 18:15:57 [file.py:123] message``."""

from __future__ import annotations

import contextlib
import time
from typing import TextIO


class Log:
    """Writes both processes' lines, flushed one by one. A reader that went away is ignored."""

    def __init__(self, stream: TextIO, api_pid: int, engine_pid: int = 0) -> None:
        self._stream = stream
        self.api_pid = api_pid
        self.engine_pid = engine_pid

    def api(self, file: str, message: str, level: str = "INFO") -> None:
        """One record of the API server, each of its lines prefixed."""
        self._record(self._api_prefix, file, message, level)

    def engine(self, file: str, message: str, level: str = "INFO") -> None:
        """One record of the engine core."""
        self._record(self.engine_prefix, file, message, level)

    def api_raw(self, text: str) -> None:
        """Output of the API server that is no log record: tracebacks, uvicorn."""
        self._write("".join(f"{self._api_prefix}{line}\n" for line in text.split("\n")))

    def engine_raw(self, text: str) -> None:
        """Output of the engine core that is no log record: progress bars, tracebacks."""
        self._write("".join(f"{self.engine_prefix}{line}\n" for line in text.split("\n")))

    def engine_part(self, text: str) -> None:
        """A piece of a line that is still being written: a progress bar's next state."""
        self._write(text)

    @property
    def engine_prefix(self) -> str:
        """What the engine core's lines begin with, for lines written in parts."""
        return f"(EngineCore pid={self.engine_pid}) "

    @property
    def _api_prefix(self) -> str:
        return f"(APIServer pid={self.api_pid}) "

    def _record(self, prefix: str, file: str, message: str, level: str) -> None:
        head = f"{prefix}{level} {time.strftime('%m-%d %H:%M:%S')} [{file}] "
        self._write("".join(f"{head}{line}\n" for line in message.split("\n")))

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            self._stream.write(text)
            self._stream.flush()
