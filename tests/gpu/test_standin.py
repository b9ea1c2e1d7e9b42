"""The stand-in's sensors over HTTP; that a real stand-in answers like this is held by tests/commands."""

from __future__ import annotations

from collections.abc import Callable

import httpx
import pytest

from sparktui.gpu.standin import StandIn
from sparktui.schema.live import GpuView

GPU = {
    "name": "NVIDIA GB10",
    "power_w": 32.0,
    "utilization": 0.94,
    "sm_clock_mhz": 2405.0,
    "temperature_c": 61.0,
    "energy_j": 1234.5,
    "max_sm_clock_mhz": 3003.0,
}


def reading(answer: Callable[[httpx.Request], httpx.Response]) -> tuple[GpuView, ...]:
    sensors = StandIn("http://127.0.0.1:1", httpx.MockTransport(answer))
    try:
        return sensors.read()
    finally:
        sensors.close()


def test_each_engine_is_a_gpu() -> None:
    def answer(request: httpx.Request) -> httpx.Response:
        assert request.url.path == "/sim/state"
        return httpx.Response(200, json={"engines": [{"gpu": GPU}, {"gpu": GPU | {"power_w": 5.0}}]})

    first, second = reading(answer)
    assert first == GpuView(
        index=0,
        name="NVIDIA GB10 (stand-in)",
        power_w=32.0,
        utilization_pct=94.0,
        sm_mhz=2405.0,
        sm_max_mhz=3003.0,
        temperature_c=61.0,
        energy_j=1234.5,
    )
    assert (second.index, second.power_w) == (1, 5.0)


@pytest.mark.parametrize(
    "response",
    [
        httpx.Response(404, json={"detail": "Not Found"}),
        httpx.Response(200, text="<html>"),
        httpx.Response(200, json={"engines": [{"gpu": {"power_w": 3}}]}),
    ],
)
def test_an_odd_answer_is_no_reading(response: httpx.Response) -> None:
    assert reading(lambda request: response) == ()


def test_nobody_there_is_no_reading() -> None:
    def refuse(request: httpx.Request) -> httpx.Response:
        raise httpx.ConnectError("refused", request=request)

    assert reading(refuse) == ()
