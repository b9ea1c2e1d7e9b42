"""Facts of a boot, read from its log: tables of rows, each a line's pattern and the facts it states.

Wordings of vLLM 0.10 to 0.33. A fact that the log doesn't state is absent. Target and drafter log the same
lines, the target first.
"""

from __future__ import annotations

from typing import Any

from sparktui.bootlog.facts.config import ROWS as CONFIG
from sparktui.bootlog.facts.graphs import ROWS as GRAPHS
from sparktui.bootlog.facts.kernels import ROWS as KERNELS
from sparktui.bootlog.facts.memory import ROWS as MEMORY
from sparktui.bootlog.facts.rows import Row
from sparktui.bootlog.lines import Line
from sparktui.bootlog.literals import Literals

TABLE: tuple[Row, ...] = (*CONFIG, *KERNELS, *GRAPHS, *MEMORY)
_ROWS = Literals((row.needs, row) for row in TABLE)


def read_facts(line: Line, facts: dict[str, Any]) -> None:
    """Add to ``facts`` what ``line`` states."""
    message = line.message
    for row in _ROWS.found(message):
        found = row.pattern.search(message)
        if found is not None:
            stated = row.read(found, facts).items()
            facts.update({name: value for name, value in stated if value is not None})
