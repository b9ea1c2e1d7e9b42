"""Two arms at one load to a ratio with an interval, a call and a sentence. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from sparktui.compare.stats import RunValue, decode_value, output_value, t975
from sparktui.schema.records import Call, Cell, Metric, Verdict

RESTART_FLOOR = (
    0.02  # relative noise between two starts of the same thing, until a calibration says otherwise
)
EQUIVALENCE = 0.03
EQUIVALENCE_STARTS = 4
_METRICS = {"decode_tok_s": decode_value, "output_tok_s": output_value}
_UNIT = {"decode_tok_s": "per stream", "output_tok_s": "output tok/s"}


@dataclass(frozen=True, slots=True)
class Comparison:
    """log(B/A), its standard error and degrees of freedom."""

    log_ratio: float
    error: float
    df: float

    @property
    def ratio(self) -> float:
        return math.exp(self.log_ratio)

    @property
    def ci95(self) -> tuple[float, float]:
        half = t975(self.df) * self.error
        return math.exp(self.log_ratio - half), math.exp(self.log_ratio + half)

    @property
    def call(self) -> Call:
        low, high = self.ci95
        if low > 1:
            return "faster"
        return "slower" if high < 1 else "not settled"


def quick(a: Sequence[RunValue], b: Sequence[RunValue], floor: float = RESTART_FLOOR) -> Comparison:
    """One start on a side: the errors within the runs and the restart-noise floor of each start;
    Welch–Satterthwaite df, the floor counted as known."""
    variance = sum(floor**2 / len(side) for side in (a, b))
    spread = 0.0
    for side in (a, b):
        shares = [(value.error / len(side)) ** 2 for value in side]
        variance += sum(shares)
        spread += sum(share**2 / value.df for share, value in zip(shares, side, strict=True))
    df = variance**2 / spread if spread > 0 else math.inf
    return Comparison(_mean(b) - _mean(a), math.sqrt(variance), df)


def pooled(a: Sequence[RunValue], b: Sequence[RunValue]) -> Comparison:
    """Several starts each: pooled two-sample t on the run values, never narrower than within the runs."""
    mean_a, mean_b = _mean(a), _mean(b)
    squares = sum((v.log_rate - mean_a) ** 2 for v in a) + sum((v.log_rate - mean_b) ** 2 for v in b)
    df = len(a) + len(b) - 2
    between = math.sqrt(squares / df * (1 / len(a) + 1 / len(b)))
    within = math.sqrt(sum(v.error**2 for v in a) / len(a) ** 2 + sum(v.error**2 for v in b) / len(b) ** 2)
    return Comparison(mean_b - mean_a, max(between, within), df)


def compare(a: Sequence[RunValue], b: Sequence[RunValue]) -> Comparison:
    """``quick`` with one start on either side, else ``pooled``."""
    if len(a) > 1 and len(b) > 1:
        return pooled(a, b)
    return quick(a, b)


def _mean(values: Sequence[RunValue]) -> float:
    return sum(value.log_rate for value in values) / len(values)


def equivalent(result: Comparison, starts: tuple[int, int]) -> bool:
    """Whether there is no difference within ±3 %: from four starts on either side on (two one-sided tests
    by the interval's inclusion)."""
    low, high = result.ci95
    return min(starts) >= EQUIVALENCE_STARTS and low > 1 - EQUIVALENCE and high < 1 + EQUIVALENCE


@dataclass(frozen=True, slots=True)
class Naming:
    """How the arms are spoken of: labels, and whether each speculates."""

    a: str
    b: str
    a_speculates: bool
    b_speculates: bool
    workload: str

    @property
    def on_off(self) -> bool:
        """Whether B against A is the question of speculation on or off."""
        return self.b_speculates and not self.a_speculates


def verdicts_at(
    load: int, cells_a: Sequence[Cell], cells_b: Sequence[Cell], naming: Naming
) -> tuple[Verdict, ...]:
    """Both metrics at one load, the headline first: decode tok/s per stream at c=1, output tok/s above."""
    order: tuple[Metric, Metric] = (
        ("decode_tok_s", "output_tok_s") if load == 1 else ("output_tok_s", "decode_tok_s")
    )
    return tuple(
        _verdict(load, metric, headline, cells_a, cells_b, naming)
        for metric, headline in zip(order, (True, False), strict=True)
    )


def _verdict(
    load: int, metric: Metric, headline: bool, cells_a: Sequence[Cell], cells_b: Sequence[Cell], names: Naming
) -> Verdict:
    a = [value for cell in cells_a if (value := _METRICS[metric](cell.batches))]
    b = [value for cell in cells_b if (value := _METRICS[metric](cell.batches))]
    starts = (len(a), len(b))
    if not a or not b:
        missing = " and ".join(name for name, values in ((names.a, a), (names.b, b)) if not values)
        text = f"No verdict at c={load}: {missing} gave no figure to compare."
        return Verdict(load, metric, headline, None, (), "could not measure", starts, True, text)
    result = compare(a, b)
    flagged = any(cell.flags for cell in (*cells_a, *cells_b))
    provisional = min(starts) < 2 or flagged
    call: Call = "no difference" if equivalent(result, starts) else result.call
    text = _sentence(result, call, metric, load, starts, provisional, names)
    return Verdict(load, metric, headline, result.ratio, result.ci95, call, starts, provisional, text)


def _sentence(
    result: Comparison,
    call: Call,
    metric: Metric,
    load: int,
    starts: tuple[int, int],
    provisional: bool,
    names: Naming,
) -> str:
    low, high = result.ci95
    badge = f"{starts[0]}v{starts[1]}" + (", provisional" if provisional else "")
    where = f"{_UNIT[metric]} at c={load}, {names.workload} ({badge})"
    ratio = f"{result.ratio:.2f}x [{low:.2f}, {high:.2f}]"
    if call == "no difference":
        return f"No difference worth a restart: {ratio} {where}."
    if call == "not settled":
        most = max(high - 1, 1 - low) * 100
        return f"Not settled: {ratio} {where}; at most {most:.0f} % either way."
    faster = call == "faster"
    if not names.on_off:
        return f"{names.b} is {'faster' if faster else 'slower'} than {names.a}: {ratio} {where}."
    if faster:
        return f"Keep speculation ON: {ratio} {where}."
    inverse = f"{1 / result.ratio:.2f}x faster without [{1 / high:.2f}, {1 / low:.2f}]"
    return f"Turn speculation OFF: {inverse} {where}."
