"""What the boot log has to say, taken from the arguments and the model."""

from __future__ import annotations

from sparktui.sim.arguments import ServeArguments
from sparktui.sim.bootlog import BootFacts
from sparktui.sim.truth import Truth


def boot_facts(given: ServeArguments, truth: Truth) -> BootFacts:
    """The boot of one command line."""
    backend = str(given.get("attention_backend", "FLASHINFER")).upper()
    hidden = {"api_key": "***"} if "api_key" in given.given else {}
    names = ("moe_backend", "mamba_backend", "kv_cache_dtype")
    return BootFacts(
        model=given.model,
        shown_args=given.given | hidden,
        seconds=max(given.sim.boot_seconds, 0.0),
        max_model_len=int(given.get("max_model_len", 32768)),
        max_num_batched_tokens=int(given.get("max_num_batched_tokens", 8192)),
        max_num_seqs=int(given.get("max_num_seqs", 256)),
        kv_tokens=truth.kv_cache_tokens,
        backend=backend,
        speculative=given.speculative,
        downgraded=given.k > 0 and backend == "FLASHINFER",
        eager=bool(given.get("enforce_eager", False)),
        prefix_caching=bool(given.get("enable_prefix_caching", True)),
        extra={name: given.given[name] for name in names if name in given.given},
    )
