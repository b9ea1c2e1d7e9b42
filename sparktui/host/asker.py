"""Single requests through a load process of their own: measuring is never done in the host's event loop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from sparktui.host.loader import Loader, LoadGone
from sparktui.schema.messages import LoadConfig, LoadTarget, LoadTotals
from sparktui.schema.records import RequestRow

_START_S = 60.0  # for the process to come up and make its prompts
_ANSWER_S = 150.0
_CUT_S = 2.0


class Asker:
    """Sends one request at a time. One user at a time."""

    def __init__(self) -> None:
        self._rows: list[RequestRow] = []
        self._loader = Loader(self._rows.append, lambda _: None)

    @property
    def pid(self) -> int | None:
        return self._loader.pid

    async def start(
        self, config: LoadConfig, key: str | None = None, tokenize_key: str | None = None
    ) -> None:
        """Spawn the load process, idle. Keys as for Loader.start."""
        self._rows.clear()
        await self._loader.start(config, key, tokenize_key)

    async def ask(self, prompt: int) -> tuple[RequestRow, ...]:
        """Send request number ``prompt``; its row. More than one row: its answer ended before the stream
        could be told to send no other. Raises LoadGone."""
        self._rows.clear()
        done = self._loader.totals.done if self._loader.totals else 0
        await self._loader.aim(LoadTarget(1, next_prompt=prompt))
        await self._until(lambda totals: totals.in_flight > 0 or totals.done > done, _START_S)
        await self._loader.aim(LoadTarget(0))
        try:
            await self._until(_idle, _ANSWER_S)
        except LoadGone:
            await self._loader.aim(LoadTarget(0, cut=True))
            await self._until(_idle, _CUT_S)
        return tuple(self._rows)

    async def stop(self) -> None:
        """End the process; who waits for an answer gets LoadGone."""
        await self._loader.stop()

    async def _until(self, seen: Callable[[LoadTotals], bool], limit_s: float) -> None:
        """Wait for a line of totals as it should be. Raises LoadGone, also when the time is up."""
        try:
            async with asyncio.timeout(limit_s):
                while (totals := self._loader.totals) is None or not seen(totals):
                    await self._loader.next_totals()
        except TimeoutError:
            raise LoadGone(f"the load process did not get there within {limit_s:g} s") from None


def _idle(totals: LoadTotals) -> bool:
    return totals.asked == 0 and totals.in_flight == 0
