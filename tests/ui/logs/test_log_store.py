"""The model behind the log pane, on recorded logs."""

from __future__ import annotations

import pytest

from sparktui.schema.live import Finding, Severity
from sparktui.ui.widgets.log_store import CAPACITY, LogStore
from sparktui.ui.widgets.log_text import parse, plain, spans
from tests.ui.logs.looking import W1, log_lines, w1_finding, w1_findings, w1_lines


def finding(line: int, severity: Severity = "costs speed", id: str = "r") -> Finding:
    return Finding(id, severity, line, f"text {line}", "meaning")


def numbers(store: LogStore) -> list[int]:
    return [row.number for row in store.rows]


@pytest.fixture
def w1() -> LogStore:
    store = LogStore()
    store.extend(1, w1_lines())
    store.mark(w1_findings())
    return store


@pytest.mark.parametrize("name", [W1, "0.32.0-cpu/boot_off_noconflict_pipe.log", "0.27.1-cpu/boot_draft.log"])
def test_levels_agree_with_the_boot_logs_reader(name: str) -> None:
    read = [(line.level, line.text) for line in log_lines(name) if line.level]
    assert len(read) > 30
    assert [parse(1, text).level for _, text in read] == [level for level, _ in read]


@pytest.mark.parametrize(
    ("text", "level"),
    [
        ("(EngineCore pid=12) WARNING 11-30 18:17:11 [compilation.py:1405] CUDAGraphMode", "WARNING"),
        ("INFO:     Application startup complete.", "INFO"),
        ("(APIServer pid=1) INFO:     127.0.0.1:1", "INFO"),
        ("ERROR 11-30 18:17:11 [core.py:1] died", "ERROR"),
        ("[W1130 18:16:40.492666957 socket.cpp:207] [c10d] no", "WARNING"),
        ("Traceback (most recent call last):", "ERROR"),
        ("ValueError: no", "ERROR"),
        ("torch.OutOfMemoryError: CUDA", "ERROR"),
        ("/usr/lib/python3.12/x.py:254: UserWarning: leaked", "WARNING"),
        ("INFORMATION", ""),
        ("the ERROR is elsewhere", ""),
        ("", ""),
    ],
)
def test_level_stands_at_the_head(text: str, level: str) -> None:
    assert parse(1, text).level == level


def test_indented_line_has_the_level_above() -> None:
    store = LogStore()
    store.extend(1, ["Traceback (most recent call last):", '  File "x.py", line 1'])
    store.extend(3, ["    raise", "ValueError: x", "INFO:     on", "bare"])
    assert [row.level for row in store.rows] == ["ERROR"] * 4 + ["INFO", ""]


def test_brief_form_keeps_time_level_and_message() -> None:
    line = parse(34, w1_lines()[33])
    assert line.brief.startswith("18:17:11 WARN  CUDAGraphMode.FULL_AND_PIECEWISE is not supported")
    assert line.brief.endswith("setting cudagraph_mode=PIECEWISE")
    assert parse(1, "(APIServer pid=1) INFO:     Shutting down").brief == "         INFO  Shutting down"
    assert parse(1, "bare [x.py:1] text").brief == "bare [x.py:1] text"


def test_overlap_is_skipped_and_gap_is_kept() -> None:
    store = LogStore()
    store.extend(1, ["a", "b", "c"])
    store.extend(2, ["B", "C", "d"])
    store.extend(10, ["j"])
    store.extend(4, ["late"])
    assert [(row.number, row.text) for row in store.rows] == [
        (1, "a"),
        (2, "b"),
        (3, "c"),
        (4, "d"),
        (10, "j"),
    ]
    assert store.last == 10
    assert store.row_of(7) == 4
    assert store.line(7) is None


