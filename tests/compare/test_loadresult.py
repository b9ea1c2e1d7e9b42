"""Figures of a load: scripted totals and rows in, a LoadResult out. Regressions of other tools' faults."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest

from sparktui.compare.loadresult import Asked, Beside, load_result, percentiles
from sparktui.compare.loadwindow import Window, tokens_at
from sparktui.schema.codec import dumps, loads
from sparktui.schema.gaps import bucket
from sparktui.schema.launch import LoadSpec
from sparktui.schema.messages import LoadTotals
from sparktui.schema.records import LoadResult, RequestRow, ServerTimes, ServerWindow

ASKED = Asked("http://box:8000", "m", LoadSpec("chat", temperature=0.6), 2, 1000.0)
NOTHING = LoadTotals(0.0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0, 0.5, 0.1)


def line(t: float, tokens: int = 0, **more: Any) -> LoadTotals:
    """Two streams in flight, each decoding since t = 1, unless told otherwise."""
    made: dict[str, Any] = {
        "asked": 2, "in_flight": 2, "output_tokens": tokens, "decode_tokens": tokens, "chunks": tokens,
        "stream_seconds": max(0.0, 2 * (t - 1)), "usage": "continuous",
    }  # fmt: skip
    return dataclasses.replace(NOTHING, t=t, **made | more)


def row(end: float, total_s: float = 1.0, **more: Any) -> RequestRow:
    made: dict[str, Any] = {
        "ttft_ms": 100.0, "total_ms": total_s * 1000, "completion_tokens": 101, "decode_tokens": 100,
        "decode_s": total_s, "chunks": 101,
    }  # fmt: skip
    return RequestRow(0, end - total_s, **{"ok": True} | made | more)


def ramp() -> list[LoadTotals]:
    """Idle at 0; the first answers at 1 and 2; the window opens at 2 and ends at 6."""
    return [
        NOTHING,
        line(0.5, waiting=2, longest_wait_s=0.4),
        line(1.0, 10, waiting=1, longest_wait_s=0.9, ttft_ms=(600.0,), gaps={str(bucket(900.0)): 1}),
        line(2.0, 100, ttft_ms=(1500.0,), gaps={str(bucket(900.0)): 1}),
        line(4.0, 300, ttft_ms=(80.0,), gaps={str(bucket(10.0)): 98, str(bucket(50.0)): 2}),
        line(6.0, 500, ttft_ms=(120.0,), gaps={str(bucket(10.0)): 100}),
    ]


def windowed(lines: list[LoadTotals], concurrency: int = 2) -> Window:
    window = Window(concurrency)
    for totals in lines:
        window.take(totals)
    return window


def result(
    lines: list[LoadTotals],
    rows: tuple[RequestRow, ...] = (),
    final: LoadTotals | None = None,
    beside: Beside | None = None,
    complete: bool = True,
) -> LoadResult:
    return load_result(ASKED, windowed(lines), rows, final or lines[-1], beside or Beside(), complete)


def test_the_window_opens_when_every_stream_has_had_its_first_text() -> None:
    window = Window(2)
    assert [window.take(totals) for totals in ramp()] == [False, False, False, True, False, False]
    assert [totals.t for totals in window.span] == [2.0, 4.0, 6.0]


def test_a_stream_that_waits_for_its_second_answer_does_not_keep_it_closed() -> None:
    lines = [*ramp()[:3], line(2.0, 100, waiting=1, longest_wait_s=0.3)]
    assert windowed(lines).steady
    lines[-1] = line(2.0, 100, waiting=1, longest_wait_s=1.9)  # since before both had begun: its first
    assert not windowed(lines).steady


def test_not_before_the_concurrency_is_reached() -> None:
    lines = [NOTHING, *(line(t, int(100 * t), in_flight=1) for t in (1.0, 2.0, 3.0))]
    assert not windowed(lines).steady
    assert windowed([*lines, line(4.0, 400), line(4.2, 420)]).steady


def test_a_pause_within_the_window_is_told() -> None:
    """A server that hung for a while and went on: its mean rate alone would hide it."""
    hung = [line(6.2 + 0.2 * i, 500) for i in range(20)]
    told = "nothing came for 4.0 s in the window, while streams were decoding"
    assert told in result([*ramp(), *hung, line(10.2, 520)]).flags
    assert not [f for f in result([*ramp(), *hung[:5], line(7.2, 520)]).flags if "nothing came" in f]
    waits = [dataclasses.replace(idle, waiting=2) for idle in hung]  # long prompts: nobody decodes
    assert told not in result([*ramp(), *waits, line(10.2, 520)]).flags


def test_output_is_what_came_in_the_window_over_the_window() -> None:
    """Not tokens of finished requests over the duration: that has the ramp in it, and drops what is in
    flight. Here: 500 tokens in 6 s would be 83, finished ones 17."""
    found = result(ramp(), (row(5.0),), line(7.0, 560, asked=0, in_flight=0))
    assert found.output_tok_s == pytest.approx(400 / 4.0)
    assert found.window_s == pytest.approx(4.0)
    assert found.seconds == pytest.approx(6.0)


def test_neither_ramp_nor_drain_is_in_any_figure() -> None:
    drain = line(8.0, 640, asked=0, in_flight=1, ttft_ms=(5000.0,), gaps={str(bucket(4000.0)): 1})
    rows = (row(1.5, decode_s=50.0), row(5.0), row(7.5, decode_s=50.0))
    found = result([*ramp(), drain], rows, drain)
    assert found.output_tok_s == pytest.approx(100.0)
    assert found.ttft_ms == {"p50": 100.0, "p95": pytest.approx(118.0), "p99": pytest.approx(119.6)}
    assert found.chunk_gap_ms["p50"] == pytest.approx(10.0, rel=0.01)
    assert found.chunk_gap_ms["p99"] == pytest.approx(10.0, rel=0.01)
    assert found.requests == 1
    assert found.decode_tok_s["p50"] == pytest.approx(100.0)


def test_lines_after_the_time_are_not_the_windows() -> None:
    window = windowed(ramp())
    window.closed = True
    window.take(line(9.0, 5000))
    assert window.span[-1].t == 6.0


def test_pooled_decode_has_the_requests_in_flight_too() -> None:
    assert result(ramp()).decode_tok_s == {"pooled": pytest.approx(400 / 8.0)}


def test_short_and_failed_requests_are_excluded_from_decode_and_counted() -> None:
    short = row(4.5, decode_tokens=31, decode_s=0.001)
    failed = row(4.6, ok=False, error="HTTP 500: no", decode_s=0.001)
    cut = row(4.7, ok=False, cancelled=True, decode_s=0.001)
    final = line(7.0, 500, asked=0, errors=1, cancelled=1, done=4, ok=2)
    found = result(ramp(), (row(5.0), short, failed, cut), final)
    assert (found.requests, found.excluded, found.errors, found.cancelled) == (2, 1, 1, 1)
    assert found.decode_tok_s["p50"] == pytest.approx(100.0)
    assert found.error_kinds == {"HTTP 500: no": 1}
    assert "failed requests: 1 of 4" in found.flags


def test_errors_before_and_after_the_window_are_not_hidden() -> None:
    rows = tuple(row(t, ok=False, error=text) for t, text in ((0.5, "early"), (6.5, "late"), (6.6, "late")))
    found = result(ramp(), rows, line(7.0, 500, asked=0, errors=3, done=9))
    assert found.errors == 3
    assert found.error_kinds == {"late": 2, "early": 1}


def test_no_usage_is_chunks_a_second_and_never_tok_s() -> None:
    bare: dict[str, Any] = {"output_tokens": 0, "decode_tokens": 0, "usage": "none"}
    lines = [dataclasses.replace(totals, **bare) for totals in ramp()]
    found = result(lines, (row(5.0, completion_tokens=None, decode_tokens=None, usage="none"),))
    assert found.output_tok_s is None
    assert found.chunks_s == pytest.approx(100.0)
    assert found.decode_tok_s == {}
    assert found.excluded == 0


def test_counts_at_the_end_are_of_the_window_where_their_text_was() -> None:
    """Two streams at 50 tok/s, two answers each. The counts of the first came before the window (2 to 6 s)
    or just after its beginning, those of the last in the drain."""
    told = (250, 500, 500, 500, 500, 500)
    lines = [
        dataclasses.replace(totals, output_tokens=tokens, usage="final")
        for totals, tokens in zip(ramp(), told, strict=True)
    ]
    answer = {"completion_tokens": 251, "decode_tokens": 250, "decode_s": 5.0, "usage": "final"}
    rows = tuple(row(end, 5.1, **answer) for end in (2.2, 3.2, 7.3, 8.3))
    found = result(lines, rows, line(9.0, 1000, asked=0, usage="final"), Beside(joules=800.0))
    came = 2 * 50 * (4.0 - 0.1) + 2  # each waited 0.1 s for its second answer, whose first token is one more
    assert found.output_tok_s == pytest.approx(came / 4.0)
    assert found.joules_per_token == pytest.approx(800.0 / came)
    assert found.chunks_s is None
    assert "token counts come only at each answer's end" in found.flags


def test_counts_at_the_end_of_answers_that_broke_off() -> None:
    lines = [dataclasses.replace(totals, output_tokens=0, usage="") for totals in ramp()]
    cut = row(8.0, 7.9, ok=False, cancelled=True, completion_tokens=None, decode_tokens=None, decode_s=None)
    whole = row(8.0, 7.9, completion_tokens=391, decode_tokens=390, decode_s=7.8, usage="final")
    found = result(lines, (cut, whole))
    assert found.output_tok_s == pytest.approx(100.0)
    assert any(flag.startswith("1 of them broke off before it: ") for flag in found.flags)
    alone = result(lines, (cut,))
    assert alone.output_tok_s is None
    assert alone.chunks_s == pytest.approx(100.0)


def test_poor_usage_before_the_window_does_not_spoil_it() -> None:
    lines = [dataclasses.replace(totals, usage="none" if totals.t < 6 else "continuous") for totals in ramp()]
    early = row(1.5, usage="none", completion_tokens=None, decode_tokens=None)
    assert result(lines, (early, row(5.0, usage="continuous"))).output_tok_s == pytest.approx(100.0)


def test_ids_in_errors_make_no_kinds_of_their_own() -> None:
    uuid = "3f2a9c1e-77b0-4c1d-9e{:02d}-0a1b2c3d4e5f"
    texts = [f"HTTP 500: request {uuid.format(n)} failed at step 7" for n in range(30)]
    texts += [f"HTTP 404: no facade for chatcmpl-{n:032x}" for n in range(20)]
    found = result(ramp(), tuple(row(5.0, ok=False, error=text) for text in texts))
    assert found.error_kinds == {
        "HTTP 500: request … failed at step 7": 30,
        "HTTP 404: no facade for chatcmpl-…": 20,
    }


@pytest.mark.parametrize(("kinds", "shown", "rest"), [(10, 10, {}), (11, 9, {"one of 2 other kinds": 2})])
def test_kinds_of_errors_are_few(kinds: int, shown: int, rest: dict[str, int]) -> None:
    texts = ["HTTP 503: busy"] * 5 + [f"word {'x' * n}" for n in range(1, kinds)]
    found = result(ramp(), tuple(row(5.0, ok=False, error=text) for text in texts))
    assert len(found.error_kinds) == shown + len(rest)
    assert found.error_kinds["HTTP 503: busy"] == 5
    assert sum(found.error_kinds.values()) == len(texts)
    assert rest.items() <= found.error_kinds.items()


def test_without_a_steady_window_it_says_so_and_uses_what_there_is() -> None:
    found = result(ramp()[:3])
    assert found.window_s == pytest.approx(1.0)
    assert found.output_tok_s == pytest.approx(10.0)
    assert found.ttft_ms == {"p50": 600.0}
    assert any(flag.startswith("no steady window") for flag in found.flags)
    assert any(flag.startswith("no request finished in the window of 1.0 s") for flag in found.flags)


def test_nothing_that_came_is_not_known_rather_than_zero() -> None:
    failing = [NOTHING, *(line(t, 0, errors=int(4 * t), done=int(4 * t), usage="") for t in (1.0, 2.0, 3.0))]
    found = result(failing, (row(1.0, ok=False, error="HTTP 429: busy"),))
    assert found.output_tok_s is None
    assert found.chunks_s is None
    assert found.ttft_ms == {}
    assert found.decode_tok_s == {}
    assert found.errors == 12
    assert "no answers at the end: for 3.0 s every request failed" in found.flags


def test_interrupted_before_the_first_request() -> None:
    found = result([NOTHING], complete=False)
    assert found.window_s == 0
    assert found.output_tok_s is None
    assert not found.complete


def test_a_server_that_went_away_is_not_averaged_in() -> None:
    dead = [line(6.0 + t, 500, errors=int(4 * t), done=5 + int(4 * t)) for t in (1.0, 2.0, 4.0)]
    window = windowed([*ramp(), *dead])
    assert window.lost
    assert window.silent_s == pytest.approx(4.0)
    found = load_result(ASKED, window, (), dead[-1], Beside(), False)
    assert found.output_tok_s == pytest.approx(100.0)
    assert found.window_s == pytest.approx(4.0)
    assert found.seconds == pytest.approx(10.0)
    assert "no answers at the end: for 4.0 s every request failed" in found.flags
    assert "ended early, after 10.0 s" in found.flags


def test_a_server_that_hangs_is_averaged_in_and_told() -> None:
    found = result([*ramp(), line(16.0, 500)])
    assert found.output_tok_s == pytest.approx(400 / 14.0)
    assert "nothing came for the last 10 s" in found.flags


@pytest.mark.parametrize(("count", "told"), [(1, True), (99, True), (100, False)])
def test_tails_of_few_requests_are_marked(count: int, told: bool) -> None:
    found = result(ramp(), tuple(row(5.0) for _ in range(count)))
    text = f"few requests ({count}): tail percentiles are single answers"
    assert (text in found.flags) is told


def test_first_content_only_where_it_comes_later_than_the_first_text() -> None:
    same = tuple(row(5.0, ttfc_ms=100.0) for _ in range(3))
    assert result(ramp(), same).ttfc_ms == {}
    assert result(ramp(), (*same, row(5.5, ttfc_ms=900.0))).ttfc_ms["p50"] == 100.0


def test_server_times_of_the_answers_stand_beside_ours() -> None:
    rows = tuple(row(5.0, server=ServerTimes(ttft_ms=value)) for value in (90.0, 94.0))
    assert result(ramp(), rows).server_ttft_ms["p50"] == pytest.approx(92.0)


def test_client_health_of_the_window_only() -> None:
    lines = [dataclasses.replace(totals, lag_ms_p99=90.0, cpu=1.0) for totals in ramp()[:4]]
    found = result(lines + ramp()[4:], beside=Beside(limited=True))
    assert found.client.lag_ms_p99 == 0.5
    assert found.client.cpu == 0.1
    assert found.client.limited
    assert "client-limited" in found.flags


def test_energy_a_token_is_of_the_window() -> None:
    found = result(ramp(), beside=Beside(power_w=50.0, joules=200.0))
    assert found.joules_per_token == pytest.approx(200.0 / 400)
    assert result(ramp()).joules_per_token is None


def test_prefix_hits_are_flagged_where_prompts_are_meant_to_be_unique() -> None:
    beside = Beside(ServerWindow(prefix_hit_rate=0.3))
    assert "prefix hits 30%" in result(ramp(), beside=beside).flags
    meant = dataclasses.replace(ASKED, load=LoadSpec("shared-prefix"))
    found = load_result(meant, windowed(ramp()), (), ramp()[-1], beside, True)
    assert not any("prefix" in flag for flag in found.flags)


@pytest.mark.parametrize(
    ("per_s", "told"),
    [(lambda t: 100 - 2 * t, True), (lambda t: 100.0, False), (lambda t: 100 + 20 * (t % 2), False)],
    ids=["falling", "flat", "up and down"],
)
def test_a_rate_that_drifts_is_not_steady(per_s: Any, told: bool) -> None:
    tokens, lines = 0.0, [NOTHING, line(0.5, 1)]
    for t in range(1, 26):
        tokens += per_s(t)
        lines.append(line(float(t), round(tokens)))
    assert any(flag.startswith("not steady: output tok/s moved by -") for flag in result(lines).flags) is told


def test_sampling_is_what_is_sent() -> None:
    assert result(ramp()).sampling == {"temperature": 0.6, "ignore_eos": True}
    free = dataclasses.replace(
        ASKED, load=LoadSpec(ignore_eos=False, chat_template_kwargs={"enable_thinking": False})
    )
    found = load_result(free, windowed(ramp()), (), ramp()[-1], Beside(), True)
    assert found.sampling == {"chat_template_kwargs": {"enable_thinking": False}}


def test_lengths_are_the_workloads_own_unless_given() -> None:
    found = result(ramp())
    assert (found.input_tokens, found.output_tokens) == (512, 256)


def test_it_survives_its_own_json() -> None:
    found = result(ramp(), (row(5.0),), beside=Beside(ServerWindow(output_tok_s=99.0)))
    assert loads(LoadResult, dumps(found)) == found


@pytest.mark.parametrize(
    ("values", "expected"),
    [([], {}), ([7.0], {"p50": 7.0}), ([1.0, 3.0], {"p50": 2.0, "p95": 2.9, "p99": 2.98})],
    ids=["none", "one", "two"],
)
def test_percentiles_need_values(values: list[float], expected: dict[str, float]) -> None:
    assert percentiles(values) == {name: pytest.approx(value) for name, value in expected.items()}


def test_tokens_between_two_lines() -> None:
    lines = [line(1.0, 10), line(2.0, 30)]
    assert [tokens_at(lines, t) for t in (0.5, 1.0, 1.5, 2.0, 9.0)] == [10, 10, 20, 30, 30]


def test_what_is_to_know_of_the_prompts_is_a_flag() -> None:
    note = "prompts have 510 to 512 tokens, not 512: this tokenizer allows no closer"
    lines = ramp()
    assert note in result(lines, final=dataclasses.replace(lines[-1], note=note)).flags
    assert "" not in result(lines).flags
