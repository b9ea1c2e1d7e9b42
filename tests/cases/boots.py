"""Boots around the lines of public reports: what the reports quote, in a log that is otherwise in order."""

from __future__ import annotations

from pathlib import Path

from sparktui.bootlog.reader import BootReader
from sparktui.schema.live import Finding

EXCERPTS = Path(__file__).parent.parent / "fixtures" / "cases"
ABOVE_NOTE = ("boot fails", "wrong results possible", "costs speed", "costs memory")
READY = "INFO:     Application startup complete."


def excerpt(name: str) -> list[str]:
    """The lines that a report quotes."""
    (path,) = EXCERPTS.glob(f"{name}-*.txt")
    return path.read_text(encoding="utf-8").splitlines()


def engine(*messages: str, level: str = "INFO", source: str = "core.py:1") -> list[str]:
    """Lines of the engine process, as vLLM 0.19 to 0.30 writes them."""
    return [f"(EngineCore pid=2) {level} 11-30 12:00:20 [{source}] {message}" for message in messages]


def server(*messages: str, level: str = "INFO", source: str = "api.py:1") -> list[str]:
    """Lines of the API server process."""
    return [f"(APIServer pid=1) {level} 11-30 12:00:10 [{source}] {message}" for message in messages]


def boot(
    *lines: str,
    version: str = "0.27.1",
    args: str = "{}",
    config: str = "speculative_config=None, device_config=cuda",
    ready: bool = True,
) -> BootReader:
    """The log of a boot that holds ``lines`` where the engine speaks, read to its end."""
    log = [
        *server(f"version {version}", f"non-default args: {args}"),
        *engine(f"Initializing a V1 LLM engine (v{version}) with config: model='/m', {config}, seed=0"),
        *lines,
        *([READY] if ready else []),
    ]
    return read(log)


def read(log: list[str]) -> BootReader:
    """A whole log, line by line, half a second apart."""
    reader = BootReader(0.0)
    for number, line in enumerate(log):
        reader.feed(line.encode() + b"\n", number / 2)
    reader.flush(len(log) / 2)
    return reader


def serious(reader: BootReader) -> dict[str, str]:
    """Severities of the findings above note, by id."""
    return {f.id: f.severity for f in reader.findings if f.severity in ABOVE_NOTE}


def finding(reader: BootReader, id_: str) -> Finding:
    """The one finding with this id."""
    (found,) = [f for f in reader.findings if f.id == id_]
    return found
