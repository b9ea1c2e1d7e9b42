from __future__ import annotations

import re

import pytest

from sparktui.bootlog.rules import Matcher, RuleError, load_rules, shipped_rules
from tests.bootlog.logs import line

GOOD = """\
- id: a
  needs: [slow, sluggish]
  pattern: '^(?:slow|sluggish) thing'
  severity: costs speed
  meaning: It is slow.
"""

# One line for each rule that no recorded log has, in the words of vLLM's sources.
NOT_RECORDED = {
    "cg-spec-none": "CUDAGraphMode.FULL is not supported with spec-decode for attention backend "
    "FlashInferBackend (support: AttentionCGSupport.UNIFORM_SINGLE_TOKEN_DECODE); setting "
    "cudagraph_mode=NONE",
    "cg-mixed-fap": "CUDAGraphMode.FULL is not supported with FlashInferBackend backend (support: "
    "AttentionCGSupport.UNIFORM_BATCH); setting cudagraph_mode=FULL_AND_PIECEWISE",
    "cg-mixed-decodeonly": "CUDAGraphMode.FULL is not supported with FlashInferBackend backend (support: "
    "AttentionCGSupport.UNIFORM_BATCH); setting cudagraph_mode=FULL_DECODE_ONLY",
    "cg-never-piecewise": "CUDAGraphMode.FULL is not supported with X backend (support: "
    "AttentionCGSupport.NEVER); setting cudagraph_mode=PIECEWISE because attention is "
    "compiled piecewise",
    "cg-never-none": "CUDAGraphMode.FULL is not supported with X backend (support: "
    "AttentionCGSupport.NEVER); setting cudagraph_mode=NONE because attention is not "
    "compiled piecewise",
    "cg-fatal": "ValueError: CUDAGraphMode.FULL is not supported with X; please try "
    "cudagraph_mode=PIECEWISE, and make sure compilation mode is VLLM_COMPILE",
    "cg-nocompiled-submodule": "Cudagraph mode FULL_AND_PIECEWISE requires piecewise capture, but the loaded "
    "model provides neither compiled nor breakable parts. Overriding to FULL_DECODE_ONLY",
    "cg-compile-incompat": "Cudagraph mode FULL_AND_PIECEWISE is not compatible with compilation mode 0. "
    "Overriding to NONE",
    "cg-dynamic-sd": "Dynamic speculative decoding changes the target verification length at runtime. "
    "Overriding cudagraph_mode from FULL_AND_PIECEWISE to PIECEWISE",
    "cg-kvconnector": "KV connector LMCacheConnector requires PIECEWISE CUDA graph mode",
    "cg-split-none": "Piecewise compilation with empty splitting_ops do not contains piecewise cudagraph. "
    "Setting cudagraph_mode to NONE",
    "cg-skip-capture": "Skipping CUDA graph capture. To turn on CUDA graph capture, set -cc.cudagraph_mode",
    "cg-stock-compile": "CUDA graphs are not supported with stock torch.compile in Model Runner V2. "
    "Overriding cudagraph_mode to NONE",
    "cg-draft-eager": "DFlash draft attention (FLASHINFER) does not support full CUDA graphs; running the "
    "draft eagerly",
    "cg-size-round": "ValueError: No valid cudagraph sizes after rounding to multiple of 4",
    "cg-mamba-blocks": "ValueError: max_num_seqs (256) exceeds available Mamba cache blocks (120)",
    "attn-artifactory": "Failed to connect to NVIDIA artifactory: timed out",
    "attn-trtllm-auto": "Using TRTLLM prefill attention (auto-detected).",
    "lin-nvfp4-emul": "NVFP4 linear falling back to the slow and unoptimized emulation backend",
    "moe-fp4-marlin": "Your GPU does not have native support for FP4 computation but FP4 quantization is "
    "being used",
    "spec-async-v1": "Async scheduling is disabled because the V1 model runner does not support it with "
    "ngram.",
    "transformers-fallback": "X has no vLLM implementation, falling back to Transformers implementation",
    "env-kernel": "Unknown vLLM environment variable detected: VLLM_USE_FLASHINFER_MOE_FP4",
    "env-unknown": "Unknown vLLM environment variable detected: VLLM_SOMETHING",
    "mem-none": "ValueError: No available memory for the cache blocks. Try increasing",
    "mem-free-less": "ValueError: Free memory on device cuda:0 (10.1/139.7 GiB) on startup is less than "
    "desired GPU memory utilization (0.9, 125.7 GiB)",
    "mem-maxlen": "ValueError: To serve at least one request with the models's max seq len (131072), "
    "(16.0 GiB KV cache is needed",
    "cuda-oom": "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB",
    "cuda-ima": "torch.AcceleratorError: CUDA error: an illegal memory access was encountered",
    "worker-died": "Worker proc VllmWorker-0 died unexpectedly (exit code: -9)",
    "hf-gated": "OSError: You are trying to access a gated repo.",
    "port-used-benign": "port 8000 is used by process psutil.Process(pid=7, name='vllm') launched with "
    "command:",
}


