"""Arguments that were asked for and not taken: the command line against vLLM's "non-default args" line.

The line leaves out what equals its default, so a flag that is missing there counts only where its defaults
are known and none of them was asked for.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sparktui.bootlog.asked_argv import Asked, json_value, read_argv
from sparktui.bootlog.facts.config import SECRET
from sparktui.bootlog.facts.printed import NotPrinted, printed_value
from sparktui.bootlog.secrecy import masked
from sparktui.schema.live import Finding, Severity

_NOT_COMPARED = ("config", *SECRET)  # a file's arguments take its place
_SPEED = re.compile(
    r"(?:attention|moe|linear|mamba|all2all|gdn_prefill|kda_\w+|sparse_indexer_topk)_backend|mamba_ssu_algorithm"
    r"|speculative_config|spec_\w+|compilation_config|kernel_config|attention_config|\w*cudagraph_\w+"
    r"|enforce_eager|optimization_level|async_scheduling|enable_flashinfer_autotune|disable_custom_all_reduce"
)
_WITHOUT_SPEED = ("cudagraph_metrics",)
_ENUM = re.compile(r"<(?:\w+\.)*(\w+): (.*)>", re.DOTALL)
_QUALIFIED = re.compile(r"(?:\w*Enum|torch)\.(\w+)")
_HUMAN = re.compile(r"(\d+(?:\.\d+)?)([kmgtKMGT])")
_SHOWN = 80  # characters of a value


def compare_argv(argv: Sequence[str], facts: Mapping[str, Any]) -> tuple[Finding, ...]:
    """A finding for each argument of ``argv`` that vLLM took otherwise; none when the log doesn't say.

    Keys and tokens are neither compared nor shown.
    """
    taken = facts.get("non_default_args")
    if not isinstance(taken, dict):
        return ()
    found: list[Finding] = []
    for argument, asked in read_argv(argv, taken).items():
        if argument not in _NOT_COMPARED and (lost := tuple(_lost(argument, asked, taken))):
            found.append(_finding(argument, asked, "; ".join(lost)))
    return tuple(found)


def _lost(argument: str, asked: Asked, taken: Mapping[str, Any]) -> Iterator[str]:
    """What was asked for and not taken, in words."""
    wanted = asked.wanted
    if argument not in taken:
        if _never_a_default(wanted, asked.flag.defaults):
            yield f"{_shown(wanted)} was asked for, and vLLM did not take it"
        return
    value = taken[argument]
    if isinstance(wanted, dict) and isinstance(value, dict):
        complete = asked.twice or argument == "speculative_config"
        yield from _lost_keys(wanted, value, complete)
    elif not _same(wanted, value):
        yield f"{_shown(wanted)} was asked for, vLLM took {_shown(value)}"


def _lost_keys(wanted: Mapping[str, Any], taken: Mapping[str, Any], complete: bool) -> Iterator[str]:
    """``complete``: the log shows every key that was asked for, so that one which is missing was lost."""
    values = {_folded(str(key)): value for key, value in taken.items()}
    for key, value in wanted.items():
        if _folded(key) not in values:
            if complete:
                yield f"{key} {_shown(value)} was asked for, and vLLM did not take it"
        elif not _same(value, values[_folded(key)]):
            yield f"{key} {_shown(value)} was asked for, vLLM took {_shown(values[_folded(key)])}"


def _never_a_default(wanted: Any, defaults: Sequence[str]) -> bool:
    return bool(defaults) and not any(_same(wanted, _printed(default)) for default in defaults)


def _printed(text: str) -> Any:
    try:
        value = printed_value(text)
    except NotPrinted:
        return text
    return value


def _same(wanted: Any, taken: Any) -> bool:
    """Whether vLLM's value is what was asked for; what cannot be compared is."""
    if isinstance(taken, dict):
        inner = json_value(wanted) if isinstance(wanted, str) else wanted
        return not isinstance(inner, dict) or not any(_lost_keys(inner, taken, False))
    if isinstance(taken, list):
        return _same_list(wanted, taken)
    if taken is None or isinstance(taken, bool):
        return _folded(str(wanted)) in (str(taken).lower(), *(("null",) if taken is None else ()))
    if isinstance(taken, (int, float)):
        number = _number(wanted)
        return number is None or math.isclose(number, taken, rel_tol=1e-9)
    return _same_text(wanted, str(taken))


def _same_list(wanted: Any, taken: list[Any]) -> bool:
    """In any order: vLLM sorts capture sizes."""
    items = wanted if isinstance(wanted, list) else [wanted]
    if len(items) == 1 and isinstance(items[0], str):
        inner = json_value(items[0])
        items = inner if isinstance(inner, list) else items if len(taken) == 1 else items[0].split(",")
    if any(isinstance(item, dict) for item in taken):
        return True
    left = list(taken)
    for item in items:
        match = next((at for at, value in enumerate(left) if _same(item, value)), None)
        if match is None:
            return False
        del left[match]
    return not left


def _same_text(wanted: Any, taken: str) -> bool:
    if isinstance(wanted, (dict, list)) or wanted == taken:
        return True
    asked = _folded(str(wanted))
    if (enum := _ENUM.fullmatch(taken)) is not None:
        return asked in (_folded(enum[1]), _folded(enum[2]))
    if taken.startswith("<"):
        return True
    if (qualified := _QUALIFIED.fullmatch(taken)) is not None:
        return asked.rpartition(".")[2] == _folded(qualified[1])
    return asked == _folded(taken)


def _folded(text: str) -> str:
    """Case, dashes and quotes don't count: vLLM folds the names of backends."""
    return text.strip("'\"").lower().replace("-", "_")


def _number(value: Any) -> float | None:
    """A number, or one of vLLM's short forms: 1k is 1000, 1K is 1024, auto is -1."""
    text = str(value).strip()
    if text.lower() == "auto":
        return -1
    if (human := _HUMAN.fullmatch(text)) is not None:
        base = 1024 if human[2].isupper() else 1000
        return float(human[1]) * float(base ** ("kmgt".index(human[2].lower()) + 1))
    try:
        return float(text)
    except ValueError:
        return None


def _shown(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


def _finding(argument: str, asked: Asked, lost: str) -> Finding:
    speed = _SPEED.fullmatch(argument) is not None and argument not in _WITHOUT_SPEED
    severity: Severity = "costs speed" if speed else "note"
    remedy = (
        "Give the flag in one form only: vLLM puts --flag.key last, and it replaces the JSON."
        if asked.twice
        else "Look for the flag a second time on the command line, and for a wrapper that changes it."
    )
    return Finding(
        id="asked-not-taken",
        severity=severity,
        line=0,
        text=masked(f"{asked.flag.name}: {lost}"),
        meaning="The server runs with another value than its command line asks for.",
        remedy=remedy,
        flag=asked.flag.name,
    )
