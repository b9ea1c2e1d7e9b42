"""What a vLLM server does, told once: the stand-in and the real one are held to the same assertions.

Here the tests run against the stand-in; tests/real/test_contract.py runs the very same ones against real
vLLM. Where the two differ the stand-in is wrong; where releases differ the expectation is a table by
release.
"""
