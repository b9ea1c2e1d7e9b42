"""Prompt files: what may stand on a line, and what is said of a line that is wrong."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sparktui.schema import promptfile
from sparktui.schema.codec import SchemaError
from sparktui.schema.promptfile import FilePrompt, PromptFileError, read
from sparktui.schema.workloads import file_of, known

USER = '[{"role": "user", "content": "Hi"}]'


def write(folder: Path, data: str | bytes) -> Path:
    path = folder / "p.jsonl"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path


def test_both_shapes_and_empty_lines(tmp_path: Path) -> None:
    path = write(tmp_path, f'\ufeff{USER}\r\n\n  \n{{"messages": {USER}, "max_tokens": 9, "source": "x"}}')
    message = {"role": "user", "content": "Hi"}
    assert read(path) == (FilePrompt([message]), FilePrompt([message], 9))


def test_tools_and_odd_contents_pass_through(tmp_path: Path) -> None:
    messages = '[{"role": "assistant", "content": null, "tool_calls": []}, {"role": "tool"}]'
    (prompt,) = read(
        write(tmp_path, f'{{"messages": {messages}, "tools": [{{"a": 1}}], "max_tokens": null}}')
    )
    assert prompt.messages == [
        {"role": "assistant", "content": None, "tool_calls": []}, {"role": "tool"}
    ]  # fmt: skip
    assert prompt.tools == [{"a": 1}]
    assert prompt.max_tokens is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("{", "not JSON: "),
        ("Hello", "not JSON: "),
        ("3", 'expected {"messages": [...]} or a list of messages, got a number'),
        ('"Hi"', "got text"),
        ('{"prompt": "Hi", "n": 1}', "got an object with 'prompt', 'n'"),
        ("{}", "got an object with no keys"),
        ("[]", "the list: expected messages, got an empty list"),
        ('{"messages": "Hi"}', "messages: expected messages, got text"),
        ('{"messages": []}', "messages: expected messages, got an empty list"),
        ('["Hi"]', "the list[0]: expected an object with role and content, got text"),
        (
            '{"messages": [{"role": "user", "content": "a"}, {"content": "b"}]}',
            "messages[1]: role is missing",
        ),
        ('[{"role": 3, "content": "b"}]', "the list[0]: role is not a name"),
        ('[{"role": "user", "content": 3}]', "the list[0]: content is a number, not text or a list of parts"),
        (f'{{"messages": {USER}, "max_tokens": 0}}', "max_tokens: expected an integer of at least 1, got 0"),
        (f'{{"messages": {USER}, "max_tokens": true}}', "max_tokens: expected an integer"),
        (f'{{"messages": {USER}, "max_tokens": "9"}}', "max_tokens: expected an integer"),
        (f'{{"messages": {USER}, "tools": {{}}}}', "tools: expected a list, got an object"),
    ],
)
def test_a_wrong_line_is_told_with_its_number(tmp_path: Path, line: str, says: str) -> None:
    path = write(tmp_path, f"{USER}\n\n{line}\n{USER}\n")
    with pytest.raises(PromptFileError) as caught:
        read(path)
    assert str(caught.value).startswith(f"{path}:3: ")
    assert says in str(caught.value)
    assert (caught.value.path, caught.value.line) == (path, 3)
    assert isinstance(caught.value, SchemaError)


def test_text_that_is_not_utf8_is_told_with_its_line(tmp_path: Path) -> None:
    with pytest.raises(PromptFileError, match=r"p\.jsonl:2: not JSON: "):
        read(write(tmp_path, USER.encode() + b'\n[{"role": "user", "content": "\xff"}]\n'))


def test_a_line_cannot_act_on_the_terminal(tmp_path: Path) -> None:
    with pytest.raises(PromptFileError) as caught:
        read(write(tmp_path, '{"\\u001b]0;x\\u0007": 1}'))
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("data", ["", "\n \n"])
def test_a_file_without_prompts_is_wrong(tmp_path: Path, data: str) -> None:
    path = write(tmp_path, data)
    with pytest.raises(PromptFileError) as caught:
        read(path)
    assert str(caught.value) == f"{path}: holds no prompts"


def test_what_is_no_file_is_told_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, says in (
        (tmp_path / "absent", "there is no such file"),
        (tmp_path, "is not a file"),
        (tmp_path / "pipe", "is not a file"),
        (tmp_path / ("x" * 300), "can't be read: File name too long"),
    ):
        with pytest.raises(PromptFileError) as caught:
            read(path)
        assert str(caught.value) == f"{path}: {says}"


def test_a_file_of_another_size_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path, USER)
    monkeypatch.setattr(promptfile, "MAX_BYTES", len(USER))
    assert len(read(path)) == 1
    monkeypatch.setattr(promptfile, "MAX_BYTES", len(USER) - 1)
    with pytest.raises(PromptFileError, match="larger than"):
        read(path)


@pytest.mark.parametrize(
    ("name", "path"),
    [("file:a/b.jsonl", Path("a/b.jsonl")), ("file:", None), ("chat", None), ("files:x", None), ("", None)],
)
def test_the_path_of_a_workload(name: str, path: Path | None) -> None:
    assert file_of(name) == path
    assert known(name) == (path is not None or name == "chat")
