# All targets build .venv first. They only need Python 3.11 or newer and make.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
# Test workers already use all cores.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# Tests of one file share expensive fixtures, so they run in one worker. Slow files start first.
IN_PARALLEL := -n auto --dist loadfile --no-loadscope-reorder
# The tests start many processes. Without .pyc files each one would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

# Time and random seed of make fuzz.
SECONDS ?= 60
SEED ?= 0

.PHONY: demo test fuzz coverage test-oldest lint docs bench bench-full clean

# One environment for everything. It is rebuilt when pyproject.toml changes.
$(VENV)/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "labelsieve needs Python 3.11 or newer; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev,browser,fastcan]'
	touch $@

demo: $(VENV)/ready
	$(BIN)/labelsieve demo

test: $(VENV)/ready
	$(ONE_THREAD) $(BIN)/python -m pytest -q $(IN_PARALLEL)

# Read randomly damaged files of every format, for example with SECONDS=600 SEED=7.
fuzz: $(VENV)/ready
	$(ONE_THREAD) $(BIN)/python tests/fuzz_readers.py $(SECONDS) $(SEED)

coverage: $(VENV)/ready
	$(ONE_THREAD) $(BIN)/python -m pytest -q $(IN_PARALLEL) --cov=labelsieve --cov-branch --cov-report=term

# This environment has exactly the lower bounds in pyproject.toml. uv uses the package index of pip.
$(OLDEST)/ready: pyproject.toml
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet uv
	index=$$($(OLDEST)/bin/python -m pip config get global.index-url 2>/dev/null); \
	$${index:+env UV_DEFAULT_INDEX="$$index"} $(OLDEST)/bin/uv pip install --quiet --python $(OLDEST)/bin/python \
		--resolution lowest-direct --editable '.[dev]'
	touch $@

# Rounding differs between processors. Prescott is the oldest that OpenBLAS knows.
test-oldest: $(OLDEST)/ready
	OPENBLAS_CORETYPE=Prescott $(ONE_THREAD) $(OLDEST)/bin/python -m pytest -q $(IN_PARALLEL) -m 'not slow'

# The site is built without network access.
$(VENV)/docs-ready: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

docs: $(VENV)/docs-ready
	rm -rf docs/_build/html  # removes stale pages
	$(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

# Takes 15 minutes on two cores. bench-full takes hours.
bench: $(VENV)/ready
	$(BIN)/python -m benchmarks

bench-full: $(VENV)/ready
	$(BIN)/python -m benchmarks --full

clean:
	rm -rf $(VENV) $(OLDEST) dist build docs/_build docs/api docs/gallery docs/methods docs/notebooks/*.md docs/notebooks/*.png
