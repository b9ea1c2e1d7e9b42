"""What a probe of the prefix cache found, in words and as a table."""

from __future__ import annotations

from sparktui.schema.records import PrefixProbe, ProbeAnswer
from sparktui.schema.text import printable
from sparktui.ui.format import NOTHING, number

NO_PROBE = "The prefix cache has not been probed in this run: the palette has it as “Probe the prefix cache”."
_HEAD = ("request", "TTFT ms", "prompt", "cached", "hits", "queries")
_MARKS = {"works": "✔", "useless": "▲", "off": "·", "not known": "?"}


def probe_text(probe: PrefixProbe | None) -> str:
    """The answer first; then the three requests. Tokens; hits and queries are the server's counters."""
    if probe is None:
        return NO_PROBE
    rows = [_HEAD, *(_row(i, answer) for i, answer in enumerate(probe.answers, 1))]
    lines = ["".join(f"{cell:>9}" for cell in row) for row in rows]
    return "\n".join([probe_line(probe), "", *lines, "", "The same request each time; counts are tokens."])


def probe_line(probe: PrefixProbe) -> str:
    """``✔ the prefix cache works: …``."""
    return f"{_MARKS[probe.call]} {printable(probe.text)}"


def _row(index: int, answer: ProbeAnswer) -> tuple[str, ...]:
    counts = (answer.prompt_tokens, answer.cached_tokens, answer.hits, answer.queries)
    return (str(index), number(answer.ttft_ms, 0), *(NOTHING if n is None else f"{n:,.0f}" for n in counts))