def ids(message: str) -> list[str]:
    return [rule.id for rule, _ in Matcher(shipped_rules()).match(line(message))]


@pytest.mark.parametrize(("rule", "message"), NOT_RECORDED.items())
def test_rule_knows_its_line_alone(rule: str, message: str) -> None:
    assert ids(message) == [rule]


@pytest.mark.parametrize(
    "rule", [rule for rule in NOT_RECORDED if rule.startswith(("cg-", "spec-", "attn-"))]
)
def test_text_quoted_from_a_user_is_no_warning(rule: str) -> None:
    message = NOT_RECORDED[rule]
    quoted = ids(f"Received request cmpl-1: prompt: '{message}'")
    assert quoted == ([rule] if "Error: " in message else [])  # exceptions are found anywhere


def test_shipped_rules_say_something() -> None:
    rules = shipped_rules()
    assert len(rules) >= 25
    for rule in rules:
        assert rule.meaning.endswith(".")
        if rule.severity == "costs speed":
            assert rule.cost or rule.remedy, rule.id
        for literal in rule.needs:
            assert literal.strip(), rule.id


def test_either_literal_will_do() -> None:
    matcher = Matcher(load_rules(GOOD, "x.yaml"))
    assert [finding.line for _, finding in matcher.match(line("sluggish thing", 9))] == [9]
    assert len(matcher.match(line("slow thing, not sluggish"))) == 1
    assert matcher.match(line("a slow thing")) == []


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (GOOD + "  colour: red\n", "x.yaml:6: unknown key 'colour'"),
        (GOOD.replace("'^(?:slow|sluggish) thing'", "'('"), "x.yaml:3: pattern is no regular expression"),
        (GOOD.replace("costs speed", "dire"), "x.yaml:4: severity 'dire' is none of: boot fails"),
        (GOOD + GOOD, "x.yaml:6: rule 'a' is there twice"),
        (GOOD + "  id: b\n", "x.yaml:6: key 'id' is there twice"),
        (GOOD.replace("  meaning: It is slow.\n", ""), "x.yaml:1: rule without meaning"),
        (GOOD + "  unless_cpu: maybe\n", "x.yaml:6: unless_cpu is true or false"),
        (GOOD.replace("It is slow.", "[a]"), "x.yaml:5: meaning is a text"),
        ("id: a\n", "x.yaml:1: expected a list of rules"),
        ("- a\n", "x.yaml:1: a rule is a mapping"),
        ("- [a\n", "x.yaml: not YAML"),
        ("- !!python/object/apply:os.getcwd []\n", "x.yaml:1: a rule is a mapping"),
    ],
)
def test_a_bad_file_is_named_with_its_line(text: str, error: str) -> None:
    with pytest.raises(RuleError, match="^" + re.escape(error)):
        load_rules(text, "x.yaml")
