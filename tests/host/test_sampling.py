"""Which sampling parameters count, and whose choice they are."""

from __future__ import annotations

from sparktui.host.sampling import sampling_text
from sparktui.schema.launch import LoadSpec

MODEL = {"sampling_overrides": {"temperature": 0.6, "top_k": 20, "top_p": 0.95, "max_tokens": 4096}}


def test_ours_come_first_and_stand_over_the_model_s() -> None:
    text = sampling_text(LoadSpec(temperature=1.0, min_p=0.05), MODEL)
    ours, models = "temperature 1 · min_p 0.05", "top_p 0.95 (model's) · top_k 20 (model's)"
    assert text == f"{ours} · {models} · the rest is the server's own"


def test_nothing_sent_and_nothing_told() -> None:
    assert sampling_text(LoadSpec(), {}) == "the server's own"
    assert sampling_text(LoadSpec(), {"sampling_overrides": "nonsense"}) == "the server's own"
