"""GPU power, clocks and memory from NVML; host memory from psutil."""
