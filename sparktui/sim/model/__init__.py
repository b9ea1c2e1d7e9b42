"""The engine model and the machines it is calibrated to: no clock, no I/O but the machine files."""
