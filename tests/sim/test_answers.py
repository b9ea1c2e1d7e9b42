"""What an answer says: its words, its thought, where stop strings end it."""

from __future__ import annotations

import pytest

from sparktui.sim.http import answers
from sparktui.sim.http.answers import StopStrings, script, thought_tokens, word
from sparktui.sim.model.engine import Request
from sparktui.sim.service import Delta
from tests.sim.test_service import service


def test_words_depend_on_the_seed_alone() -> None:
    whole = "".join(word(5, i) for i in range(20))
    assert script(5, 0, 20, StopStrings()).say(0, 20, ended=True) == ("", whole)
    assert whole != "".join(word(6, i) for i in range(20))


def test_thought_is_set_apart_with_or_without_stop_strings() -> None:
    for strings in ((), ("\0",)):
        said = script(5, 4, 10, StopStrings(strings))
        reasoning, content = said.say(0, 10, ended=True)
        assert reasoning == "".join(word(5, i) for i in range(3))
        assert content == "".join(word(5, i) for i in range(4, 10))
        assert said.say(3, 4, ended=False) == ("", "")
    assert 96 <= thought_tokens(5) < 160


def test_text_that_may_begin_a_stop_string_is_held_back() -> None:
    text = "".join(word(5, i) for i in range(10))
    said = script(5, 0, 10, StopStrings(("\0\0\0",)))
    assert said.say(0, 4, ended=False)[1] == "".join(word(5, i) for i in range(4))[:-2]
    assert "".join(said.say(i, i + 1, ended=i == 9)[1] for i in range(10)) == text


def test_stop_strings_count_only_after_min_tokens() -> None:
    text, stop = "".join(word(5, i) for i in range(200)), word(5, 3)
    early, late = (script(5, 0, 200, StopStrings((stop,), after)) for after in (0, 20))
    assert early.stop_at == next(
        i + 1 for i in range(200) if stop in "".join(word(5, j) for j in range(i + 1))
    )
    assert late.stop_at is not None
    assert late.stop_at > 20
    assert early.say(0, early.stop_at, ended=True)[1] == text[: text.index(stop)]


def far_stop(seed: int, least: int) -> tuple[str, str, int]:
    """A stop string that first comes after ``least`` tokens, from within one to within another.

    With the text before it, and the tokens when it is complete.
    """
    words = [word(seed, i) for i in range(least + 20)]
    before, text = "".join(words[:least]), "".join(words)
    stop = text[len(before) + 3 : len(before) + 33]
    assert text.index(stop) == len(before) + 3
    return stop, text[: len(before) + 3], next(i for i in range(least + 20) if stop in "".join(words[:i]))


@pytest.mark.parametrize("k", [0, 3])
def test_a_stop_string_far_away_is_found_on_the_way(k: int) -> None:
    stop, before, at = far_stop(5, 1300)
    serving = service(k=k)
    stream = serving.submit(Request("r", 10, 5000), script(5, 0, 5000, StopStrings((stop,))))
    (engine,) = serving.engines
    told = list[Delta]()
    stream.listen(lambda news: told.append(news.take()))
    while engine.due is not None:
        step = engine.step(engine.due)
        assert step is not None
        for output in step.outputs:
            stream.put(output)
    assert (stream.generated, stream.finish_reason, told[-1].stop_reason) == (at, "stop", stop)
    assert "".join(delta.content for delta in told) == before


def test_stop_strings_are_looked_for_as_far_as_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    made = list[int]()

    def counted(seed: int, index: int) -> str:
        made.append(index)
        return " word"

    monkeypatch.setattr(answers, "word", counted)
    said = script(5, 0, 1_000_000, StopStrings(("\0",)))
    assert len(made) <= 512
    assert said.say(0, 1000, ended=False)[1] == " word" * 1000
    assert made == list(range(len(made)))
    assert len(made) <= 1512


def test_what_ends_before_a_stop_string_is_told_whole() -> None:
    stop, before, at = far_stop(5, 40)
    said = script(5, 0, 5000, StopStrings((stop,)))
    assert said.stop_at == at
    text = "".join(word(5, i) for i in range(at - 1))
    assert said.say(0, at - 1, ended=True)[1] == text
    assert len(text) > len(before)


def test_of_two_stop_strings_the_one_that_is_complete_first_counts() -> None:
    text = "".join(word(5, i) for i in range(20))
    longer, shorter = text[30:40], text[33:38]
    said = script(5, 0, 20, StopStrings((longer, shorter)))
    assert (said.stop_reason, said.say(0, said.stop_at or 0, ended=True)[1]) == (shorter, text[:33])
