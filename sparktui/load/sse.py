"""Server-sent events of a streaming completion: bytes to the payloads of their ``data:`` lines.

Format: https://html.spec.whatwg.org/multipage/server-sent-events.html, as far as vLLM uses it
(one ``data:`` line an event, a blank line between events).
"""

from __future__ import annotations

from sparktui.load.errors import StreamError

DONE = b"[DONE]"
LINE_LIMIT = 1 << 22  # bytes; a page that is no event stream must not fill the memory


class EventSplitter:
    """Incremental: any chunking of the bytes gives the same payloads."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """Payloads of the lines that ``data`` completes, in order; ``[DONE]`` is one of them.

        Raises StreamError when a line has no end.
        """
        if self._rest:
            data = self._rest + data
        elif data.startswith(b"data: ") and data.endswith(b"\n\n") and data.find(b"\n") == len(data) - 2:
            return [data[6:].strip()]  # one event a read: what nearly all reads are
        lines = data.split(b"\n")
        self._rest = rest = lines.pop()
        if len(rest) > LINE_LIMIT:
            raise StreamError("not an event stream: a line without end")
        return _payloads(lines)

    def end(self) -> list[bytes]:
        """At the end of the stream: payloads of a last line without its line end (a proxy strips it)."""
        rest, self._rest = self._rest, b""
        return _payloads([rest])


def _payloads(lines: list[bytes]) -> list[bytes]:
    return [line[5:].strip() for line in lines if line.startswith(b"data:")]
