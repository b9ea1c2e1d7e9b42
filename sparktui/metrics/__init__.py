"""COUNTING: /metrics text to counters to window differences."""
