# skiplab: `make lab` for a first look, `make gallery` for everything, `make test` before a commit.
PYTHON ?= python3
BIN := .venv/bin
STAMP := .venv/.installed
STORE ?= skiplab-results

.PHONY: help setup lab gallery test test-all lint clean

help:
	@echo "make lab       set up, get CIFAR-10, run the tour (about 5 minutes) and write the report"
	@echo "make gallery   run every study at quick scale and write the report"
	@echo "make test      lint, types, import contracts and tests"
	@echo "make test-all  the same with the slow suites"

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
	@$(BIN)/ruff check src tests tools examples
	@$(BIN)/ruff format --check src tests tools examples
	@$(BIN)/mypy
	@$(BIN)/lint-imports

test: lint
	@$(BIN)/python -m pytest

test-all: lint
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt playwright
	@$(BIN)/python -m pytest -m ""

clean:
	rm -rf .venv build dist
