"""Fetching /metrics (httpx), with its own time-out and plain errors."""

from __future__ import annotations

import asyncio
from time import monotonic

import httpx

from sparktui.metrics.page import Page, PageError, parse

_MAX_BYTES = 16 * 1024 * 1024


class ScrapeError(Exception):
    """No page came; the text says why."""


async def scrape(client: httpx.AsyncClient, base_url: str, timeout_s: float = 5.0) -> Page:
    """One page of ``base_url``/metrics, dated at the middle of the request. Raises ScrapeError."""
    begun = monotonic()
    try:
        async with asyncio.timeout(timeout_s):  # httpx's own counts anew with every byte that drips in
            response = await client.get(f"{base_url}/metrics", timeout=timeout_s)
    except (httpx.TimeoutException, TimeoutError):
        raise ScrapeError(f"/metrics did not answer within {timeout_s:g} s") from None
    except httpx.HTTPError as exc:
        raise ScrapeError(f"/metrics: {exc or type(exc).__name__}") from None
    if response.status_code != 200:
        raise ScrapeError(f"/metrics: HTTP {response.status_code}")
    if len(response.content) > _MAX_BYTES:
        raise ScrapeError(f"/metrics: the page is larger than {_MAX_BYTES >> 20} MiB")
    try:
        return parse(response.text, (begun + monotonic()) / 2)
    except PageError as exc:
        raise ScrapeError(f"/metrics: {exc}") from None
