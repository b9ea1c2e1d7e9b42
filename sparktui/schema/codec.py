"""Dataclasses to JSON and back, strictly: an unknown or missing field is an error that names it."""

from __future__ import annotations

import dataclasses
import functools
import types
import typing
from collections.abc import Mapping
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import orjson

SCHEMA_VERSION = 1

T = TypeVar("T")


class SchemaError(ValueError):
    """A value from a file, a pipe or a socket does not have the shape it should have."""


def dumps(value: Any, *, indent: bool = False) -> bytes:
    """JSON bytes of a dataclass (or plain value), without a newline at the end."""
    option = orjson.OPT_NON_STR_KEYS | (orjson.OPT_INDENT_2 if indent else 0)
    return orjson.dumps(value, option=option)


def loads(cls: type[T], data: bytes | str) -> T:
    """Parse JSON into ``cls``. Raises SchemaError on bad JSON or a wrong shape."""
    try:
        value = orjson.loads(data)
    except orjson.JSONDecodeError as exc:
        raise SchemaError(f"not JSON: {exc}") from None
    return from_plain(cls, value)


def to_plain(value: Any) -> Any:
    """Dicts, lists and scalars of a dataclass, as JSON would carry them."""
    return orjson.loads(dumps(value))


def from_plain(cls: type[T], value: Any) -> T:
    """Build ``cls`` from dicts, lists and scalars. Raises SchemaError with the path of what is wrong."""
    return typing.cast(T, _build(cls, value, cls.__name__))


@functools.cache
def _hints(cls: type) -> dict[str, Any]:
    return get_type_hints(cls)


def _build(kind: Any, value: Any, path: str) -> Any:
    if kind is Any:
        return value
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return _build_dataclass(kind, value, path)
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        return _build_optional(kind, value, path)
    if origin is tuple:
        items = _expect(value, list, path)
        item_kind = get_args(kind)[0]
        return tuple(_build(item_kind, item, f"{path}[{i}]") for i, item in enumerate(items))
    if origin in (dict, Mapping):
        item_kind = get_args(kind)[1]
        entries = _expect(value, dict, path)
        return {k: _build(item_kind, v, f"{path}.{k}") for k, v in entries.items()}
    if origin is typing.Literal:
        if value not in get_args(kind):
            raise SchemaError(f"{path}: {value!r} is none of {', '.join(map(repr, get_args(kind)))}")
        return value
    return _build_scalar(kind, value, path)


def _build_dataclass(cls: Any, value: Any, path: str) -> Any:
    entries = _expect(value, dict, path)
    fields = {f.name: f for f in dataclasses.fields(cls)}
    if unknown := entries.keys() - fields.keys():
        raise SchemaError(f"{path}: unknown field {min(unknown)!r}")
    hints = _hints(cls)
    made = {}
    for name, field in fields.items():
        if name in entries:
            made[name] = _build(hints[name], entries[name], f"{path}.{name}")
        elif field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING:
            raise SchemaError(f"{path}: field {name!r} is missing")
    return cls(**made)


def _build_optional(kind: Any, value: Any, path: str) -> Any:
    options = get_args(kind)
    if value is None and type(None) in options:
        return None
    real = [option for option in options if option is not type(None)]
    if len(real) != 1:
        raise SchemaError(f"{path}: only optional unions are supported, not {kind}")
    return _build(real[0], value, path)


def _build_scalar(kind: Any, value: Any, path: str) -> Any:
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is int and isinstance(value, bool):
        raise SchemaError(f"{path}: expected int, got a boolean")
    return _expect(value, kind, path)


def _expect(value: Any, kind: Any, path: str) -> Any:
    if not isinstance(value, kind):
        raise SchemaError(f"{path}: expected {kind.__name__}, got {type(value).__name__}")
    return value