def test_ring_keeps_the_newest_and_says_what_fell_off() -> None:
    store = LogStore()
    assert store.extend(1, [f"line {n}" for n in range(1, CAPACITY + 1)]) == 0
    assert store.matches("line 10") != []
    assert store.extend(CAPACITY + 1, ["x"] * 25) == 25
    assert numbers(store) == list(range(26, CAPACITY + 26))
    assert store.matches("line 10")[0] == 100
    assert store.extend(store.last + 1, ["y"] * (CAPACITY + 7)) == CAPACITY
    assert (store.held, store.rows[0].text, store.last) == (CAPACITY, "y", 2 * CAPACITY + 32)


def test_warnings_only_shows_warnings_and_findings_above_note(w1: LogStore) -> None:
    everything = len(w1.rows)
    w1.warnings_only = True
    assert 34 in numbers(w1)
    assert len(w1.rows) == 12
    assert all(row.level == "WARNING" for row in w1.rows)
    info = next(line for line in range(1, 60) if line not in numbers(w1))
    w1.mark([*w1_findings(), finding(info)])
    assert info in numbers(w1)
    w1.mark([*w1_findings(), finding(info, "note")])
    assert info not in numbers(w1)
    w1.extend(w1.last + 1, ["INFO:     no", "WARNING 11-30 18:17:11 [a.py:1] yes"])
    assert w1.rows[-1].text.endswith("yes")
    w1.warnings_only = False
    assert len(w1.rows) == everything + 2


def test_access_lines_are_folded_unless_they_failed_or_matter() -> None:
    store = LogStore()
    store.extend(1, [line.text for line in log_lines("0.24.0-h200/boot_off.log")])
    store.extend(
        store.last + 1, ['INFO:     1.1.1.1:1 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error']
    )
    access = store.held - len(store.rows)
    assert access > 5
    assert [row.text[-25:] for row in store.rows if "HTTP/1.1" in row.text] == ["500 Internal Server Error"]
    store.show_access = True
    assert len(store.rows) == store.held
    folded = next(row for row in store.rows if "GET /metrics HTTP" in row.text)
    store.show_access = False
    assert store.line(folded.number) is None
    store.mark([finding(folded.number)])
    assert store.line(folded.number) == folded


def test_find_is_plain_text_and_ignores_case(w1: LogStore) -> None:
    expected = [n for n, text in enumerate(w1_lines(), 1) if "cudagraph_mode=piecewise" in text.lower()]
    assert w1.matches("CUDAGRAPH_mode=piece") == expected != []
    assert w1.matches(".*") == []
    assert w1.matches("(EngineCore pid=1095) WARN")[:2] == [17, 22]


def test_find_follows_new_lines_and_filters(w1: LogStore) -> None:
    before = len(w1.matches("cudagraph"))
    w1.extend(w1.last + 1, ["nothing", "CudaGraph again"])
    assert w1.matches("cudagraph")[-1] == w1.last
    assert len(w1.matches("cudagraph")) == before + 1
    w1.warnings_only = True
    assert w1.matches("cudagraph") == [34]


def test_stepping_goes_round_the_ends(w1: LogStore) -> None:
    w1.warnings_only = True
    hits = w1.matches("Model Runner V2")
    assert list(hits) == [15, 17]
    assert [w1.step_match("Model Runner V2", at, 1) for at in (0, 15, 16, 17)] == [15, 17, 17, 15]
    assert [w1.step_match("Model Runner V2", at, -1) for at in (15, 16, 99)] == [17, 15, 17]
    assert w1.step_match("absent", 1, 1) is None


def test_findings_by_line_the_gravest_first(w1: LogStore) -> None:
    assert w1.finding(34) == w1_finding()
    harmless = w1.finding(8)
    assert harmless is not None
    assert harmless.severity == "harmless"
    grave = finding(34, "boot fails", "grave")
    assert w1.mark([*w1_findings(), grave])
    assert w1.finding(34) == grave
    assert not w1.mark([grave, *w1_findings()])
    assert w1.step_finding(15, 1) == w1.finding(22)
    assert w1.step_finding(12, -1) == w1.finding(
        max(f.line for f in w1_findings() if f.severity != "harmless")
    )


