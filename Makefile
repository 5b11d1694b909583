# Every target makes the environment it needs in .venv; the only requirement is a python3 >= 3.11.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
VERSIONS := .venv-versions
# Pythons of `make lowest`, for instance PYTHONS="python3.11 python3.13".
PYTHONS ?= $(PYTHON)
# Where scientific packages put the wheels of the night.
NIGHTLIES := https://pypi.anaconda.org/scientific-python-nightly-wheels/simple
DEMO := build/demo
# Tests run on every core; benchmarks, which need the machine for themselves, do not.  Each worker
# begins with tests that stand together, so that what they share is made once.
PYTEST := $(BIN)/python -m pytest -n auto --dist worksteal -p no:benchmark
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PYTHONHASHSEED := 0
# Commands that tests start read what was compiled to bytecode once.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: release-check demo near test check check-all lint fuzz lowest nightlies bench bench-peers ratios mutations docs notebooks bounds format clean

demo: $(VENV)/.demo
	rm -rf $(DEMO)
	mkdir -p $(DEMO)
	$(BIN)/bayesrisk audit sample:small-town-audit -o $(DEMO)/audit --workers 2
	$(BIN)/bayesrisk sweep sample:dare-county-sweep -o $(DEMO)/sweep --workers 2
	@echo
	@echo "Results of the demonstration; each report has figures, tables, and how to read them:"
	@echo "  1. four protections of a small town, what is learned about people and how much of it"
	@echo "     from their own records:  open $(CURDIR)/$(DEMO)/audit/report.html"
	@echo "  2. disclosure risk over rho for a table of Dare County, 1940:"
	@echo "     open $(CURDIR)/$(DEMO)/sweep/report.html"

# Meant for a minute: the tests nearest to the files that differ from HEAD, or from BASE=REVISION, or to
# FILES="...", and why each is run.
near: $(VENV)/.test
	$(BIN)/python benchmarks/near.py $(if $(BASE),--base $(BASE)) $(FILES)

# The slow tests, a few hundred, are run by `make check-all`.
test: $(VENV)/.test
	$(PYTEST) -m "not slow"

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# What runs on a clean clone: everything but what takes long to say little more.  The documentation
# executes the notebooks, and fails where one does: once is enough.
check: lint
	$(PYTEST) -m "not slow"
	$(MAKE) ratios
	$(MAKE) docs

# Once a week, and before a release: also the slow tests, kernels with bounds checks, mutations, and
# each benchmark once.
check-all: lint
	$(PYTEST) --hypothesis-profile thorough --fuzz-files 20000 --fuzz-calls 3000 \
	  --deselect tests/test_notebooks.py::test_notebooks_run
	$(MAKE) bounds
	$(MAKE) mutations
	$(MAKE) ratios
	$(MAKE) docs
	$(BIN)/python -m pytest -q -p no:benchmark tests/test_pages.py
	$(BIN)/python -m pytest -n auto benchmarks -q --benchmark-disable --ignore benchmarks/test_ratios.py

# Damaged files, hostile arguments, flipped bits of what a command stored, and kills at every change
# of a file: many more of them than in the tests.
fuzz: $(VENV)/.test
	$(PYTEST) tests/fuzz \
	  --fuzz-files 200000 --fuzz-readings 50000 --fuzz-calls 50000 --fuzz-flips 2000 --fuzz-kills all

# The fast tests on the lowest versions of all libraries that pyproject.toml declares, and on the
# newest, on each of the Pythons; every pair in an environment of its own.
lowest: $(VERSIONS)/uv/bin/uv
	@set -e; for python in $(PYTHONS); do for versions in lowest-direct highest; do \
	  here=$(CURDIR)/$(VERSIONS)/$$(basename $$python)-$$versions; \
	  echo "== $$python, $$versions"; \
	  $(VERSIONS)/uv/bin/uv venv --quiet --clear --python $$python $$here; \
	  $(VERSIONS)/uv/bin/uv pip install --quiet --python $$here/bin/python \
	    --resolution $$versions --editable '.[test]'; \
	  NUMBA_CACHE_DIR=$$here/numba $$here/bin/python -m pytest -q -n auto -p no:benchmark \
	    -m "not slow"; \
	done; done

