"""Write a tiny chat model that vLLM serves offline.

make_tiny_model.py FOLDER [--weights | --draft-of FOLDER]

Without weights, serve with ``--load-format dummy``: logits are nearly flat, so any temperature above 0 is
noise. ``--weights`` writes peaked logits. ``--draft-of`` writes a perturbed copy of another model: as a draft
model it is accepted some of the time, less at each later position, as a real speculator is.
"""

import argparse
import json
import shutil
import sysconfig
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

HIDDEN, LAYERS, HEADS, KV_HEADS, VOCAB, MAX_POSITIONS = 64, 2, 2, 1, 2048, 4096
LOGIT_STD, NOISE = 8.0, 0.05
SPECIAL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
CHAT_TEMPLATE = (
    "{%- for m in messages -%}<|im_start|>{{ m['role'] }}\n"
    "{%- if m['content'] is string -%}{{ m['content'] }}"
    "{%- else -%}{%- for p in m['content'] -%}{{ p['text'] }}{%- endfor -%}{%- endif -%}<|im_end|>\n"
    "{%- endfor -%}{%- if add_generation_prompt -%}<|im_start|>assistant\n{%- endif -%}"
)


def train_tokenizer() -> Tokenizer:
    """Byte-level BPE on the standard library's own sources: they lie on every machine."""
    texts = sorted(str(path) for path in Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))[:80]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCAB, special_tokens=SPECIAL, initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train(texts, trainer)
    return tokenizer


def write_config(folder: Path, tokenizer: Tokenizer) -> None:
    """The three JSON files beside the tokenizer."""
    eos, pad = tokenizer.token_to_id("<|im_end|>"), tokenizer.token_to_id("<|endoftext|>")
    ids = {"bos_token_id": pad, "eos_token_id": eos, "pad_token_id": pad}
    files = {
        "tokenizer_config.json": {
            "tokenizer_class": "PreTrainedTokenizerFast",
            "bos_token": None,
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "model_max_length": MAX_POSITIONS,
            "clean_up_tokenization_spaces": False,
            "chat_template": CHAT_TEMPLATE,
        },
        "config.json": {
            "architectures": ["LlamaForCausalLM"],
            "model_type": "llama",
            "hidden_size": HIDDEN,
            "intermediate_size": 2 * HIDDEN,
            "num_hidden_layers": LAYERS,
            "num_attention_heads": HEADS,
            "num_key_value_heads": KV_HEADS,
            "head_dim": HIDDEN // HEADS,
            "vocab_size": tokenizer.get_vocab_size(),
            "max_position_embeddings": MAX_POSITIONS,
            "hidden_act": "silu",
            "rms_norm_eps": 1e-6,
            "rope_theta": 10000.0,
            "initializer_range": 0.02,
            "tie_word_embeddings": False,
            "attention_bias": False,
            "mlp_bias": False,
            "use_cache": True,
            "torch_dtype": "bfloat16",
            **ids,
        },
        "generation_config.json": {**ids, "do_sample": True, "temperature": 1.0},
    }
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value, indent=2) + "\n")


def write_weights(folder: Path, vocab: int) -> None:
    """Random weights whose logits are peaked, the same on every machine."""
    import torch
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(0)

    def random(rows: int, columns: int, gain: float = 1.0) -> torch.Tensor:
        return (torch.randn(rows, columns, generator=generator) * gain).to(torch.bfloat16)

    def linear(rows: int, columns: int, gain: float = 1.0) -> torch.Tensor:
        return random(rows, columns, gain / columns**0.5)

    head_dim = HIDDEN // HEADS
    tensors = {
        "model.embed_tokens.weight": random(vocab, HIDDEN),
        "model.norm.weight": torch.ones(HIDDEN, dtype=torch.bfloat16),
        "lm_head.weight": linear(vocab, HIDDEN, LOGIT_STD),
    }
    for layer in range(LAYERS):
        prefix = f"model.layers.{layer}."
        tensors |= {
            prefix + "input_layernorm.weight": torch.ones(HIDDEN, dtype=torch.bfloat16),
            prefix + "post_attention_layernorm.weight": torch.ones(HIDDEN, dtype=torch.bfloat16),
            prefix + "self_attn.q_proj.weight": linear(HEADS * head_dim, HIDDEN),
            prefix + "self_attn.k_proj.weight": linear(KV_HEADS * head_dim, HIDDEN),
            prefix + "self_attn.v_proj.weight": linear(KV_HEADS * head_dim, HIDDEN),
            prefix + "self_attn.o_proj.weight": linear(HIDDEN, HEADS * head_dim),
            prefix + "mlp.gate_proj.weight": linear(2 * HIDDEN, HIDDEN),
            prefix + "mlp.up_proj.weight": linear(2 * HIDDEN, HIDDEN),
            prefix + "mlp.down_proj.weight": linear(HIDDEN, 2 * HIDDEN),
        }
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})


def perturb(source: Path, folder: Path) -> None:
    """A copy with relative noise on every matrix."""
    import torch
    from safetensors.torch import load_file, save_file

    for path in source.glob("*.json"):
        shutil.copy(path, folder / path.name)
    generator = torch.Generator().manual_seed(1)
    tensors = load_file(str(source / "model.safetensors"))
    for name, tensor in tensors.items():
        if tensor.dim() == 2:
            noise = torch.randn(tensor.shape, generator=generator) * tensor.float().std() * NOISE
            tensors[name] = (tensor.float() + noise).to(tensor.dtype)
    save_file(tensors, str(folder / "model.safetensors"), metadata={"format": "pt"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--weights", action="store_true")
    parser.add_argument("--draft-of", type=Path)
    args = parser.parse_args()
    args.folder.mkdir(parents=True, exist_ok=True)
    if args.draft_of:
        perturb(args.draft_of, args.folder)
        return
    tokenizer = train_tokenizer()
    tokenizer.save(str(args.folder / "tokenizer.json"))
    write_config(args.folder, tokenizer)
    if args.weights:
        write_weights(args.folder, tokenizer.get_vocab_size())


if __name__ == "__main__":
    main()
