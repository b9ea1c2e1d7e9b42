"""The tables of ``--cudagraph-metrics``: engine steps by the CUDA graph mode they ran in.

From 0.13 on every engine logs one an interval, after its throughput line, unless it is idle:

    **CUDAGraph Config Settings:**

    - Mode: FULL_AND_PIECEWISE
    - Capture sizes: [1, 2, 4]

    **CUDAGraph Stats:**

    | Unpadded Tokens | Padded Tokens | Num Paddings | Runtime Mode | Count |
    |-----------------|---------------|--------------|--------------|-------|
    | 4               | 4             | 0            | FULL         | 839   |

one line a log line, the last one empty. The mode is the one asked for; only the counts tell what ran. The V2
model runner never logs a table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from sparktui.bootlog.lines import Line
from sparktui.schema.live import GraphSteps

_START = "**CUDAGraph Config Settings:**"
_SIZES = re.compile(r"^- Capture sizes: \[([\d, ]*)\]")
_ROW = re.compile(r"^\| *(\d+) *\| *\d+ *\| *\d+ *\| *(FULL|PIECEWISE|NONE) *\| *(\d+) *\|$")
_HEADER = re.compile(r"^\| *Unpadded Tokens *\||^\|[-|]+\|$")
_ENGINE = re.compile(r"^(Engine \d+|\d+ Engines Aggregated): Avg prompt")
_ENGINES = ("Engine ", *"123456789")
_BEGINNINGS = "*EP123456789"  # of what is looked for outside of a table
_LARGEST = re.compile(r"\(largest=(\d+)\)")
_PROFILING = "Profiling CUDA graph memory: "
_NOTHING = GraphSteps()

_Process = tuple[str | None, int | None]


@dataclass(slots=True)
class _Open:
    """A table that is being read."""

    largest: int | None = None
    rows: list[tuple[int, str, int]] = field(default_factory=list)  # tokens, mode, count


class GraphTable:
    """Counts of the newest tables. A table that was cut, or whose head wasn't seen, doesn't count."""

    def __init__(self) -> None:
        self.total: GraphSteps | None = None  # over all tables
        self._largest: int | None = None  # as the engine profiled it; a table's header has what was asked for
        self._open: dict[_Process, _Open] = {}
        self._engine = ""
        self._spoken: set[str] = set()  # engines that logged their throughput in this interval
        self._stale = False
        self._newest: dict[str, GraphSteps] = {}  # by engine

    @property
    def steps(self) -> GraphSteps | None:
        """Of the newest table; of several engines the newest of each, added up. None before the first."""
        return _added(self._newest.values()) if self._newest else None

    def read(self, line: Line) -> None:
        if not self._open and line.message[:1] not in _BEGINNINGS:
            return
        for message in line.message.split("\n") if "\n" in line.message else (line.message,):
            self._message((line.process, line.pid), message)

    def _message(self, process: _Process, message: str) -> None:
        if message.startswith(_START):
            self._open[process] = _Open(self._largest)
        elif (table := self._open.get(process)) is not None:
            self._inside(process, table, message)
        elif message.startswith(_ENGINES) and (found := _ENGINE.match(message)) is not None:
            self._throughput(found[1])
        elif message.startswith(_PROFILING):
            sizes = [int(size) for size in _LARGEST.findall(message)]
            self._largest = max(sizes, default=self._largest)

    def _inside(self, process: _Process, table: _Open, message: str) -> None:
        if (row := _ROW.match(message)) is not None:
            table.rows.append((int(row[1]), row[2], int(row[3])))
        elif (sizes := _SIZES.match(message)) is not None:
            numbers = [int(size) for size in sizes[1].split(",") if size.strip()]
            table.largest = table.largest or max(numbers, default=None)
        elif not message.strip() and table.rows:
            del self._open[process]
            self._complete(_counted(table))
        elif not _expected(message):
            del self._open[process]  # cut
            self._message(process, message)

    def _throughput(self, engine: str) -> None:
        if engine in self._spoken:
            self._spoken.clear()
            self._stale = True
        self._spoken.add(engine)
        self._engine = engine

    def _complete(self, steps: GraphSteps) -> None:
        if self._stale:
            self._newest.clear()
            self._stale = False
        self._newest[self._engine] = steps
        self.total = _added((self.total or _NOTHING, steps))


def _expected(message: str) -> bool:
    """A line that stands in a table beside its rows."""
    if not message.strip() or message.startswith(("- Mode: ", "**CUDAGraph Stats:**")):
        return True
    return _HEADER.match(message) is not None


def _counted(table: _Open) -> GraphSteps:
    counts = {"FULL": 0, "PIECEWISE": 0, "NONE": 0, "beyond": 0}
    for tokens, mode, count in table.rows:
        above = mode == "NONE" and table.largest is not None and tokens > table.largest
        counts["beyond" if above else mode] += count
    return GraphSteps(counts["FULL"], counts["PIECEWISE"], counts["NONE"], counts["beyond"])


def _added(several: Any) -> GraphSteps:
    each = tuple(several)
    return GraphSteps(
        sum(steps.full for steps in each),
        sum(steps.piecewise for steps in each),
        sum(steps.none for steps in each),
        sum(steps.beyond for steps in each),
    )


def graph_words(steps: GraphSteps | None, facts: Mapping[str, Any]) -> str:
    """``96 % of steps FULL``, or why it isn't known. Steps that no graph could hold are left out."""
    if steps is None:
        return _no_table(facts)
    counted = steps.full + steps.piecewise + steps.none
    if not counted:
        return "only steps above the largest captured size so far"
    parts = [f"{_percent(steps.full, counted)} of steps FULL"]
    rest = (("PIECEWISE", steps.piecewise), ("without a graph", steps.none))
    parts += [f"{_percent(count, counted)} {words}" for words, count in rest if count]
    return ", ".join(parts)


def _no_table(facts: Mapping[str, Any]) -> str:
    if facts.get("cudagraph_mode") == "NONE":
        return "no CUDA graphs"
    if facts.get("model_runner") == "V2":
        return "unknown: the V2 model runner logs no table"
    args = facts.get("non_default_args")
    if isinstance(args, dict) and not args.get("cudagraph_metrics"):
        return "unknown: the server runs without --cudagraph-metrics"
    return "unknown: no table yet"


def _percent(part: int, whole: int) -> str:
    """Whole percents; 0 and 100 only for none and all."""
    if part in (0, whole):
        return "0 %" if part == 0 else "100 %"
    return f"{min(99, max(1, round(100 * part / whole)))} %"
