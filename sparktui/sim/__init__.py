"""A stand-in vLLM with known truth."""
