"""The stand-in's GPU, where a profile's runner is ``sim``: the machine's own GPU has no part in that run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import httpx

from sparktui.schema.live import GpuView

_TIMEOUT_S = 1.0


class StandIn:
    """Reads ``GET /sim/state`` as Nvml reads a driver. While the server is away: no reading, not 0."""

    problem = ""

    def __init__(self, url: str, transport: httpx.BaseTransport | None = None) -> None:
        self._client = httpx.Client(base_url=url, timeout=_TIMEOUT_S, trust_env=False, transport=transport)

    def read(self) -> tuple[GpuView, ...]:
        """One view an engine. Blocks for up to a second."""
        try:
            engines = self._client.get("/sim/state").json()["engines"]
            return tuple(_view(i, engine["gpu"]) for i, engine in enumerate(engines))
        except (httpx.HTTPError, ValueError, KeyError, TypeError):
            return ()

    def close(self) -> None:
        """Let go of the connection."""
        self._client.close()


def _view(index: int, gpu: Mapping[str, Any]) -> GpuView:
    return GpuView(
        index=index,
        name=f"{gpu['name']} (stand-in)",
        power_w=float(gpu["power_w"]),
        utilization_pct=100.0 * float(gpu["utilization"]),
        sm_mhz=float(gpu["sm_clock_mhz"]),
        sm_max_mhz=float(gpu["max_sm_clock_mhz"]),
        temperature_c=float(gpu["temperature_c"]),
        energy_j=float(gpu["energy_j"]),
    )
