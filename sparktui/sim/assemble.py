"""Puts one server together from its arguments: engine, service, metrics, HTTP surface."""

from __future__ import annotations

import os
import random
import time

from sparktui.sim.api import Api, ApiConfig
from sparktui.sim.arguments import ServeArguments
from sparktui.sim.bootlog import BootFacts
from sparktui.sim.engine import Engine, EngineConfig
from sparktui.sim.intake import Limits
from sparktui.sim.logfile import Log
from sparktui.sim.metrics import Metrics
from sparktui.sim.prefix import BLOCK_TOKENS
from sparktui.sim.service import EngineService
from sparktui.sim.truth import Truth


def assemble(given: ServeArguments, facts: BootFacts, truth: Truth, log: Log) -> tuple[EngineService, Api]:
    """The service to run and the application to serve. ``facts``: what the boot log said."""
    sim = given.sim
    seed = sim.seed if sim.seed is not None else time.time_ns() ^ os.getpid()
    config = EngineConfig(
        k=given.k,
        max_num_seqs=facts.max_num_seqs,
        max_num_batched_tokens=facts.max_num_batched_tokens,
        full_graphs=given.k > 0 and not facts.downgraded and not facts.eager,
        noise=sim.noise,
        restart_noise=sim.restart_noise,
        truth=truth,
    )
    engine = Engine(config, random.Random(seed))
    metrics = Metrics(given.served_names[0], given.k, _cache_config(facts, given))
    service = EngineService(engine, metrics)
    limits = Limits(given.served_names, facts.max_model_len)
    access_log = not given.get("disable_uvicorn_access_log", False)
    api_config = ApiConfig(limits, given.model, given.api_keys, access_log, sim.fail, truth)
    api = Api(api_config, service, metrics, log, random.Random(seed + 1))
    return service, api if facts.prefix_caching else api.without_prefix_cache()


def _cache_config(facts: BootFacts, given: ServeArguments) -> dict[str, str]:
    """The labels of cache_config_info that tools read."""
    return {
        "block_size": str(BLOCK_TOKENS),
        "cache_dtype": str(given.get("kv_cache_dtype", "auto")),
        "enable_prefix_caching": str(facts.prefix_caching),
        "gpu_memory_utilization": str(given.get("gpu_memory_utilization", 0.92)),
        "kv_cache_max_concurrency": f"{facts.kv_tokens / facts.max_model_len:.2f}",
        "kv_cache_size_tokens": str(facts.kv_tokens),
        "num_gpu_blocks": str(facts.kv_tokens // BLOCK_TOKENS),
        "sliding_window": "None",
    }
