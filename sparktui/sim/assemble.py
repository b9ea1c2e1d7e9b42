"""Puts one server together from its arguments: engines, service, metrics, HTTP surface."""

from __future__ import annotations

import os
import random
import time
from typing import Any

from sparktui.sim.arguments import ServeArguments
from sparktui.sim.boot.facts import BootFacts
from sparktui.sim.boot.logfile import Log
from sparktui.sim.counts.metrics import Metrics
from sparktui.sim.counts.traffic import Traffic
from sparktui.sim.http.api import Api, ApiConfig
from sparktui.sim.http.clock import Clock
from sparktui.sim.http.disturb import Disturbances, EngineSwitches
from sparktui.sim.http.faults import NonsenseMetrics
from sparktui.sim.http.intake import Limits
from sparktui.sim.http.ownmetrics import Told
from sparktui.sim.model.engine import Engine, EngineConfig
from sparktui.sim.model.prefix import BLOCK_TOKENS
from sparktui.sim.model.truth import Truth
from sparktui.sim.service import EngineService


def assemble(
    given: ServeArguments,
    facts: BootFacts,
    truth: Truth,
    log: Log,
    switches: EngineSwitches,
) -> tuple[EngineService, Api, Disturbances]:
    """The service to run, the application to serve and its faults; an event loop must be running.

    ``facts``: what the boot log said; ``switches``: how faults reach the engine's process.
    """
    sim = given.sim
    seed = sim.seed if sim.seed is not None else time.time_ns() ^ os.getpid()
    config = _engine_config(given, facts, truth)
    engines = [Engine(config, random.Random(seed + 1_000_003 * index)) for index in range(facts.engines)]
    service = EngineService(engines, _metrics(given, facts))
    disturbances = Disturbances(service, switches, log)
    if sim.fail == "illegal-access":
        service.on_draft = switches.crash
    if sim.fail == "metrics-nonsense":
        disturbances.set(NonsenseMetrics())
    api = Api(_api_config(given, facts, truth), service, disturbances, log, random.Random(seed + 1))
    return service, api, disturbances


def _engine_config(given: ServeArguments, facts: BootFacts, truth: Truth) -> EngineConfig:
    return EngineConfig(
        k=given.k,
        max_num_seqs=facts.max_num_seqs,
        max_num_batched_tokens=facts.max_num_batched_tokens,
        graphs=facts.plan.mode,
        noise=given.sim.noise,
        restart_noise=given.sim.restart_noise,
        prefix_caching=facts.prefix_caching,
        truth=truth,
    )


def _api_config(given: ServeArguments, facts: BootFacts, truth: Truth) -> ApiConfig:
    limits = Limits(
        given.served_names,
        facts.max_model_len,
        given.release,
        reasoning=given.get("reasoning_parser", None) is not None,
        force_usage=bool(given.get("enable_force_include_usage", False)),
    )
    return ApiConfig(
        limits,
        given.model,
        given.api_keys,
        not given.get("disable_uvicorn_access_log", False),
        given.sim.fail,
        truth,
        bool(given.get("enable_server_load_tracking", False)),
        _info(given, facts),
        _told(given),
        Clock(given.sim.clock) if given.sim.clock else None,
    )


def _told(given: ServeArguments) -> Told:
    drafts: Any = given.get("per_request_spec_decode_metrics", "none")
    return Told(bool(given.get("enable_per_request_metrics", False)), drafts, given.k)


def _info(given: ServeArguments, facts: BootFacts) -> str:
    """The few fields of the configuration's text that tools read."""
    return (
        f"model={given.model!r}, speculative_config={given.speculative}, tokenizer={given.model!r}, "
        f"dtype=torch.bfloat16, max_seq_len={facts.max_model_len}, enforce_eager={facts.eager}, "
        f"served_model_name={given.served_names[0]}, enable_prefix_caching={facts.prefix_caching}"
    )


def _metrics(given: ServeArguments, facts: BootFacts) -> Metrics:
    return Metrics(
        given.served_names[0],
        given.k,
        _cache_config(facts, given),
        given.release,
        facts.engines,
        traffic=_traffic(given, facts),
        max_model_len=facts.max_model_len,
        log_stats=not given.get("disable_log_stats", False),
        hidden=given.get("show_hidden_metrics_for_version", None) is not None,
    )


def _traffic(given: ServeArguments, facts: BootFacts) -> Traffic | None:
    """What a step moves, with --enable-mfu-metrics only."""
    if not given.get("enable_mfu_metrics", False):
        return None
    return Traffic.of(facts.shape, facts.kv_tokens, facts.tensor_parallel * facts.pipeline_parallel)


def _cache_config(facts: BootFacts, given: ServeArguments) -> dict[str, str]:
    """The labels of cache_config_info that tools read, where the release's own defaults don't hold."""
    utilization = given.get("gpu_memory_utilization", None)
    chosen = {} if utilization is None else {"gpu_memory_utilization": str(utilization)}
    return chosen | {
        "block_size": str(BLOCK_TOKENS),
        "cache_dtype": str(given.get("kv_cache_dtype", "auto")),
        "enable_prefix_caching": str(facts.prefix_caching),
        "kv_cache_max_concurrency": str(facts.kv_tokens / facts.max_model_len),
        "kv_cache_size_tokens": str(facts.kv_tokens),
        "num_gpu_blocks": str(facts.kv_tokens // BLOCK_TOKENS),
        "sliding_window": "None",
    }
