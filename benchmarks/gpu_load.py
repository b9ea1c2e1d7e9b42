"""Load for one GPU through the driver alone, PTX in hand: python benchmarks/gpu_load.py KIND SECONDS.

``spin``: one thread; ``copy``: memory to memory; ``fma``: arithmetic on every core; ``burst``: that, on and
off. Needs a GPU of compute capability 8.0 or newer; no toolkit.
"""

from __future__ import annotations

import ctypes
import sys
import time
from collections.abc import Callable
from typing import Any

LAUNCH_S = 0.05
BURST_S = 0.7  # on, and off: no multiple of a reading's interval
COPY_BYTES = 1 << 30
SM_COUNT = 16  # CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
PTX = b"""
.version 7.0
.target sm_80
.address_size 64
.visible .entry burn(.param .u64 out, .param .u32 rounds)
{
    .reg .pred %again, %never;
    .reg .f32 %a, %b, %c, %d, %m;
    .reg .u32 %i, %n, %t;
    .reg .u64 %o;
    ld.param.u64 %o, [out];
    ld.param.u32 %n, [rounds];
    cvta.to.global.u64 %o, %o;
    mov.u32 %t, %tid.x;
    cvt.rn.f32.u32 %a, %t;
    mov.f32 %b, 0f3F000000;
    mov.f32 %c, 0f3F400000;
    mov.f32 %d, 0f3F600000;
    mov.f32 %m, 0f3F7FFFF0;
    mov.u32 %i, 0;
AGAIN:
    fma.rn.f32 %a, %a, %m, %m;
    fma.rn.f32 %b, %b, %m, %m;
    fma.rn.f32 %c, %c, %m, %m;
    fma.rn.f32 %d, %d, %m, %m;
    fma.rn.f32 %a, %a, %m, %m;
    fma.rn.f32 %b, %b, %m, %m;
    fma.rn.f32 %c, %c, %m, %m;
    fma.rn.f32 %d, %d, %m, %m;
    add.u32 %i, %i, 1;
    setp.lt.u32 %again, %i, %n;
    @%again bra AGAIN;
    add.f32 %a, %a, %b;
    add.f32 %c, %c, %d;
    add.f32 %a, %a, %c;
    setp.lt.f32 %never, %a, 0f00000000;
    @%never st.global.f32 [%o], %a;
    ret;
}
"""


class Cuda:
    """The few calls of libcuda that a load needs. Raises RuntimeError, or OSError without the library."""

    def __init__(self) -> None:
        self._lib = ctypes.CDLL("libcuda.so.1")
        device, context, module = ctypes.c_int(), ctypes.c_void_p(), ctypes.c_void_p()
        self.call("cuInit", 0)
        self.call("cuDeviceGet", ctypes.byref(device), 0)
        self.call("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self.call("cuCtxSetCurrent", context)
        self.call("cuModuleLoadData", ctypes.byref(module), ctypes.c_char_p(PTX))
        self._burn = ctypes.c_void_p()
        self.call("cuModuleGetFunction", ctypes.byref(self._burn), module, ctypes.c_char_p(b"burn"))
        count = ctypes.c_int()
        self.call("cuDeviceGetAttribute", ctypes.byref(count), SM_COUNT, device)
        self.cores = count.value

    def call(self, name: str, *args: Any) -> None:
        """Raises RuntimeError with the driver's own word for what went wrong."""
        code = getattr(self._lib, name)(*args)
        if code:
            said = ctypes.c_char_p()
            self._lib.cuGetErrorName(code, ctypes.byref(said))
            raise RuntimeError(f"{name}: {(said.value or b'?').decode()} ({code})")

    def memory(self, size: int) -> ctypes.c_uint64:
        """The address of so many bytes on the GPU."""
        address = ctypes.c_uint64()
        self.call("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        return address

    def burn(self, out: ctypes.c_uint64, blocks: int, threads: int, rounds: int) -> None:
        """Run the kernel to its end."""
        count = ctypes.c_uint(rounds)
        given = (ctypes.c_void_p * 2)(ctypes.addressof(out), ctypes.addressof(count))
        self.call("cuLaunchKernel", self._burn, blocks, 1, 1, threads, 1, 1, 0, None, given, None)
        self.call("cuCtxSynchronize")


def copying(cuda: Cuda) -> Callable[[], None]:
    """A step: 32 GiB from memory to memory."""
    source, target = cuda.memory(COPY_BYTES), cuda.memory(COPY_BYTES)
    size = ctypes.c_size_t(COPY_BYTES)

    def step() -> None:
        for _ in range(32):
            cuda.call("cuMemcpyDtoD_v2", target, source, size)
        cuda.call("cuCtxSynchronize")

    return step


def burning(cuda: Cuda, blocks: int, threads: int) -> Callable[[], None]:
    """A step: the kernel, for at least 50 ms."""
    out = cuda.memory(4)
    rounds, took = 1 << 12, 0.0
    while took < LAUNCH_S and rounds < 1 << 28:
        rounds *= 2
        begun = time.monotonic()
        cuda.burn(out, blocks, threads, rounds)
        took = time.monotonic() - begun
    return lambda: cuda.burn(out, blocks, threads, rounds)


def load(kind: str, seconds: float) -> None:
    """Keep GPU 0 busy so long; a line on stdout when it begins."""
    cuda = Cuda()
    if kind == "copy":
        step = copying(cuda)
    else:
        step = burning(cuda, *((1, 1) if kind == "spin" else (8 * cuda.cores, 256)))
    print("begun", flush=True)
    begun = time.monotonic()
    while (now := time.monotonic() - begun) < seconds:
        if kind == "burst" and now % (2 * BURST_S) > BURST_S:
            time.sleep(0.01)
        else:
            step()


if __name__ == "__main__":
    load(sys.argv[1], float(sys.argv[2]))
