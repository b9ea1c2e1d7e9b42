"""READING the boot log: bytes to lines to phases, findings and facts."""
