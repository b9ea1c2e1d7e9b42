"""sparktui: launch, watch and A/B a vLLM server from the terminal."""

__version__ = "0.1.0"
