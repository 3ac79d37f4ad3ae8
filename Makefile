# The one place where each check is defined; CI and people call it alike. `make` alone lists the targets.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.ready
.DEFAULT_GOAL := help
.PHONY: help setup java run test lint types contracts unit test-slow specs specs-medium bench bench-scaling sweep notebooks reference lock clean

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 18

setup: $(STAMP) ## make the environment (.venv), once and after a change of requirements.lock

$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed (set PYTHON=python3.11 if it has another name)"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) \
	  || { echo "no venv module: on Debian, apt-get install python3-venv"; exit 1; }
	@echo "setup: installing requirements.lock into $(VENV) (a minute or two, once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	@touch $(STAMP)

java: ## check that Java 17 or newer is there (Spark and TLC need it)
	@sh scripts/require-java

run: setup java ## one Kafka test on the embedded bench, its verdict, then the Spark summary of that run
	@scripts/run

test: setup java lint types contracts unit specs notebooks ## all fast checks; .ci/run calls exactly this

lint: setup ## format and lint
	@$(BIN)/ruff format --check . && $(BIN)/ruff check .

types: setup ## static types
	@$(BIN)/mypy

contracts: setup ## imports go one way
	@$(BIN)/lint-imports

unit: setup ## the fast tests
	@$(BIN)/python -m pytest -m "not slow"

test-slow: setup java ## the slow tests
	@$(BIN)/python -m pytest -m slow

specs: setup java ## the TLA+ models, small sizes, checked by TLC
	@$(BIN)/python -m specs.check

specs-medium: setup java ## the TLA+ models, thorough sizes (many minutes)
	@$(BIN)/python -m specs.check --size medium --jobs 1 --workers auto

REPETITIONS ?= 3
TIME_LIMIT ?= 20
FRESH ?= --fresh
RUN_SWEEP = ./maelstrom sweep --engine embedded --discard $(FRESH)
bench: setup ## strategies x configurations (an hour); docs/performance/strategies.md; FRESH= goes on with the last
	@$(RUN_SWEEP) sweeps/comparison.toml --repetitions $(REPETITIONS) --set time-limit=$(TIME_LIMIT) $(BENCH) \
	  || test $$? -le 2  # a verdict is a result
	@$(BIN)/python -m performance.strategies --docs docs/performance

bench-scaling: setup ## how cost grows with nodes, clients, keys, messages (10 min); plots in docs/images
	@$(RUN_SWEEP) sweeps/scaling.toml $(BENCH) || test $$? -le 2
	@$(BIN)/python -m performance.scaling --docs docs/performance

SWEEP ?= smoke
sweep: setup ## run a matrix of tests: SWEEP=smoke (a minute), faults, scaling, comparison (docs/sweeps.md)
	@./maelstrom sweep sweeps/$(SWEEP).toml

notebooks: setup java ## the notebooks on a fresh smoke sweep, in a temporary folder; a broken cell fails
	@scripts/notebooks

reference: setup java ## results/reference, the notebooks' outputs and the README's pictures, made anew (8 min quiet)
	@scripts/reference

lock: setup ## resolve pyproject.toml into requirements.lock again
	@$(BIN)/pip-compile --quiet --strip-extras --no-emit-index-url --no-emit-find-links \
	  --no-emit-trusted-host --no-header --all-extras -o requirements.lock pyproject.toml

clean: ## remove the environment and caches; results stay
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
