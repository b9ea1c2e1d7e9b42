"""What was asked for and resolved: version, arguments, model, scheduler, speculation, sampling defaults.

The config dump ("Initializing a V1 LLM engine") is read for what it states truly. Its ``cudagraph_mode``,
async scheduling and backends were only asked for.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from sparktui.bootlog.facts.printed import NotPrinted, printed_value
from sparktui.bootlog.facts.rows import (
    Facts,
    Found,
    Row,
    constant,
    count,
    row,
    second,
    text,
    weak,
)
from sparktui.bootlog.secrecy import MASK, masked

_FROM_ARGS = (
    "max_num_seqs",
    "max_num_batched_tokens",
    "max_model_len",
    "quantization",
    "tensor_parallel_size",
    "kv_cache_dtype",
    "mamba_cache_mode",
    "async_scheduling",
)
SECRET = ("api_key", "hf_token", "watermark_config")  # in clear up to 0.27
_SPECULATION = {
    "method": "spec_method",
    "model": "draft_model",
    "num_speculative_tokens": "num_speculative_tokens",
}
_SPEC_FLAGS = {
    "spec_method": "spec_method",
    "spec_model": "draft_model",
    "spec_tokens": "num_speculative_tokens",
}


def _printed(found: Found, _: Facts) -> Any:
    """The value; the text when it was cut."""
    try:
        return printed_value(found[1])
    except NotPrinted:
        return found[1]


def _arguments(found: Found, facts: Facts) -> Mapping[str, Any]:
    given = _printed(found, facts)
    if not isinstance(given, dict):
        return {"non_default_args": masked(found[1])}
    given |= {name: MASK for name in SECRET if given.get(name)}
    stated = {name: given.get(name) for name in _FROM_ARGS}
    if stated["max_model_len"] == -1:  # "auto": a later line tells
        stated["max_model_len"] = None
    speculation = given.get("speculative_config")
    if isinstance(speculation, dict):
        stated |= {fact: speculation.get(key) for key, fact in _SPECULATION.items()}
    stated |= {fact: given[key] for key, fact in _SPEC_FLAGS.items() if key in given}
    return {**stated, "non_default_args": given}


def _overrides(found: Found, facts: Facts) -> dict[str, Any] | None:
    value = _printed(found, facts)
    return value if isinstance(value, dict) else None


def _dump(found: Found, facts: Facts) -> Mapping[str, Any]:
    """What the config dump states truly."""
    stated: dict[str, Any] = {"vllm_version": found[1]}
    for name, field in _DUMPED.items():
        value = field.search(found[2] or "")
        if value is not None and value[1] != "None":
            stated[name] = _plain(value[1])
    spec = _SPEC.search(found[2] or "")
    if spec is not None:
        stated |= {"spec_method": spec[1], "draft_model": spec[2], "num_speculative_tokens": int(spec[3])}
    if "kv_cache_dtype" in facts:  # a line before has said what "auto" became
        stated.pop("kv_cache_dtype", None)
    return stated


def _plain(text: str) -> Any:
    if text in ("True", "False"):
        return text == "True"
    return int(text) if text.isdecimal() else text.strip("'")


_DUMPED = {
    "dtype": re.compile(r", dtype=(?:torch\.)?(\w+)"),
    "quantization": re.compile(r", quantization=([^,]+)"),
    "tensor_parallel_size": re.compile(r", tensor_parallel_size=(\d+)"),
    "kv_cache_dtype": re.compile(r", kv_cache_dtype=([^,]+)"),
    "device": re.compile(r", device_config=(\w+)"),
    "prefix_caching": re.compile(r", enable_prefix_caching=(True|False)\b"),
    "chunked_prefill": re.compile(r", (?:enable_)?chunked_prefill(?:_enabled)?=(True|False)\b"),
}
_SPEC = re.compile(
    r", speculative_config=SpeculativeConfig\(method='?([\w-]+)'?, model=(?:None|'([^']*)'), "
    r"num_spec_tokens=(\d+)"
)
_TARGET = {
    "max_model_len": weak("max_model_len", count()),
    "max_num_batched_tokens": weak("max_num_batched_tokens", count()),
    "architecture": weak("architecture", text()),
    "sampling": weak("sampling_overrides", _overrides),
}
_VERSION = r"version +(\d+\.\d+[^\s,]*)\s*(?:, serving model .*)?$"

ROWS: tuple[Row, ...] = (
    row("server version", rf"^vLLM (?:API )?server {_VERSION}", vllm_version=text()),
    row("█  version", rf"█  {_VERSION}", vllm_version=text()),  # beside the logo
    row("version ", rf"^{_VERSION}", vllm_version=text()),
    Row("non-default args", re.compile(r"^non-default args: (\{.*\})\s*$"), _arguments),
    Row(
        "V1 LLM engine",
        re.compile(r"^Initializing a V1 LLM engine \(v([^)]+)\)(?: with config: (.*))?"),
        _dump,
    ),
    # The drafter's row stands first: it reads what the lines before said of the target.
    row(
        "Resolved arch",
        r"^Resolved architecture: (\w+)",
        draft_architecture=second("architecture", text()),
        architecture=_TARGET["architecture"],
    ),
    row("max model len", r"^Using max model len (\d+)", max_model_len=_TARGET["max_model_len"]),
    row(
        "Auto-fit",
        r"^Auto-fit max_model_len: (?:reduced from \d+ to|full model context length) (\d+)",
        max_model_len=count(),
    ),
    row(
        "Chunked prefill",
        r"^Chunked prefill is enabled with max_num_batched_tokens=(\d+)",
        max_num_batched_tokens=_TARGET["max_num_batched_tokens"],
        chunked_prefill=weak("chunked_prefill", constant(True)),
    ),
    row(
        "scheduled_tokens is",
        r"^max_num_scheduled_tokens is set to (\d+) based on",
        max_num_scheduled_tokens=count(),
    ),
    row("Defaulting max", r"^Defaulting max_num_seqs to (\d+) for", max_num_seqs=count()),
    row("Defaulting max", r"^Defaulting max_num_batched_tokens to (\d+) for", max_num_batched_tokens=count()),
    row("Async", r"^Asynchronous scheduling is enabled", async_scheduling=constant(True)),
    row("Async", r"^Asynchronous scheduling is disabled", async_scheduling=constant(False)),
    row(
        "Async",
        r"^Async scheduling (?:not supported with|is disabled|is not compatible with|will be disabled)",
        async_scheduling=constant(False),
    ),
    row("V2 Model Runner", r"^Using V2 Model Runner", model_runner=constant("V2")),
    row("V1 model runner", r"using the V1 model runner instead", model_runner=constant("V1")),
    row(
        "from scratch",
        r"^Loading model from scratch",
        model_runner=weak("model_runner", constant("V2")),
    ),
    row("to load model", r"^Starting to load model", model_runner=weak("model_runner", constant("V1"))),
    row(
        "sampling param",
        r"^Default (?:vLLM )?sampling parameters have been overridden by [^{}]{1,200}: "
        r"`?(\{[^{}]{0,2000}\})`?(?:\.|$)",
        sampling_overrides=_TARGET["sampling"],
    ),
    row(
        "sampling param",
        r"^Using default (?:chat|completion) sampling params from .*?: (\{.*\})",
        sampling_overrides=_TARGET["sampling"],
    ),
    row(
        "Mamba cache mode",
        r"^Mamba cache mode is set to '(\w+)' (?:for \S+ by default )?when prefix caching is",
        mamba_cache_mode=text(),
    ),
    row("'align' mode", r"falling back to '(align)' mode", mamba_cache_mode=text()),
    row(
        "attention block size",
        r"^Setting attention block size to (\d+) tokens to ensure that attention page size is >= mamba",
        mamba_block_tokens=count(),
    ),
    row("nccl==", r"^vLLM is using nccl==(\S+)", nccl_version=text()),
)
