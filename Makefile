# `make demo` and `make test` need nothing but Python >= 3.11 and make: they build .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench bench-full clean

# One environment for everything; it is rebuilt when the dependencies in pyproject.toml change.
$(VENV)/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "labelsieve needs Python 3.11 or newer; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $@

demo: $(VENV)/ready
	$(BIN)/labelsieve demo

# One thread per worker: the workers share the cores already.
test: $(VENV)/ready
	OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(BIN)/python -m pytest -q -n auto

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

# Half an hour on two cores; bench-full asks the questions that take longer.
bench: $(VENV)/ready
	$(BIN)/python -m benchmarks

bench-full: $(VENV)/ready
	$(BIN)/python -m benchmarks --full

clean:
	rm -rf $(VENV) dist build
