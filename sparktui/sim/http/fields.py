"""Types and ranges of a completion request's fields, checked and worded as pydantic and vLLM do."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from sparktui.sim.http.refusals import FieldError, Refused, refused_value

_INTS = ("max_tokens", "max_completion_tokens", "min_tokens", "n", "top_k", "seed")
_FLOATS = ("temperature", "top_p", "min_p", "presence_penalty", "frequency_penalty", "repetition_penalty")
_BOOLS = ("stream", "ignore_eos", "include_reasoning", "include_stop_str_in_output")
_TRUE, _FALSE = ("true", "t", "yes", "y", "on", "1"), ("false", "f", "no", "n", "off", "0")
_MOST_CHOICES = 16384  # VLLM_MAX_N_SEQUENCES
_GREEDY = 1e-5  # temperatures below are greedy


class _Wrong(Exception):
    """Kind and message of a value that a field does not take."""


def typed(body: Mapping[str, Any]) -> tuple[dict[str, Any], list[FieldError]]:
    """The body with the fields above converted, and what is wrong with it."""
    values, errors = dict(body), list[FieldError]()
    for names, convert in _CONVERTERS:
        for name in names:
            if values.get(name) is None:
                values.pop(name, None)
                continue
            try:
                values[name] = convert(values[name])
            except _Wrong as wrong:
                kind, message = wrong.args
                errors.append(FieldError(kind, (name,), message, values[name]))
    return values, errors


def check_ranges(values: Mapping[str, Any], max_tokens: int) -> None:
    """Raises Refused(400) for sampling parameters that vLLM does not take, in its order."""
    n = values.get("n", 1)
    if n < 1:
        raise Refused(400, f"n must be at least 1, got {n}.")
    if n > _MOST_CHOICES:
        text = "To increase this limit, set the VLLM_MAX_N_SEQUENCES environment variable."
        raise Refused(400, f"n must be at most {_MOST_CHOICES}, got {n}. {text}")
    for name in ("presence_penalty", "frequency_penalty"):
        if not -2.0 <= values.get(name, 0.0) <= 2.0:
            raise Refused(400, f"{name} must be in [-2, 2], got {values[name]}.")
    if (penalty := values.get("repetition_penalty", 1.0)) <= 0.0:
        raise Refused(400, f"repetition_penalty must be greater than zero, got {penalty}.")
    _check_sampling(values)
    _check_lengths(values, max_tokens)
    if any(not string for string in stop_strings(values)):
        raise Refused(400, "stop cannot contain an empty string.")
    if n > 1 and values.get("temperature", 1.0) < _GREEDY:
        raise Refused(400, f"n must be 1 when using greedy sampling, got {n}.")


def stop_strings(values: Mapping[str, Any]) -> tuple[str, ...]:
    """``stop``: one string or several."""
    stop = values.get("stop") or ()
    given: Iterable[Any] = (stop,) if isinstance(stop, str) else stop if isinstance(stop, list) else ()
    return tuple(item for item in given if isinstance(item, str))


def _check_sampling(values: Mapping[str, Any]) -> None:
    temperature, top_p, top_k = (
        values.get("temperature", 1.0),
        values.get("top_p", 1.0),
        values.get("top_k", 0),
    )
    if not math.isfinite(temperature):
        text = f"temperature must be a finite number, got {temperature}."
        raise refused_value(text, "temperature", temperature)
    if temperature < 0.0:
        raise refused_value(
            f"temperature must be non-negative, got {temperature}.", "temperature", temperature
        )
    if temperature > 2.0:
        raise refused_value(f"temperature must be in [0, 2], got {temperature}.", "temperature", temperature)
    if not 0.0 < top_p <= 1.0:
        raise refused_value(f"top_p must be in (0, 1], got {top_p}.", "top_p", top_p)
    if top_k < -1:
        raise Refused(400, f"top_k must be 0 (disable), or at least 1, got {top_k}.")
    if not 0.0 <= (min_p := values.get("min_p", 0.0)) <= 1.0:
        raise Refused(400, f"min_p must be in [0, 1], got {min_p}.")


def _check_lengths(values: Mapping[str, Any], max_tokens: int) -> None:
    least = values.get("min_tokens", 0)
    if max_tokens < 1:
        raise refused_value(f"max_tokens must be at least 1, got {max_tokens}.", "max_tokens", max_tokens)
    if least < 0:
        raise Refused(400, f"min_tokens must be greater than or equal to 0, got {least}.")
    if least > max_tokens:
        raise Refused(400, f"min_tokens must be less than or equal to max_tokens={max_tokens}, got {least}.")


def _int(value: Any) -> int:
    if isinstance(value, float) and not value.is_integer():
        raise _Wrong("int_from_float", "Input should be a valid integer, got a number with a fractional part")
    if isinstance(value, int | float):
        return int(value)
    if isinstance(value, str):
        try:
            return int(value)
        except ValueError:
            text = "Input should be a valid integer, unable to parse string as an integer"
            raise _Wrong("int_parsing", text) from None
    raise _Wrong("int_type", "Input should be a valid integer")


def _float(value: Any) -> float:
    if isinstance(value, int | float):
        return float(value)
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            text = "Input should be a valid number, unable to parse string as a number"
            raise _Wrong("float_parsing", text) from None
    raise _Wrong("float_type", "Input should be a valid number")


def _bool(value: Any) -> bool:
    if isinstance(value, bool) or value in (0, 1):
        return bool(value)
    if isinstance(value, str):
        if value.lower() in _TRUE + _FALSE:
            return value.lower() in _TRUE
        raise _Wrong("bool_parsing", "Input should be a valid boolean, unable to interpret input")
    if isinstance(value, int | float):
        raise _Wrong("bool_parsing", "Input should be a valid boolean, unable to interpret input")
    raise _Wrong("bool_type", "Input should be a valid boolean")


def _options(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    text = "Input should be a valid dictionary or object to extract fields from"
    raise _Wrong("model_attributes_type", text)


def _dict(value: Any) -> dict[str, Any]:
    if isinstance(value, dict):
        return value
    raise _Wrong("dict_type", "Input should be a valid dictionary")


def _str(value: Any) -> str:
    if isinstance(value, str):
        return value
    raise _Wrong("string_type", "Input should be a valid string")


_CONVERTERS: tuple[tuple[tuple[str, ...], Callable[[Any], Any]], ...] = (
    (("model",), _str),
    (_INTS, _int),
    (_FLOATS, _float),
    (_BOOLS, _bool),
    (("stream_options",), _options),
    (("chat_template_kwargs",), _dict),
)
