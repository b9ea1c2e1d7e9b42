"""The host's end of the load process."""

from __future__ import annotations

import pytest

from sparktui.host.loader import Loader, LoadGone
from sparktui.schema.launch import LoadSpec
from sparktui.schema.messages import LoadConfig, LoadTotals


async def test_who_waits_for_totals_hears_that_they_cannot_be_taken() -> None:
    """As when the disk is full that they are written to; the load process itself is well."""

    def full(totals: LoadTotals) -> None:
        raise OSError(28, "No space left on device")

    loader = Loader(lambda row: None, full)
    await loader.start(LoadConfig("http://127.0.0.1:9", "tiny", LoadSpec(), "nonce"))
    try:
        with pytest.raises(LoadGone, match="No space left on device"):
            await loader.next_totals()
    finally:
        await loader.stop()
