"""The boot as the configured release prints it: moments of lines, each with its share of the boot's seconds.

Seconds inside messages are the modelled machine's, however fast the boot passes here. Wording from recorded
boots (0.24.0 on an H200, 0.27.1 and 0.32.0 on a CPU) and, for lines no CPU prints, from the released sources.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

from sparktui.sim.boot.facts import BootFacts
from sparktui.sim.boot.load import compilation, weights
from sparktui.sim.boot.logfile import Log
from sparktui.sim.boot.memory import capture, memory, warm_up
from sparktui.sim.boot.moments import Moment, api, engine
from sparktui.sim.boot.setup import configuration, engine_start

__all__ = ["BootFacts", "Moment", "banner", "moments"]

_STAND_IN = "This is sparktui's stand-in server: figures come from a model, not from a GPU."
_LOGO = (
    "\n       {w}█     █     █▄   ▄█{r}\n"
    " {o}▄▄{r} {b}▄█{r} {w}█     █     █ ▀▄▀ █{r}  version {w}%s{r}\n"
    "  {o}█{r}{b}▄█▀{r} {w}█     █     █     █{r}  model   {w}%s{r}\n"
    "   {b}▀▀{r}  {w}▀▀▀▀▀ ▀▀▀▀▀ ▀     ▀{r}\n"
)
_PLAIN = {"w": "", "o": "", "b": "", "r": ""}
_COLOURED = {"w": "\x1b[1m", "o": "\x1b[93m", "b": "\x1b[94m", "r": "\x1b[0m"}


def banner(log: Log, facts: BootFacts) -> None:
    """What this is, its version, and the arguments: before the port is bound."""
    release = facts.release
    if not release.since("0.17.0"):
        log.api("api_server.py:1772", f"vLLM API server version {release.version}")
    elif os.environ.get("VLLM_DISABLE_LOG_LOGO", "0") not in ("", "0"):
        text = f"vLLM server version {release.version}, serving model {facts.model}"
        log.api("api_utils.py:345", text)
    else:
        logo = _LOGO.format(**(_COLOURED if log.colours.record else _PLAIN))
        log.api("api_utils.py:345", logo % (release.version, facts.model))
    log.api("api_utils.py:273", f"non-default args: {facts.shown_args!r}")
    log.api("sim.py:1", _STAND_IN, "WARNING")


def moments(facts: BootFacts) -> Iterator[Moment]:
    """Everything between the bound port and the HTTP server's start. Shares add up to about 0.97."""
    yield from configuration(facts)
    yield from engine_start(facts)
    yield from weights(facts)
    if not facts.eager:
        yield from compilation(facts)
    yield from memory(facts)
    yield from warm_up(facts)
    yield from capture(facts)
    yield from _ready(facts)


def _ready(facts: BootFacts) -> Iterator[Moment]:
    took = f"init engine (profile, create kv cache, warmup model) took {facts.seconds * 0.55:.2f} "
    if not facts.release.since("0.21.0"):
        took += "seconds"
    elif facts.eager:
        took += "s"
    else:
        took += f"s (compilation: {facts.seconds * 0.2:.2f} s)"
    yield engine(0.04, "core.py:355", took)
    yield api(0.05, "api_server.py:678", "Supported tasks: ['generate']")
    yield api(
        0,
        "hf.py:540",
        "Detected the chat template content format to be 'openai'. You can set "
        "`--chat-template-content-format` to override this.",
    )