# The fast tests on the newest wheels of NumPy, SciPy, pandas and Numba, those of the night too, as
# far as they fit each other.
nightlies: $(VERSIONS)/uv/bin/uv
	$(VERSIONS)/uv/bin/uv venv --quiet --clear --python $(PYTHON) $(VERSIONS)/nightlies
	$(VERSIONS)/uv/bin/uv pip install --quiet --python $(VERSIONS)/nightlies/bin/python \
	  --upgrade --prerelease allow --index-strategy unsafe-best-match \
	  --extra-index-url $(NIGHTLIES) --only-binary numpy --only-binary scipy \
	  --only-binary pandas --only-binary numba --editable '.[test]'
	$(VERSIONS)/uv/bin/uv pip list --python $(VERSIONS)/nightlies/bin/python
	NUMBA_CACHE_DIR=$(CURDIR)/$(VERSIONS)/nightlies/numba $(VERSIONS)/nightlies/bin/python -m pytest \
	  -q -n auto -p no:benchmark -m "not slow"

# What would be released: archives twice the same, whole and with one version, the demonstration from
# the wheel on the lowest and newest libraries, links of the documentation.  Nothing is uploaded.
release-check: $(VENV)/.dev $(VERSIONS)/uv/bin/uv docs
	$(BIN)/python .ci/release-check.py --uv $(CURDIR)/$(VERSIONS)/uv/bin/uv --pythons $(PYTHONS)

# The compiled kernels once more, with every index checked (a cache of its own).
bounds: $(VENV)/.dev
	NUMBA_BOUNDSCHECK=1 NUMBA_CACHE_DIR=$(VENV)/numba-bounds \
	  $(PYTEST) -q tests/distributions tests/inference tests/risk tests/reconstruction -m "not slow"

# Small faults in the mathematical core, one after another in a copy: tests must see each of them.
mutations: $(VENV)/.dev
	$(BIN)/python benchmarks/mutations.py --workers 2

# What is measured beside its target goes into the table that the docs show.
bench: $(VENV)/.dev
	$(BIN)/python -m pytest benchmarks -q -s --benchmark-columns=min,median,rounds \
	  --targets docs/explanation/targets.csv

# Ratios to slow twins with wide margins: a kernel that runs as interpreted code is found.
ratios: $(VENV)/.dev
	$(BIN)/python -m pytest -q -p no:benchmark benchmarks/test_ratios.py

# Beside other tools, whose versions do not fit into .venv; writes the tables that the docs show.
bench-peers: $(PEERS)/.peers
	PYTHONPATH=$(CURDIR)/benchmarks:$(CURDIR)/tests:$(CURDIR)/tests/support $(PEERS)/bin/python -m peers --to docs/reference

# Notebooks are executed by the build, and an error in one is an error of the build.
docs: $(VENV)/.dev
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html

notebooks: $(VENV)/.test
	$(BIN)/python -m pytest -q tests/test_notebooks.py

format: $(VENV)/.dev
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) $(PEERS) $(VERSIONS) build dist docs/_build docs/tutorials/*.ipynb .pytest_cache .mypy_cache .ruff_cache

$(VERSIONS)/uv/bin/uv:
	$(PYTHON) -m venv $(VERSIONS)/uv
	$(VERSIONS)/uv/bin/python -m pip install --quiet uv

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "bayesrisk needs Python 3.11 or later; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# One stamp for each set of extras; a later set holds the earlier ones.
$(VENV)/.demo: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable .
	@touch $@

$(VENV)/.test: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	@touch $@ $(VENV)/.demo

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	@touch $@ $(VENV)/.test $(VENV)/.demo

$(PEERS)/.peers: pyproject.toml benchmarks/peers/requirements.txt | $(BIN)/python
	$(BIN)/python -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet --editable '.[test]' -r benchmarks/peers/requirements.txt
	@touch $@
