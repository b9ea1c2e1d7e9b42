"""Backends in use: attention, MoE, linear layers, Mamba. Main model and drafter have their own.

``moe_weights`` names what a MoE backend is for (NvFp4, Fp8, Unquantized, …): under an MTP head the main
model's is quantized and the head's may not be.
"""

from __future__ import annotations

from sparktui.bootlog.facts.rows import Facts, Found, Row, Value, count, has_drafter, row, second, text, weak

_ATTENTION = {
    "draft_attention_backend": second("attention_backend", text()),
    "attention_backend": weak("attention_backend", text()),
}


def _draft_moe(group: int, name: str) -> Value:
    """Of the first MoE line that differs from the main model's."""

    def read(found: Found, facts: Facts) -> str | None:
        main = (facts.get("moe_backend"), facts.get("moe_weights"))
        if main[0] is None or main == (found["backend"], found["weights"]):
            return None
        return found[group] if name not in facts and has_drafter(facts) else None

    return read


def _moe(pattern: str, backend: int, weights: int) -> Row:
    return row(
        "MoE",
        pattern,
        draft_moe_backend=_draft_moe(backend, "draft_moe_backend"),
        draft_moe_weights=_draft_moe(weights, "draft_moe_weights"),
        moe_backend=weak("moe_backend", text(backend)),
        moe_weights=weak("moe_weights", text(weights)),
    )


# Without the word for the weights the line repeats a backend by its class's name.
_MOE = r"^Using '?(?P<backend>\w+)'? (?P<weights>\w+(?: \w+)?) MoE backend\b"
_MOE_OLD = r"^Using '?(?P<backend>\w+)'? backend for (?P<weights>\w+) MoE\b"

ROWS: tuple[Row, ...] = (
    row("attention backend", r"^Using (\w+) attention backend out of potential backends", **_ATTENTION),
    row(
        "backend",
        r"^Using (?:AttentionBackendEnum\.)?(\w*(?:ATT|FLASH|MLA|SDPA)\w*) backend"
        r"(?:\.?$| out of potential| \(selected)",
        **_ATTENTION,
    ),
    row(
        "layout for",
        r"KV cache layout for (\w+) backend",
        attention_backend=weak("attention_backend", text()),
    ),
    row(
        "FlashAttention v",
        r"^Using FlashAttention version (\d+)",
        flash_attention_version=weak("flash_attention_version", count()),
    ),
    _moe(_MOE, 1, 2),
    _moe(_MOE_OLD, 1, 2),
    row(
        " GEMM",
        r"^Using (\S+) for (?:NVFP4|MXFP\d) GEMM",
        linear_backend=weak("linear_backend", text()),
    ),
    row(
        "Selected ",
        r"^Selected (\w+Kernel) for \w+",
        linear_backend=weak("linear_backend", text()),
    ),
    row("Mamba SSU", r"^Using (\w+) Mamba SSU backend", mamba_backend=text()),
)
