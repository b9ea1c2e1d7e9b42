"""Arguments of ``sparktui sim serve``: the release's flags, checked as its argparse does, and ``--sim-…``."""

from __future__ import annotations

import argparse
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sparktui.sim.flags import Parser, integer, real, split_nested
from sparktui.sim.release import DEFAULT, RELEASES, Release

BOOT_FAILURES = (
    "engine-oom",
    "b12x-linear",
    "b12x-moe",
    "marlin-mtp",
    "kv-too-small",
    "free-memory",
)
FAILURES = (
    "none",
    *BOOT_FAILURES,
    "unknown-flag",
    "port-in-use",
    "never-ready",
    "illegal-access",  # at the first step that drafts
    "metrics-nonsense",
    "hang-requests",
)
_UNSAID_K = 3  # num_speculative_tokens where only the draft model's own config has it


@dataclass(frozen=True, slots=True)
class SimOptions:
    """The stand-in's own knobs. ``boot_seconds``: whole boot; noise: relative standard deviations."""

    boot_seconds: float = 2.5
    seed: int | None = None  # None: another one at every start
    noise: float = 0.01
    restart_noise: float = 0.005
    fail: str = "none"
    model: str | None = None  # a shipped machine-and-model file's name, or a path; None: the default one
    vllm: str = DEFAULT  # the release to speak like
    boot_speed: float | None = None  # modelled boot seconds that pass in one second; overrides boot_seconds
    linger_seconds: float = 0.0  # how long the engine's processes outlive an orderly end
    clock: str | None = None  # a file for the times of every streamed answer: http/clock.py


@dataclass(frozen=True, slots=True)
class ServeArguments:
    """``given``: what the command line set, in vLLM's spelling, as its "non-default args" line shows it."""

    model: str
    given: dict[str, Any]
    api_keys: tuple[str, ...]
    sim: SimOptions

    def get(self, name: str, default: Any) -> Any:
        value = self.given.get(name)
        return default if value is None else value

    @property
    def release(self) -> Release:
        return Release(self.sim.vllm)

    @property
    def served_names(self) -> tuple[str, ...]:
        names = self.given.get("served_model_name")
        return tuple(names) if names else (self.model,)

    @property
    def engines(self) -> int:
        """data_parallel_size."""
        return int(self.get("data_parallel_size", 1))

    @property
    def max_num_seqs(self) -> int:
        return int(self.get("max_num_seqs", 256))

    @property
    def eager(self) -> bool:
        return bool(self.get("enforce_eager", False))

    @property
    def speculative(self) -> dict[str, Any] | None:
        """The speculative config with its ``num_speculative_tokens``; None when speculation is off."""
        config = dict(self.given.get("speculative_config") or {})
        for flag, key in (
            ("spec_method", "method"),
            ("spec_model", "model"),
            ("spec_tokens", "num_speculative_tokens"),
        ):
            if flag in self.given:
                config[key] = self.given[flag]
        return config or None

    @property
    def method(self) -> str:
        """The speculative method as vLLM names it; empty when speculation is off."""
        config = self.speculative or {}
        method = str(config.get("method") or ("draft_model" if "model" in config else ""))
        return "mtp" if method.endswith("_mtp") else method

    @property
    def k(self) -> int:
        """num_speculative_tokens; 0 when speculation is off."""
        config = self.speculative
        if not config:
            return 0
        asked = config.get("num_speculative_tokens")
        return _UNSAID_K if asked is None else int(asked)


