"""The labels of ``vllm:cache_config_info``, which change with every release's CacheConfig.

Recorded: 0.24.0, 0.27.1 and 0.32.0. Older releases get the labels that their source and the recorded ones
share.
"""

from __future__ import annotations

from collections.abc import Mapping

from sparktui.sim.release import Release

HELP = "Information of the LLMEngine CacheConfig"

_BASE = {
    "block_size": "16",
    "cache_dtype": "auto",
    "calculate_kv_scales": "False",
    "enable_prefix_caching": "True",
    "gpu_memory_utilization": "0.9",
    "is_attention_free": "False",
    "kv_cache_memory_bytes": "None",
    "kv_sharing_fast_prefill": "False",
    "mamba_block_size": "None",
    "mamba_cache_dtype": "auto",
    "mamba_page_size_padded": "None",
    "mamba_ssm_cache_dtype": "auto",
    "num_cpu_blocks": "None",
    "num_gpu_blocks": "None",
    "num_gpu_blocks_override": "None",
    "prefix_caching_hash_algo": "sha256",
    "sliding_window": "None",
}
_0_24 = _BASE | {
    "_block_size_resolved": "True",
    "gpu_memory_utilization": "0.92",
    "hash_block_size": "None",
    "kv_cache_dtype_skip_layers": "[]",
    "kv_cache_max_concurrency": "None",
    "kv_cache_size_tokens": "None",
    "kv_offloading_backend": "native",
    "kv_offloading_size": "None",
    "mamba_cache_mode": "none",
    "user_specified_block_size": "False",
    "user_specified_mamba_block_size": "False",
}
_0_27 = _0_24 | {
    "prefix_match_unit": "None",
    "replayssm_buffer_len": "16",
    "skip_page_size_padded": "None",
    "use_replayssm": "False",
}
_0_32 = _0_27 | {
    "cache_hit_alignment_tokens": "None",
    "effective_attention_block_size": "16",
    "enable_mamba_shared_prefix_checkpoint": "False",
    "kv_cache_layout": "None",
    "prefix_cache_retention_interval": "0",
    "swa_bounded_replay": "True",
    "use_kda_recoverssm": "False",
}
_LABELS: dict[str, tuple[Mapping[str, str], tuple[str, ...]]] = {  # release: labels, those that it dropped
    "0.11.0": (_BASE, ()),
    "0.24.0": (_0_24, ()),
    "0.27.1": (_0_27, ("hash_block_size",)),
    "0.32.0": (_0_32, ("calculate_kv_scales", "user_specified_mamba_block_size")),
}


def labels(release: Release, known: Mapping[str, str]) -> dict[str, str]:
    """The release's labels with the ``known`` values; what it has no label for is left out."""
    defaults, dropped = _LABELS[release.nearest(tuple(_LABELS))]
    return {name: known.get(name, value) for name, value in defaults.items() if name not in dropped}
