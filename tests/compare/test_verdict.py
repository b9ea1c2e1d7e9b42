"""Sentences: which way, how much, how sure, on what grounds."""

from __future__ import annotations

import pytest

from sparktui.compare.verdict import Naming, verdicts_at
from sparktui.schema.records import Batch, Cell, Verdict
from tests.compare.made import cell

ON_OFF = Naming("off", "on", False, True, "chat")


def flat(rate: float, load: int = 1, flags: tuple[str, ...] = ()) -> Cell:
    return cell(rate, rate, rate, concurrency=load, flags=flags)


def headline(a: float, b: float, naming: Naming = ON_OFF, load: int = 1) -> Verdict:
    first, second = verdicts_at(load, [flat(a, load)], [flat(b, load)], naming)
    assert first.headline
    assert not second.headline
    return first


def test_speculation_pays() -> None:
    verdict = headline(100, 145)
    assert verdict.text == (
        "Keep speculation ON: 1.45x [1.37, 1.53] per stream at c=1, chat (1v1, provisional)."
    )
    assert (verdict.call, verdict.starts, verdict.provisional) == ("faster", (1, 1), True)
    assert verdict.ratio == pytest.approx(1.45)


def test_speculation_costs() -> None:
    """W1's numbers: 77.5 tok/s without, 41 with."""
    verdict = headline(77.4, 41)
    assert verdict.text == (
        "Turn speculation OFF: 1.89x faster without [1.79, 2.00] per stream at c=1, chat (1v1, provisional)."
    )
    assert verdict.call == "slower"
    assert verdict.ci95[0] < 41 / 77.4 < verdict.ci95[1] < 1


def test_not_settled() -> None:
    verdict = headline(100, 103)
    assert verdict.text == (
        "Not settled: 1.03x [0.97, 1.09] per stream at c=1, chat (1v1, provisional); at most 9 % either way."
    )
    assert verdict.call == "not settled"


def test_not_settled_downwards_says_the_larger_side() -> None:
    assert headline(100, 97).text.endswith("at most 8 % either way.")  # 0.97 · 0.946 = 0.918


@pytest.mark.parametrize(
    ("naming", "a", "b", "text"),
    [
        (Naming("k3", "k2", True, True, "code"), 100, 110,
         "k2 is faster than k3: 1.10x [1.04, 1.16] output tok/s at c=8, code (1v1, provisional)."),
        (Naming("k3", "k2", True, True, "code"), 110, 100,
         "k2 is slower than k3: 0.91x [0.86, 0.96] output tok/s at c=8, code (1v1, provisional)."),
        (Naming("on", "off", True, False, "chat"), 100, 145,
         "off is faster than on: 1.45x [1.37, 1.53] output tok/s at c=8, chat (1v1, provisional)."),
        (Naming("a", "b", False, False, "chat"), 100, 145,
         "b is faster than a: 1.45x [1.37, 1.53] output tok/s at c=8, chat (1v1, provisional)."),
    ],
)  # fmt: skip
def test_variants_are_called_by_their_names(naming: Naming, a: float, b: float, text: str) -> None:
    assert headline(a, b, naming, load=8).text == text


@pytest.mark.parametrize(
    ("a", "b", "missing", "starts"),
    [
        ([], [flat(50)], "off", (0, 1)),
        ([flat(50)], [], "on", (1, 0)),
        ([flat(50)], [flat(0)], "on", (1, 0)),
        ([cell(50)], [cell(50, 51)], "off", (0, 1)),
        ([], [], "off and on", (0, 0)),
    ],
    ids=["no cell of A", "no cell of B", "no token in B", "one batch in A", "nothing"],
)
def test_without_a_figure_there_is_no_verdict(
    a: list[Cell], b: list[Cell], missing: str, starts: tuple[int, int]
) -> None:
    for verdict in verdicts_at(1, a, b, ON_OFF):
        assert verdict.text == f"No verdict at c=1: {missing} gave no figure to compare."
        assert (verdict.call, verdict.ratio, verdict.ci95) == ("could not measure", None, ())
        assert verdict.starts == starts
        assert verdict.provisional


@pytest.mark.parametrize(
    ("load", "order"),
    [
        (1, ["decode_tok_s", "output_tok_s"]),
        (2, ["output_tok_s", "decode_tok_s"]),
        (32, ["output_tok_s", "decode_tok_s"]),
    ],
)
def test_the_headline_is_per_stream_at_one_and_the_whole_above(load: int, order: list[str]) -> None:
    verdicts = verdicts_at(load, [flat(50, load)], [flat(60, load)], ON_OFF)
    assert [verdict.metric for verdict in verdicts] == order
    assert [verdict.headline for verdict in verdicts] == [True, False]
    assert {verdict.load for verdict in verdicts} == {load}


def test_both_figures_are_judged_by_themselves() -> None:
    """Per stream slower, the whole faster: more streams were decoding."""
    a = cell(1, 1, 1, concurrency=8, batches=(Batch(5.0, 1000, 1000, 10.0),) * 3)
    b = cell(1, 1, 1, concurrency=8, batches=(Batch(5.0, 1500, 1500, 30.0),) * 3)
    whole, stream = verdicts_at(8, [a], [b], ON_OFF)
    assert (whole.call, stream.call) == ("faster", "slower")
    assert [whole.ratio, stream.ratio] == pytest.approx([1.5, 0.5])


def test_two_starts_each_are_no_longer_provisional() -> None:
    a, b = [flat(100), flat(101)], [flat(144), flat(146)]
    first, _ = verdicts_at(1, a, b, ON_OFF)
    assert not first.provisional
    assert first.starts == (2, 2)
    assert first.text.endswith("per stream at c=1, chat (2v2).")


@pytest.mark.parametrize("flag", ["not steady", "client-limited"])
def test_a_flag_on_any_cell_keeps_it_provisional(flag: str) -> None:
    a, b = [flat(100), flat(101)], [flat(144), flat(146, flags=(flag,))]
    first, _ = verdicts_at(1, a, b, ON_OFF)
    assert first.provisional
    assert "(2v2, provisional)" in first.text
