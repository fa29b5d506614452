# `make demo` and `make test` need nothing but Python >= 3.11 and make: they build .venv themselves.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
OLDEST := .venv-oldest
# One thread per worker: the workers share the cores already.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1
# A file's tests share what is dear to start, so they stay together; those with long tests begin first.
IN_PARALLEL := -n auto --dist loadfile --no-loadscope-reorder
# The tests start many processes: without compiled files every one of them would compile the package, and every worker the tests.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test coverage test-oldest lint docs bench bench-full clean

# One environment for everything; it is rebuilt when the dependencies in pyproject.toml change.
$(VENV)/ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "labelsieve needs Python 3.11 or newer; try: make PYTHON=python3.11")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[dev,browser]'
	touch $@

demo: $(VENV)/ready
	$(BIN)/labelsieve demo

test: $(VENV)/ready
	$(ONE_THREAD) $(BIN)/python -m pytest -q $(IN_PARALLEL)

coverage: $(VENV)/ready
	$(ONE_THREAD) $(BIN)/python -m pytest -q $(IN_PARALLEL) --cov=labelsieve --cov-branch --cov-report=term

# The lower bounds in pyproject.toml are promises: this environment has exactly them. uv asks pip where packages come from.
$(OLDEST)/ready: pyproject.toml
	$(PYTHON) -m venv --clear $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet uv
	index=$$($(OLDEST)/bin/python -m pip config get global.index-url 2>/dev/null); \
	$${index:+env UV_DEFAULT_INDEX="$$index"} $(OLDEST)/bin/uv pip install --quiet --python $(OLDEST)/bin/python \
		--resolution lowest-direct --editable '.[dev]'
	touch $@

# Roundings differ from processor to processor: here they are those of the oldest that OpenBLAS knows.
test-oldest: $(OLDEST)/ready
	OPENBLAS_CORETYPE=Prescott $(ONE_THREAD) $(OLDEST)/bin/python -m pytest -q $(IN_PARALLEL) -m 'not slow'

# What the site is built with joins the same environment; its versions are pinned. The build asks nothing of the network.
$(VENV)/docs-ready: $(VENV)/ready
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

docs: $(VENV)/docs-ready
	rm -rf docs/_build/html  # pages that nobody writes any more
	$(ONE_THREAD) $(BIN)/python -m sphinx -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html

lint: $(VENV)/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

# A quarter of an hour on two cores; bench-full answers the questions that take longer.
bench: $(VENV)/ready
	$(BIN)/python -m benchmarks

bench-full: $(VENV)/ready
	$(BIN)/python -m benchmarks --full

clean:
	rm -rf $(VENV) $(OLDEST) dist build docs/_build docs/api docs/gallery docs/methods docs/notebooks/*.md docs/notebooks/*.png
