# The one place where each check is defined; CI and people call it alike. `make` alone lists the targets.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
.DEFAULT_GOAL := help
# Checks start hundreds of processes, which would compile the project anew each time.
export PYTHONDONTWRITEBYTECODE :=
.PHONY: help setup java programs run test check test-stores thorough lint types contracts unit quick slow tests rest seeds \
  specs specs-medium proofs performance performance-scaling sweep notebooks tidy reference lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 22

# Two environments in one folder: what `make run` needs, and with it the tools of development.
# Each is installed once, and again after a change of its lock.
RUN_READY := $(VENV)/.run-ready
DEV_READY := $(VENV)/.dev-ready
READY := $(if $(wildcard $(DEV_READY)),$(DEV_READY),$(RUN_READY)) # the tools include what a run needs

# CPython in WebAssembly, for the tests of the page in a browser tab; without npm these are left out.
PYODIDE_VERSION := $(shell sed -n 's/^VERSION = "\(.*\)".*/\1/p' bench/pages/tab.py)
PYODIDE := $(VENV)/pyodide-$(PYODIDE_VERSION)

setup: $(DEV_READY) $(VENV)/spark-classes.jsa $(VENV)/tlc-classes.jsa $(PYODIDE) ## make the environment .venv with all tools of development

# Half a minute, and each of the many starts of Spark takes half of its time.
$(VENV)/spark-classes.jsa: $(DEV_READY)
	@if command -v java >/dev/null; then $(BIN)/python -m analysis.classes; fi

# The same for the 140 starts of TLC.
$(VENV)/tlc-classes.jsa: $(DEV_READY)
	@if command -v java >/dev/null; then $(BIN)/python -m specs.classes; fi

$(PYODIDE): | $(DEV_READY)
	@if command -v npm >/dev/null; then \
	  npm install --silent --no-audit --no-fund --fetch-retries 1 --fetch-timeout 20000 --prefix $@ pyodide@$(PYODIDE_VERSION) || rm -rf $@; fi

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed (set PYTHON=python3.11 if it has another name)"; exit 1; }
	@echo "making the environment $(VENV)"
	@$(PYTHON) -m venv $(VENV) \
	  || { rm -rf $(VENV); echo "no venv module: on Debian, apt-get install python3-venv"; exit 1; }

$(VENV)/.%-ready: requirements/%.lock | $(BIN)/python
	@$(BIN)/python .ci/install $<
	@touch $@

java: ## check that Java 17 or newer is there (Spark and TLC need it)
	@sh .ci/require-java

programs: java ## check that all programs that `make check` starts are there
	@.ci/needs check

run: $(READY) ## one Kafka test on the embedded bench, its verdict, then its figures
	@.ci/first-run

# DONE names a file: the tests in it are left out, and those that pass are added (CI, for one state of the sources).
# Many tests wait, so two processes more than there are cores fill these.
PROCESSES = $(shell $(BIN)/python -c 'import os; print(2 + min(os.cpu_count() or 1, 4))')
PYTEST = $(BIN)/python -m pytest --dist loadscope --no-loadscope-reorder -n $(PROCESSES) \
  $(if $(DONE),--done=$(DONE))

# Two lines of work fill two cores: tests in one run, which starts Spark once, and beside it all else in turn.
# ALSO names more targets. A failure of one stops no other. REST is one target, or make fills both lines with it
# while the tests look for Java.
IN_TWO_LINES = @$(MAKE) --no-print-directory --keep-going --jobs 2 rest
test: setup lint contracts ## what to run after a change (5-10 min); what needs a missing program is left out
	$(IN_TWO_LINES) quick REST=types

check: setup programs ## all that CI runs (15-30 min): what `make test` and `make thorough` run, at once
	$(IN_TWO_LINES) tests REST="$(if $(DONE),,lint types contracts) notebooks proofs specs $(ALSO)"

rest:
	@$(MAKE) --no-print-directory --keep-going --jobs 1 $(REST)

test-stores: setup ## what each store promises, on servers of its own: also Ceph's S3 gateway, azurite (4 min)
	@.ci/test-stores $(OPTIONS)

