# skiplab: `make lab` for a first look, `make gallery` for everything, `make test` before a commit.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
STORE ?= skiplab-results

OLDEST ?= 2.9.1
OLD := .venv-oldest

.PHONY: help setup lab gallery test test-all test-oldest docs lint clean

help:
	@echo "make lab       set up, get CIFAR-10, run the tour (about 5 minutes) and write the report"
	@echo "make gallery   run every study at quick scale and write the report"
	@echo "make test      lint, types, import contracts, tests and the share of lines they run"
	@echo "make docs      the documentation as a site in docs/_build: instruments, API, examples as they run"
	@echo "make test-all  the same with the slow suites, and a few tests with the oldest torch that is supported"

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "skiplab needs Python 3.11 or newer; point to one with: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null \
		|| { echo "Python's venv is missing; install it with: apt-get install -y python3-venv"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo "Installing pinned packages into .venv (a minute or two the first time) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(STAMP)

lab: setup
	@$(BIN)/skiplab data fetch cifar10 || echo "Going on without CIFAR-10; items that need it are left out."
	@$(BIN)/skiplab run tour --store $(STORE)

gallery: setup
	@$(BIN)/skiplab data fetch cifar10 || echo "Going on without CIFAR-10; items that need it are left out."
	@$(BIN)/skiplab run all --store $(STORE)

lint: setup
	@$(BIN)/ruff check src tests tools examples docs
	@$(BIN)/ruff format --check src tests tools examples docs
	@$(BIN)/mypy
	@$(BIN)/lint-imports

test: lint
	@$(BIN)/python -m pytest -n 2 -p tests.line_coverage

test-all: lint test-oldest docs
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt playwright
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r tests/stock-models.txt
	@$(BIN)/python -m pytest -n 2 -p tests.line_coverage -m "" --ignore tests/reproduction/test_executor.py
	@$(BIN)/python -m pytest -m "" tests/reproduction/test_executor.py  # Dask clusters do not start inside workers

docs: setup
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[docs]'
	@$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build
	@echo "Documentation: $(CURDIR)/docs/_build/index.html"

# Only a CPU build is tried: the others bring gigabytes of CUDA.
test-oldest: setup
	@test -x $(OLD)/bin/python || $(PYTHON) -m venv $(OLD)
	@if grep -v '^torch==' constraints.txt > $(OLD)/constraints.txt && $(OLD)/bin/python -m pip install --quiet \
		--disable-pip-version-check -c $(OLD)/constraints.txt 'torch==$(OLDEST)+cpu' -e . pytest 2> $(OLD)/why.txt; then \
		$(OLD)/bin/python -m pytest tests/architectures/test_every_architecture.py tests/test_torch_private.py \
			tests/measurements/test_gradient_norms.py tests/measurements/test_hessian_spectrum.py; \
	else \
		echo "Left out: tests with torch $(OLDEST), of which no registry here has a CPU build ($(OLD)/why.txt)."; \
	fi

clean:
	rm -rf .venv $(OLD) build dist docs/_build docs/made
