"""What the log says when a serving engine is lost, and at an orderly end: recorded from 0.32.0 and 0.27.1."""

from __future__ import annotations

from sparktui.sim.boot.logfile import Log
from sparktui.sim.http.payloads import ENGINE_DEAD

_CLIENT = "[shutdown] MPClient:"
_MANAGER = "[shutdown] Process manager:"
_ENGINE = "[shutdown] EngineCore:"
_SERVER = "[shutdown] API server:"
_SITE = "/opt/vllm/site-packages/vllm"
_ILLEGAL_ACCESS = f"""Traceback (most recent call last):
  File "{_SITE}/v1/engine/core.py", line 1345, in run_engine_core
    engine_core.run_busy_loop()
  File "{_SITE}/v1/worker/gpu_worker.py", line 842, in execute_model
    output = self.model_runner.execute_model(scheduler_output, intermediate_tensors)
  File "{_SITE}/v1/worker/gpu_model_runner.py", line 4316, in sample_tokens
    propose_draft_token_ids(sampled_token_ids)
torch.AcceleratorError: CUDA error: an illegal memory access was encountered
Search for `cudaErrorIllegalAddress' in \
https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be \
incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."""
_OUTPUT_HANDLER = f"""AsyncLLM output_handler failed.
Traceback (most recent call last):
  File "{_SITE}/v1/engine/async_llm.py", line 680, in output_handler
    outputs = await engine_core.get_output_async()
  File "{_SITE}/v1/engine/core_client.py", line 1089, in get_output_async
    raise self._format_exception(outputs) from None
vllm.v1.engine.exceptions.EngineDeadError: {ENGINE_DEAD}"""


def illegal_access(log: Log) -> None:
    """The engine's last words when its first step that drafts touches memory that isn't its own."""
    text = f"Dumping input data for V1 LLM engine (v{log.release.version}) with config: device_config=cuda"
    log.engine("dump_input.py:72", text, "ERROR", 0)
    log.engine("core.py:1351", f"EngineCore encountered a fatal error.\n{_ILLEGAL_ACCESS}", "ERROR", 0)


def engine_lost(log: Log) -> None:
    """The engine's process ended while serving."""
    text = f"{_CLIENT} engine core exited unexpectedly; starting cleanup"
    log.api("core_client.py:725", text, "WARNING")
    log.api("core_client.py:686", f"{_CLIENT} start timeout=default")
    log.api("core_client.py:688", f"{_CLIENT} stopping engine manager")
    _client_done(log)
    log.api("async_llm.py:724", _OUTPUT_HANDLER, "ERROR")


def shutdown(log: Log, signals: tuple[str, ...]) -> None:
    """The orderly end, up to the HTTP server's. ``signals``: what reached the engines."""
    for name in signals:
        log.engine("core.py:1332", f"{_ENGINE} trigger received signal={name}")
    log.api("launcher.py:112", f"{_SERVER} shutdown triggered")
    log.api("launcher.py:128", f"{_SERVER} stopping engine client mode=abort timeout=0s")
    log.api("core_client.py:686", f"{_CLIENT} start timeout=0s")
    log.api("core_client.py:688", f"{_CLIENT} stopping engine manager")
    if log.release.since("0.27.0"):
        log.api("utils.py:612", f"{_MANAGER} send sigterm to process {log.names[0]}")
    text = f"{_MANAGER} force killing remaining processes count={len(log.names)}"
    log.api("utils.py:632", text, "WARNING")
    log.engine("core.py:1332", f"{_ENGINE} trigger received signal=SIGTERM")
    log.engine("core.py:1468", f"{_ENGINE} start mode=abort timeout=0s")
    log.engine("core.py:1499", f"{_ENGINE} request processing complete; starting resource teardown")
    log.engine("core.py:1345", f"{_ENGINE} exiting busy loop")
    _client_done(log)
    log.api("launcher.py:137", f"{_SERVER} engine client stopped")
    log.api("launcher.py:140", f"{_SERVER} signalling HTTP server shutdown")
    log.api("launcher.py:161", f"{_SERVER} shutting down FastAPI HTTP server")


def http_shutdown(log: Log) -> None:
    """uvicorn's first line of its end."""
    log.api_raw("INFO:     Shutting down")


def http_waits(log: Log) -> None:
    """uvicorn has responses under way; vLLM ignores the further signals that the line invites."""
    log.api_raw("INFO:     Waiting for connections to close. (CTRL+C to force quit)")


def http_done(log: Log, pid: int | None = None) -> None:
    """uvicorn's last lines. ``pid``: named when the engine's death ended it."""
    log.api_raw("INFO:     Waiting for application shutdown.")
    log.api_raw("INFO:     Application shutdown complete.")
    if pid is not None:
        log.api_raw(f"INFO:     Finished server process [{pid}]")


def _client_done(log: Log) -> None:
    log.api("core_client.py:690", f"{_CLIENT} engine manager stopped")
    log.api("core_client.py:691", f"{_CLIENT} cleaning up background resources")
    log.api("core_client.py:693", f"{_CLIENT} complete")
