"""The prefix-cache probe: one request three times, with the server's counters around each."""

from __future__ import annotations

import asyncio
import os
import secrets
from time import monotonic

import httpx

from sparktui.compare.prefix import TIMES, judge
from sparktui.host.asker import Asker
from sparktui.host.keys import same_origin
from sparktui.host.loader import LoadGone
from sparktui.metrics.page import Page
from sparktui.metrics.scrape import ScrapeError, scrape
from sparktui.metrics.window import restarted
from sparktui.schema.launch import LoadSpec
from sparktui.schema.live import Finding
from sparktui.schema.messages import LoadConfig
from sparktui.schema.records import PrefixProbe, ProbeAnswer, RequestRow
from sparktui.server import ready

INPUT_TOKENS = 2000
OUTPUT_TOKENS = 32  # long enough to tell the stream to end after this answer
_INTERVAL_S = 0.02  # between two lines of the load process
_ATTEMPTS, _APART = 3, 1000  # prompt numbers
_SETTLE_S, _POLL_S = 3.0, 0.1
_STALL_S = 60.0
_GENERATED, _QUERIES, _HITS = (
    "generation_tokens_total",
    "prefix_cache_queries_total",
    "prefix_cache_hits_total",
)
_QUERY_SLACK = 1.5  # a request may be looked up twice; two requests are


async def probe(
    http: httpx.AsyncClient,
    url: str,
    model: str,
    metrics_url: str | None = None,
    *,
    key: str | None = None,
    input_tokens: int = INPUT_TOKENS,
    asker: Asker | None = None,
) -> PrefixProbe:
    """Ask ``url`` three times for the same; ``metrics_url``: base URL of the vLLM behind it, where it is
    another. ``key``: the API key of ``url``, else VLLM_API_KEY of the environment. ``asker``: for a caller
    that wants to know its process. Raises nothing: what hinders is told as "not known"."""
    base = metrics_url or url
    key = key or os.environ.get("VLLM_API_KEY") or None
    most = await _room(http, url, model, key)
    config = _config(url, model, base, input_tokens if most is None else min(input_tokens, most))
    asker = asker or Asker()
    try:
        await asker.start(config, key, key if same_origin(url, base) else None)
        for attempt in range(_ATTEMPTS):
            found = await _three(asker, http, base, attempt * _APART)
            if found is not None:
                return found
        return judge((), "the server answers too fast for one request at a time")
    except (LoadGone, OSError) as exc:
        return judge((), str(exc))
    finally:
        await asker.stop()


async def _three(asker: Asker, http: httpx.AsyncClient, base: str, prompt: int) -> PrefixProbe | None:
    """One prompt three times, with a page around each; None when a request slipped in between. Raises
    LoadGone."""
    before = await _quiet(http, base)
    if before is not None and (there := _requests(before)):
        return judge((), f"{there:.0f} requests of others are on the server")
    answers: list[ProbeAnswer] = []
    engines = before.engines if before is not None else 1
    for _ in range(TIMES):
        rows = await asker.ask(prompt)
        if len(rows) != 1:
            return None
        (row,) = rows
        after = await _settled(http, base, before, row) if before is not None else None
        problem = _problem(row, before, after)
        if problem:
            return judge(answers, problem)
        answers.append(_answer(row, before, after))
        before = after
    return judge(answers, engines=engines)


def useless_cache(found: PrefixProbe) -> Finding:
    """What a probe that called "useless" means, as a finding."""
    return Finding(
        id="prefix-cache-useless",
        severity="costs speed",
        line=0,
        text=found.text,
        meaning="Prompts are looked up in the prefix cache and never found: each is computed from its "
        "beginning, also one that was just answered. Models with recurrent states often do this.",
        cost="The whole TTFT of a repeated prompt.",
        remedy="Do not count on it; --no-enable-prefix-caching leaves it out. Where --mamba-cache-mode "
        "exists, 'align' finds prompts that fill whole blocks.",
        flag="--no-enable-prefix-caching",
        source="measured here",
    )


def _config(url: str, model: str, base: str, input_tokens: int) -> LoadConfig:
    """A prompt that no server has seen: its nonce is this probe's own, so the first request can't hit."""
    spec = LoadSpec("chat", input_tokens, OUTPUT_TOKENS, temperature=0.0)
    return LoadConfig(
        url, model, spec, secrets.token_hex(8), interval_s=_INTERVAL_S, stall_s=_STALL_S, tokenize_url=base
    )


async def _room(http: httpx.AsyncClient, url: str, model: str, key: str | None) -> int | None:
    """The longest prompt that leaves room for the answer, as /v1/models tells; None where it doesn't."""
    try:
        listed = (await http.get(f"{url}/v1/models", headers=ready.auth(key))).json()["data"]
        longest = next(entry["max_model_len"] for entry in listed if entry["id"] == model)
        return int(longest) - 2 * OUTPUT_TOKENS
    except (httpx.HTTPError, ValueError, KeyError, TypeError, StopIteration):
        return None


async def _page(http: httpx.AsyncClient, base: str) -> Page | None:
    try:
        return await scrape(http, base)
    except ScrapeError:
        return None


async def _quiet(http: httpx.AsyncClient, base: str) -> Page | None:
    """The page without requests, or after a while the one with those that stay: a server takes a moment to
    see that a stream was closed."""
    give_up = monotonic() + _SETTLE_S
    while (page := await _page(http, base)) is not None and _requests(page) and monotonic() < give_up:
        await asyncio.sleep(_POLL_S)
    return page


def _requests(page: Page) -> float:
    return (page.running or 0) + (page.waiting or 0)


async def _settled(http: httpx.AsyncClient, base: str, before: Page, row: RequestRow) -> Page | None:
    """The page on which the request is counted whole: counters move some time after the last chunk."""
    give_up = monotonic() + _SETTLE_S
    last: Page | None = None
    while True:
        page = await _page(http, base)
        if page is None or monotonic() > give_up:
            return page
        counted = (_delta(before, page, _GENERATED) or 0.0) >= (row.completion_tokens or 0)
        if counted and not page.running and last is not None and page.counters == last.counters:
            return page
        last = page
        await asyncio.sleep(_POLL_S)


def _problem(row: RequestRow, before: Page | None, after: Page | None) -> str:
    """Why this request proves nothing; empty when it does."""
    if not row.ok:
        return f"a request failed: {row.error or 'cancelled'}"
    if before is None or after is None:
        return ""
    if restarted(before, after):
        return "the server's counters began anew"
    generated, queries = _delta(before, after, _GENERATED), _delta(before, after, _QUERIES)
    ours, prompt = row.completion_tokens, row.prompt_tokens
    if ours is not None and generated is not None and generated > ours:
        return f"others use the server: it made {generated:.0f} tokens, {ours} are ours"
    if ours and generated is not None and generated < ours / 2:
        return "its counters did not move with the answers: /metrics is another server's"
    if prompt is not None and queries is not None and queries > prompt * _QUERY_SLACK:
        return f"others use the server: {queries:.0f} prompt tokens were looked up, {prompt} are ours"
    return ""


def _answer(row: RequestRow, before: Page | None, after: Page | None) -> ProbeAnswer:
    return ProbeAnswer(
        ttft_ms=row.ttft_ms,
        prompt_tokens=row.prompt_tokens,
        cached_tokens=row.cached_tokens,
        hits=_delta(before, after, _HITS),
        queries=_delta(before, after, _QUERIES),
    )


def _delta(before: Page | None, after: Page | None, name: str) -> float | None:
    if before is None or after is None or name not in after.counters:
        return None
    return after.counters[name] - before.counters.get(name, 0.0)