def test_a_finding_whose_line_is_not_shown_is_stepped_over(w1: LogStore) -> None:
    w1.mark([finding(34), finding(99_999)])
    assert w1.step_finding(34, 1) == finding(34)


def test_control_characters_never_come_through() -> None:
    text = plain("a\x1b[31mb\x07\x9b1m\u202ec\ud800\td\r\n")
    assert text.isprintable()
    assert text.startswith("a�[31mb��1m�c�")
    assert plain("[/x] [red] ü 漢字") == "[/x] [red] ü 漢字"
    assert plain("a\tb") == "a       b"


def test_spans_are_literal() -> None:
    assert spans("a.B a.b axb", "A.b") == [(0, 3), (4, 7)]
    assert spans("abc", "") == []


def test_width_counts_cells() -> None:
    store = LogStore()
    store.extend(1, ["漢字", "abc"])
    assert store.width == 4


def test_clear_forgets(w1: LogStore) -> None:
    w1.clear()
    assert (w1.last, list(w1.rows), w1.finding(34), w1.width) == (0, [], None, 0)
    w1.extend(1, ["again"])
    assert numbers(w1) == [1]


def test_a_harmless_warning_is_no_warning(w1: LogStore) -> None:
    loud = next(row.number for row in w1.rows if row.level == "WARNING" and w1.finding(row.number) is None)
    w1.warnings_only = True
    assert w1.left_out == 1  # the ulimit line
    w1.mark([*w1_findings(), finding(loud, "harmless", "h")])
    assert loud not in numbers(w1)
    assert w1.left_out == 2
    assert w1.harmless(loud)
    found = w1.step_finding(loud - 1, 1)
    assert found is None or found.line != loud


def test_every_line_of_a_record_knows_its_finding() -> None:
    store = LogStore()
    store.extend(1, ["a", "b", "  c", "d"])
    told = Finding("r", "boot fails", 2, "b", "meaning", lines=2)
    store.mark([told, Finding("nowhere", "note", 0, "x", "meaning")])
    assert [store.finding_around(n) for n in (1, 2, 3, 4)] == [None, told, told, None]
    assert store.finding(3) is None
    assert store.finding(0) is None
    assert store.texts(told.line, told.lines) == ["b", "  c"]


def test_texts_are_those_still_kept() -> None:
    store = LogStore()
    store.extend(5, ["e", "f"])
    assert store.texts(3, 3) == ["e"]
    assert store.texts(6, 9) == ["f"]
    assert store.texts(40, 2) == []


HEAD = "(EngineCore pid=1) ERROR 11-30 18:17:11 [core.py:9] "


@pytest.mark.parametrize("head", [HEAD, "(EngineCore pid=1) ", ""], ids=["logged", "prefixed", "bare"])
def test_a_traceback_is_one_record(head: str) -> None:
    before, after = "INFO:     before", f"{HEAD}after"
    trace = [
        "Traceback (most recent call last):",
        '  File "x.py", line 1, in f',
        "    raise X",
        "ValueError: x",
    ]
    store = LogStore()
    store.extend(1, [before, *(head + line for line in trace), after])
    for number in (2, 3, 4, 5):
        assert store.record(number) == (2, [head + line for line in trace])
    assert store.record(1) == (1, [before])
    assert store.record(6) == (6, [after])
    assert store.record(99) == (99, [])


def test_lines_of_one_place_in_the_source_are_records_of_their_own() -> None:
    head = "(APIServer pid=1) INFO 11-30 18:17:11 [launcher.py:37] "
    store = LogStore()
    store.extend(1, [f"{head}Route: /docs", f"{head}Route: /health", "plain", "another"])
    assert store.record(2) == (2, [f"{head}Route: /health"])
    assert store.record(4) == (4, ["another"])
