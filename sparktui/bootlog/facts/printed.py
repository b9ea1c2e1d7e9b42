"""Python values as a log prints them: literals, and objects that have no literal.

An object's arguments become a dict; anything else without a literal (``<CUDAGraphMode.PIECEWISE: 1>``,
``torch.bfloat16``) stays the text that was printed.
"""

from __future__ import annotations

import ast
import re
from typing import Any

from sparktui.bootlog.text import clean

_STRING = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
_OBJECT = re.compile(rf"({_STRING})|<(?:[^<>'\"]|{_STRING})*>")


class NotPrinted(ValueError):
    """The text is no printed value, or was cut."""


def printed_value(text: str) -> Any:
    """The value of ``text``. Raises NotPrinted."""
    quoted = _OBJECT.sub(lambda found: found[1] or repr(found[0]), text)
    try:
        return _value(ast.parse(quoted, mode="eval").body)
    except (SyntaxError, ValueError, MemoryError, RecursionError):
        raise NotPrinted(text[:80]) from None


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value):
            if isinstance(value, str):
                return clean(value)
            return value if value is None or isinstance(value, (bool, int, float)) else repr(value)
        case ast.Dict(keys=keys, values=values):
            return {_key(key): _value(value) for key, value in zip(keys, values, strict=True)}
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return [_value(item) for item in items]
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as value)):
            return -value
        case ast.Call(args=[], keywords=[_, *_] as pairs):
            return {pair.arg or "": _value(pair.value) for pair in pairs}
        case _:
            return ast.unparse(node)


def _key(node: ast.expr | None) -> str:
    value = "**" if node is None else _value(node)
    return value if isinstance(value, str) else str(value)