thorough: setup programs ## what `make test` leaves out: slow tests, pages in a browser, models, notebooks
	$(IN_TWO_LINES) slow REST="notebooks proofs specs $(ALSO)"

lint: setup ## format, lint, and that every import is declared
	@$(BIN)/ruff format --check . && $(BIN)/ruff check . && $(BIN)/deptry .

types: setup ## static types
	@$(BIN)/mypy

contracts: setup ## imports go one way
	@$(BIN)/lint-imports

# No process need import what has one of these markers as a whole, or nearly so.
UNIT_IGNORES := $(foreach place,analysis process simulation pages/test_*_browser.py,--ignore-glob 'tests/$(place)')
unit: setup ## the tests of single modules (1-2 min)
	@$(PYTEST) $(UNIT_IGNORES) -m "not (browser or process or simulation or slow or spark or stores or tlc)"

quick: setup ## unit tests, and those with processes, simulated clusters, Spark and TLC
	@$(PYTEST) -m "not (browser or seeds or slow or stores)"

slow: setup java ## the tests that `make quick` leaves out
	@$(PYTEST) -m "(browser or slow) and not stores"

tests: setup java ## quick and slow tests in one run
	@$(PYTEST) -m "not (seeds or stores)"

seeds: setup ## 5 700 more seeds (7-14 min): after a change of the protocol, bench or simulator, and before a release
	@$(PYTEST) -m seeds

SPECS_JOBS ?= 2
specs: setup java ## the TLA+ models, small sizes, checked by TLC
	@$(BIN)/python -m specs.check --jobs $(SPECS_JOBS)

PROOFS_JOBS ?= 2
proofs: setup java ## the models proved for every size, by two solvers, and held to what small ones reach (1 min)
	@PYTHONHASHSEED=0 $(BIN)/python -m specs.proof --jobs $(PROOFS_JOBS)

specs-medium: setup java ## the TLA+ models, thorough sizes (many minutes)
	@$(BIN)/python -m specs.check --size medium --jobs 1 --workers auto

REPETITIONS ?= 3
TIME_LIMIT ?= 20
FRESH ?= --fresh
RUN_SWEEP = ./maelstrom sweep --engine embedded --discard $(FRESH)
performance: setup ## strategies x configurations (1 h) into docs/performance/strategies.md; FRESH= goes on with the last
	@$(RUN_SWEEP) bench/sweep/comparison.toml --repetitions $(REPETITIONS) --set time-limit=$(TIME_LIMIT) $(OPTIONS) \
	  || test $$? -le 2  # a verdict is a result
	@$(BIN)/python -m performance.pages strategies --docs docs/performance

performance-scaling: setup ## how cost grows with nodes, clients, keys, messages (10 min); plots in docs/images
	@$(RUN_SWEEP) bench/sweep/scaling.toml $(OPTIONS) || test $$? -le 2
	@$(BIN)/python -m performance.pages scaling --docs docs/performance

SWEEP ?= smoke
sweep: $(READY) ## run a matrix of tests: SWEEP=smoke (1 min), faults, scaling, comparison (docs/bench/sweeps.md)
	@./maelstrom sweep bench/sweep/$(SWEEP).toml

notebooks: setup java ## the notebooks on a fresh smoke sweep, in a temporary folder; a broken cell fails
	@.ci/notebooks

tidy: setup ## lower the numbers of budget.toml to what the house has; figures say that the code is newer
	@$(BIN)/python -m tests.budget
	@$(BIN)/python -m performance.age

reference: setup java ## results/reference, the notebooks' outputs, all pictures of README and docs (10 min quiet)
	@.ci/reference

LOCK := $(BIN)/pip-compile --quiet --no-header --no-annotate --strip-extras --no-emit-index-url \
  --no-emit-find-links --no-emit-trusted-host $(addprefix --unsafe-package ,leaderless pip setuptools)
lock: setup ## resolve pyproject.toml into requirements/*.lock again; UPGRADE=--upgrade takes newer versions
	@$(LOCK) $(UPGRADE) --extra analysis -o requirements/run.lock pyproject.toml
	@$(LOCK) $(UPGRADE) --all-extras -c requirements/run.lock -o requirements/dev.lock pyproject.toml

clean: ## remove the environment and caches; results stay
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