def parse(argv: list[str]) -> ServeArguments:
    """Parse what follows ``serve``. Wrong usage prints as vLLM does and raises SystemExit(2)."""
    release = _release_of(argv)
    parser = _parser(release)
    plain, nested = split_nested(argv, release)
    namespace, unknown = parser.parse_known_args(plain)
    given = {name: value for name, value in vars(namespace).items() if value is not None}
    if unknown or given.get("sim_fail") == "unknown-flag":
        parser.unrecognized(unknown or ["--no-such-flag"])
    _merge(given, nested, parser)
    if "config" in given:
        parser.error("argument --config: the stand-in does not read configuration files; give their flags")
    sim = SimOptions(**{f.removeprefix("sim_"): given[f] for f in given if f.startswith("sim_")})
    model = str(given.pop("model_tag", None) or given.get("model") or "Qwen/Qwen3-0.6B")
    keys = tuple(given.get("api_key", ())) or (os.environ.get("VLLM_API_KEY", ""),)
    shown: dict[str, Any] = {"model_tag": model} | {k: v for k, v in given.items() if k != "model"}
    shown["model"] = model
    parsed = ServeArguments(model, shown, tuple(key for key in keys if key), sim)
    _check_drafts(parsed, parser)
    _check_metrics(parsed, parser)
    return parsed


def _merge(given: dict[str, Any], nested: dict[str, dict[str, Any]], parser: Parser) -> None:
    """Add ``--flag.key value`` pairs to what ``--flag`` was given, which has to be an object."""
    for name, pairs in nested.items():
        held = given.setdefault(name, {})
        if not isinstance(held, dict):
            flag = name.replace("_", "-")
            parser.error(f"argument --{flag}: Value {held} cannot be converted to {json.loads}.")
        held.update(pairs)


def _check_drafts(parsed: ServeArguments, parser: Parser) -> None:
    """num_speculative_tokens by vLLM's rule: anything that pydantic takes for an int above 0."""
    asked = (parsed.speculative or {}).get("num_speculative_tokens")
    if asked is None:
        return
    try:
        whole = not isinstance(asked, bool) and (not isinstance(asked, float) or asked.is_integer())
        fits = whole and int(asked) > 0
    except (ValueError, TypeError):
        fits = False
    if not fits:
        key = "argument --speculative-config: num_speculative_tokens"
        parser.error(f"{key}: expected an integer of at least 1, got {asked!r}")


def _check_metrics(parsed: ServeArguments, parser: Parser) -> None:
    """What vLLM refuses of the flags of per-request metrics, in its words."""
    if parsed.get("enable_per_request_metrics", False) and parsed.get("disable_log_stats", False):
        parser.error(
            "--enable-per-request-metrics requires engine statistics logging; "
            "remove --disable-log-stats to enable per-request metrics."
        )
    if parsed.get("per_request_spec_decode_metrics", "none") != "none" and parsed.speculative is None:
        parser.error(
            "--per-request-spec-decode-metrics requires speculative decoding to be enabled "
            "(via --speculative-config)."
        )


def _writable(path: str) -> str:
    try:
        with Path(path).open("ab"):
            return path
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot write {path}: {error.strerror}") from None


def _release_of(argv: list[str]) -> Release:
    """The release whose flags count: the last ``--sim-vllm``, which the parser checks later."""
    found = DEFAULT
    for place, token in enumerate(argv):
        name, sign, value = token.partition("=")
        if name.replace("_", "-") == "--sim-vllm":
            found = value if sign else next(iter(argv[place + 1 :]), DEFAULT)
    return Release(found if found in RELEASES else DEFAULT)


def _parser(release: Release) -> Parser:
    parser = Parser(release)
    parser.add_argument("--sim-boot-seconds", type=real(low=0))
    parser.add_argument("--sim-boot-speed", "--boot-speed", dest="sim_boot_speed", type=real(above=0))
    parser.add_argument("--sim-seed", type=integer())
    parser.add_argument("--sim-noise", type=real(low=0, high=1))
    parser.add_argument("--sim-restart-noise", type=real(low=0, high=1))
    parser.add_argument("--sim-fail", choices=FAILURES)
    parser.add_argument("--sim-model")
    parser.add_argument("--sim-vllm", choices=RELEASES)
    parser.add_argument("--sim-linger-seconds", type=real(low=0))
    parser.add_argument("--sim-clock", type=_writable)
    return parser
