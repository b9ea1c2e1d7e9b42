"""Machine-and-model files: YAML to a Truth. docs/sim.md explains every key to those who write one."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from sparktui.sim.model.curve import Curve
from sparktui.sim.model.truth import BootShape, Chain, GpuShape, ModeCost, Truth
from sparktui.yamlfile.kinds import (
    Key,
    Kind,
    boolean,
    choice,
    expected,
    integer,
    list_of,
    number,
    read_keys,
    section,
    table,
    text,
)
from sparktui.yamlfile.problems import FileError, Problem, Report, did_you_mean
from sparktui.yamlfile.source import MAX_BYTES, Map, Node, Scalar, parse

__all__ = ["DEFAULT_MODEL", "ModelFileError", "load", "shipped"]

DEFAULT_MODEL = "nemotron-lightning-gb10"
_FOLDER = Path(__file__).with_name("machines")


class ModelFileError(FileError):
    """A model file can't be used. Its text has one ``file:line: message`` a line."""


def shipped() -> tuple[str, ...]:
    """Names of the models that come with sparktui."""
    return tuple(sorted(path.stem for path in _FOLDER.glob("*.yaml")))


def load(name_or_path: str) -> Truth:
    """The truth of a shipped model, or of a file. Raises ModelFileError."""
    path = _find(name_or_path)
    report = Report(str(path), ModelFileError)
    try:
        with path.open("rb") as file:
            data = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise ModelFileError([Problem(str(path), 0, 0, f"can't be read: {reason}")]) from None
    tree = parse(data, report)
    values = read_keys(tree, _FILE, "", report) if tree is not None else {}
    report.raise_if_any()
    return _truth(values)


def _find(name_or_path: str) -> Path:
    if "/" in name_or_path or name_or_path.endswith((".yaml", ".yml")):
        return Path(name_or_path)
    known = shipped()
    if name_or_path not in known:
        hint = did_you_mean(name_or_path, known)
        message = f"there is no such model{hint} (there are: {', '.join(known)}; or give a file)"
        raise ModelFileError([Problem(name_or_path, 0, 0, message)])
    return _FOLDER / f"{name_or_path}.yaml"


def _line(kind: Kind) -> Kind:
    """Text that logs and terminals may print: no control characters, no line breaks."""

    def read(node: Node, label: str, report: Report) -> str:
        value = str(kind(node, label, report))
        strange = next((char for char in value if not char.isprintable()), None)
        if strange is not None:
            report.add(node, f"{label}: character U+{ord(strange):04X} is not allowed here")
        return value

    return read


_POSITIVE = number(above=0)
_TABLE = table(1, _POSITIVE)


def _maybe_text(node: Node, label: str, report: Report) -> str:
    """Text; empty when there is no such thing."""
    if isinstance(node, Scalar):
        return "" if node.is_null else node.text
    expected("text", node, label, report)
    return ""


def _capability(node: Node, label: str, report: Report) -> str:
    """Major and minor number of a GPU's compute capability."""
    value = text(node, label, report)
    if value and not re.fullmatch(r"[0-9]{1,3}\.[0-9]{1,3}", value):
        expected("a compute capability such as 12.1", node, label, report)
    return value


def _curve(node: Node, label: str, report: Report) -> Curve:
    """Numbers above 0 by load."""
    return Curve(tuple(_TABLE(node, label, report).items()) or ((1, 1.0),))


def _chains(node: Node, label: str, report: Report) -> dict[int, Chain]:
    """Acceptance by position, by k: as many positions as drafts, none above the one before it."""
    chains: dict[int, Chain] = table(1, list_of(number(low=0, high=1)))(node, label, report)
    places = {key.integer: value for key, value in node.entries} if isinstance(node, Map) else {}
    for k, chain in chains.items():
        if chain and len(chain) != k:
            message = f"{label}.{k}: expected {k} numbers, one a draft position, got {len(chain)}"
            report.add(places.get(k, node), message)
        if list(chain) != sorted(chain, reverse=True):
            reason = "a position counts only where the one before it was accepted"
            message = f"{label}.{k}: acceptance can't rise from position to position: {reason}"
            report.add(places.get(k, node), message)
    return chains


def _mode_cost(**given: float) -> ModeCost:
    """Nobody measured it: a boot in another graph mode is as fast."""
    return ModeCost(**({"full": 1.0, "piecewise": 1.0, "none": 1.0} | given))


def _boot(**given: Any) -> BootShape:
    """A dense model on a backend that keeps its graphs, where the file says nothing else."""
    return BootShape(**(_PLAIN_BOOT | given))


