"""Server-sent events of a streaming completion: bytes to the payloads of their ``data:`` lines.

Format: https://html.spec.whatwg.org/multipage/server-sent-events.html, as far as vLLM uses it
(one ``data:`` line an event, a blank line between events).
"""

from __future__ import annotations

DONE = b"[DONE]"


class EventSplitter:
    """Incremental: any chunking of the bytes gives the same payloads."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Payloads of the lines that ``data`` completes, in order; ``[DONE]`` is one of them."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        return [line[5:].strip() for line in lines if line.startswith(b"data:")]
