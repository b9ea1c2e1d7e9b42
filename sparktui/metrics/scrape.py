"""Fetching /metrics (httpx), with its own time-out and plain errors."""

from __future__ import annotations

import asyncio
from time import monotonic

import httpx

from sparktui.metrics.page import Page, PageError, parse

_MAX_BYTES = 16 * 1024 * 1024
_ACCEPT = {"Accept": "text/plain;version=0.0.4, */*;q=0.1"}
_THREAD_FROM = 256 * 1024  # bytes; a page of one engine has 50,000 and takes 2 ms


class ScrapeError(Exception):
    """No page came; the text says why."""


async def scrape(client: httpx.AsyncClient, base_url: str, timeout_s: float = 5.0) -> Page:
    """One page of ``base_url``/metrics, dated at the middle of the request. Raises ScrapeError.

    ``base_url`` may name the page itself. A large page is parsed in a thread: other tasks go on.
    """
    url = f"{base_url.rstrip('/').removesuffix('/metrics')}/metrics"
    begun = monotonic()
    try:
        async with asyncio.timeout(timeout_s):  # httpx's own counts anew with every byte that drips in
            body = await _body(client, url, timeout_s)
    except (httpx.TimeoutException, TimeoutError):
        raise ScrapeError(f"/metrics did not answer within {timeout_s:g} s") from None
    except (httpx.HTTPError, httpx.InvalidURL) as exc:
        raise ScrapeError(f"/metrics: {exc or type(exc).__name__}") from None
    t = (begun + monotonic()) / 2
    try:
        return await asyncio.to_thread(_page, body, t) if len(body) >= _THREAD_FROM else _page(body, t)
    except PageError as exc:
        raise ScrapeError(f"/metrics: {exc}") from None


async def _body(client: httpx.AsyncClient, url: str, timeout_s: float) -> bytes:
    """The answer, unpacked; given up as soon as it is larger than a page can be."""
    chunks: list[bytes] = []
    size = 0
    async with client.stream("GET", url, timeout=timeout_s, headers=_ACCEPT) as response:
        if response.status_code != 200:
            raise ScrapeError(f"/metrics: HTTP {response.status_code}")
        async for chunk in response.aiter_bytes():
            size += len(chunk)
            if size > _MAX_BYTES:
                raise ScrapeError(f"/metrics: the page is larger than {_MAX_BYTES >> 20} MiB")
            chunks.append(chunk)
    return b"".join(chunks)


def _page(body: bytes, t: float) -> Page:
    return parse(body.decode("utf-8", "replace"), t)
