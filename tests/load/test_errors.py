"""What a refusal says, and how long it asks to be left in peace."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from sparktui.load.errors import error_text, refusal, retry_after_s

NOW = datetime(2026, 11, 30, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ({"error": "Unauthorized"}, "Unauthorized"),
        ({"error": {"message": "no such model", "code": 404}}, "no such model"),
        ({"error": {"code": 500}}, "{'code': 500}"),
        ({"detail": "Not Found"}, "Not Found"),
        ({"object": "error"}, "{'object': 'error'}"),
        ("just text", "just text"),
        ({"error": "x" * 9999}, "x" * 500),
    ],
)
def test_error_bodies_of_every_kind(body: object, says: str) -> None:
    assert error_text(body) == says


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        (None, 0.0),
        ("", 0.0),
        ("3", 3.0),
        (" 120 ", 120.0),
        ("-3", 0.0),
        ("1e9", 0.0),
        ("٣", 0.0),
        ("soon", 0.0),
        ("Mon, 30 Nov 2026 12:00:07 GMT", 7.0),
        ("Mon, 30 Nov 2026 11:59:00 GMT", 0.0),
        ("Mon, 30 Nov 2026 12:00:07 -0000", 7.0),
    ],
)  # fmt: skip
def test_retry_after_is_seconds_or_a_date(value: str | None, seconds: float) -> None:
    assert retry_after_s(value, NOW) == seconds


def test_a_refusal_keeps_its_status_and_its_wish() -> None:
    error = refusal(503, b'{"error":{"message":"warming up"}}', "2")
    assert (str(error), error.status, error.retry_s) == ("HTTP 503: warming up", 503, 2.0)


def test_a_refusal_that_is_no_json_is_cut_short() -> None:
    assert str(refusal(502, b"\xff" + b"x" * 900, None)) == "HTTP 502: \ufffd" + "x" * 199
