"""What the log says when something goes wrong; tracebacks shortened, their last lines as vLLM's."""

from __future__ import annotations

from sparktui.sim.logfile import Log
from sparktui.sim.payloads import ENGINE_DEAD

_OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of "
    "119.70 GiB of which 812.00 MiB is free. Including non-PyTorch memory, this process has 97.21 GiB "
    "memory in use."
)
_ENGINE_STACK = """Traceback (most recent call last):
  File "vllm/v1/engine/core.py", line 1200, in run_engine_core
    engine_core = EngineCoreProc(*args, engine_index=dp_rank, **kwargs)
  File "vllm/v1/worker/gpu_worker.py", line 384, in load_model
    self.model_runner.load_model(load_dummy_weights=load_dummy_weights)
"""
_API_STACK = """Traceback (most recent call last):
  File "vllm/entrypoints/cli/main.py", line 101, in <module>
    main()
  File "vllm/v1/engine/utils.py", line 1272, in wait_for_engine_startup
    raise RuntimeError(
RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): """
_PORT_STACK = """Traceback (most recent call last):
  File "vllm/entrypoints/openai/api_server.py", line 612, in setup_server
    sock = create_server_socket(sock_addr)
  File "vllm/entrypoints/openai/api_server.py", line 560, in create_server_socket
    sock.bind(addr)
"""


def out_of_memory(log: Log) -> None:
    """The engine fails to start for want of GPU memory."""
    log.engine("core.py:1231", "EngineCore failed to start.", "ERROR")
    log.engine("core.py:1231", _ENGINE_STACK + _OOM, "ERROR")
    log.engine_raw("Process EngineCore:\n" + _ENGINE_STACK + _OOM)
    log.api_raw(_API_STACK + "{}")


def engine_lost_at_boot(log: Log, exit_code: int) -> None:
    """The engine process ended before the server was ready."""
    log.api_raw(_API_STACK + f"{{'EngineCore': {exit_code}}}")


def engine_lost(log: Log) -> None:
    """The engine process ended while serving."""
    text = "Engine core proc EngineCore died unexpectedly, shutting down client."
    log.api("core_client.py:600", text, "ERROR")
    log.api(
        "async_llm.py:724", "EngineCore encountered a fatal error. AsyncLLM output_handler failed.", "ERROR"
    )
    stack = (
        "Traceback (most recent call last):\n"
        '  File "vllm/v1/engine/async_llm.py", line 680, in output_handler\n'
        "    outputs = await engine_core.get_output_async()\n"
        f"vllm.v1.engine.exceptions.EngineDeadError: {ENGINE_DEAD}"
    )
    log.api("async_llm.py:724", stack, "ERROR")


def port_stack(error: OSError) -> str:
    """The traceback of a failed bind."""
    return f"{_PORT_STACK}OSError: [Errno {error.errno}] {error.strerror}"


def shutdown(log: Log) -> None:
    """The orderly end, up to the HTTP server's."""
    log.api("launcher.py:112", "[shutdown] API server: shutdown triggered")
    log.api("launcher.py:128", "[shutdown] API server: stopping engine client mode=abort timeout=0s")
    log.api("core_client.py:686", "[shutdown] MPClient: start timeout=0s")
    log.api("utils.py:612", "[shutdown] Process manager: send sigterm to process EngineCore")
    log.engine("core.py:1332", "[shutdown] EngineCore: trigger received signal=SIGTERM")


def shutdown_done(log: Log) -> None:
    """The last lines of an orderly end."""
    log.api("core_client.py:693", "[shutdown] MPClient: complete")
    log.api("launcher.py:161", "[shutdown] API server: shutting down FastAPI HTTP server")
    for line in ("Shutting down", "Waiting for application shutdown.", "Application shutdown complete."):
        log.api_raw(f"INFO:     {line}")