_PLAIN_BOOT: dict[str, Any] = {
    "architecture": "LlamaForCausalLM",
    "attention_backend": "FLASH_ATTN",
    "moe_backend": "",
    "mamba": False,
    "quantization": "",
}
_TEXT = _line(text)
_MAYBE_TEXT = _line(_maybe_text)
_ANY = number(low=0)
_GRAPHS = choice("full", "piecewise", "none")
_MODE_COST = {name: Key(_POSITIVE) for name in ("full", "piecewise", "none")}
_OFF = {"graphs": Key(_GRAPHS), "step_ms": Key(_curve, required=True)}
_ON = {"graphs": Key(_GRAPHS), "step_ms": Key(table(1, _curve), required=True)}
_DECODE = {
    "off": Key(section(_OFF), required=True),
    "on": Key(section(_ON), required=True),
    "mode_cost": Key(section(_MODE_COST, _mode_cost)),
    "context_ms": Key(_ANY),
}
_ACCEPTANCE = {
    "measured": Key(_chains, required=True),
    "greedy": Key(_chains),
    "sampled_at": Key(_POSITIVE),
}
_KV_CACHE = {
    "tokens": Key(integer(16), required=True),
    "state_tokens": Key(integer(0)),
    "prefix_cache": Key(choice("on", "useless")),
}
_GPU = {
    "name": Key(_TEXT),
    "idle_w": Key(_ANY),
    "power_w": Key(_curve),
    "idle_clock_mhz": Key(_POSITIVE),
    "clock_mhz": Key(_POSITIVE),
    "max_clock_mhz": Key(_POSITIVE),
    "utilization": Key(number(low=0, high=1)),
    "idle_c": Key(_ANY),
    "busy_c": Key(_ANY),
}
_BOOT = {
    "seconds": Key(_POSITIVE),
    "weights_gib": Key(_POSITIVE),
    "drafter_gib": Key(_ANY),
    "kv_gib": Key(_POSITIVE),
    "total_gib": Key(_POSITIVE),
    "shards": Key(integer(1)),
    "architecture": Key(_TEXT),
    "capability": Key(_capability),
    "attention_backend": Key(_TEXT),
    "moe_backend": Key(_MAYBE_TEXT),
    "mamba": Key(boolean),
    "quantization": Key(_MAYBE_TEXT),
}
SECTIONS = {
    "decode": _DECODE,
    "prefill": {"tokens_per_s": Key(_POSITIVE, required=True)},
    "acceptance": _ACCEPTANCE,
    "kv_cache": _KV_CACHE,
    "answers": {"mean_tokens": Key(_POSITIVE), "sd_tokens": Key(_ANY)},
    "gpu": _GPU,
    "boot": _BOOT,
}
_BUILD: dict[str, Callable[..., Any]] = {"gpu": GpuShape, "boot": _boot}
_OPTIONAL = ("answers", "gpu", "boot")
_FILE = {"name": Key(_TEXT, required=True), "about": Key(_TEXT)} | {
    name: Key(section(keys, _BUILD.get(name, dict)), required=name not in _OPTIONAL)
    for name, keys in SECTIONS.items()
}


def _truth(values: Mapping[str, Any]) -> Truth:
    """What was left out is as in the default model, but for ``greedy``, recurrent states, graphs and boot."""
    decode, acceptance, kv = values["decode"], values["acceptance"], values["kv_cache"]
    answers = values.get("answers", {})
    given = {
        "name": values["name"],
        "about": values.get("about", ""),
        "off_step_ms": decode["off"]["step_ms"],
        "off_graphs": decode["off"].get("graphs", "full"),
        "on_step_ms": decode["on"]["step_ms"],
        "on_graphs": decode["on"].get("graphs", "full"),
        "mode_cost": decode.get("mode_cost", _mode_cost()),
        "context_ms": decode.get("context_ms"),
        "prefill_tok_s": values["prefill"]["tokens_per_s"],
        "accepted": acceptance["measured"],
        "greedy": acceptance.get("greedy", {}),
        "sampled_at": acceptance.get("sampled_at"),
        "kv_cache_tokens": kv["tokens"],
        "state_tokens": kv.get("state_tokens"),
        "prefix_cache": kv.get("prefix_cache"),
        "natural_mean": answers.get("mean_tokens"),
        "natural_sd": answers.get("sd_tokens"),
        "gpu": values.get("gpu"),
        "boot": values.get("boot", _boot()),
    }
    return Truth(**{name: value for name, value in given.items() if value is not None})
