"""NVML's calls for one GPU, each guarded by itself: an error costs its own field and no other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_NOT_SUPPORTED = 3  # NVML_ERROR_NOT_SUPPORTED


class Calls:
    """Asks for one reading. ``library``: pynvml; a call that its binding lacks is a call that fails."""

    def __init__(self, library: Any, handle: Any) -> None:
        self._library = library
        self._handle = handle
        self._errors: dict[str, Exception] = {}

    def ask(self, name: str, *args: Any) -> Any:
        """The answer; None instead of an error. A text argument is the name of a constant."""
        return self._guarded(name, lambda value: value, *args)

    def number(self, name: str, *args: Any, scale: float = 1.0) -> float | None:
        """The answer times ``scale``; None where there is none, or no number."""
        value: float | None = self._guarded(name, lambda value: float(value) * scale, *args)
        return value

    def fields(self, names: tuple[str, ...]) -> dict[str, int]:
        """Of these NVML_FI fields, those that the driver knows, by name."""
        numbers = {getattr(self._library, name, None): name for name in names}
        numbers.pop(None, None)
        answered = self.ask("nvmlDeviceGetFieldValues", list(numbers)) if numbers else None
        values = [value for value in answered or () if value.nvmlReturn == 0]
        return {numbers[value.fieldId]: int(value.value.ullVal) for value in values}

    def unsupported(self, name: str) -> bool:
        """Whether the driver said that this GPU has no such thing."""
        return _code(self._errors.get(name)) == _NOT_SUPPORTED

    @property
    def failure(self) -> str:
        """What the last call said that failed for another reason; empty: none did."""
        failures = [exc for exc in self._errors.values() if _code(exc) != _NOT_SUPPORTED]
        return said(failures[-1]) if failures else ""

    def _guarded(self, name: str, convert: Callable[[Any], Any], *args: Any) -> Any:
        try:
            given = [getattr(self._library, arg) if isinstance(arg, str) else arg for arg in args]
            return convert(getattr(self._library, name)(self._handle, *given))
        except Exception as exc:  # NVMLError of any kind, or a driver or library that went away
            self._errors[name] = exc
            return None


def said(exc: Exception) -> str:
    """An error in words."""
    return str(exc) or type(exc).__name__


def _code(exc: Exception | None) -> object:
    return getattr(exc, "value", None)
