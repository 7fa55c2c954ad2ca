# One command board: `make help`. Everything runs from .venv, which the first command builds from the locks.

FITS := import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))
PYTHON ?= $(shell for name in python3.11 python3.12 python3.13 python3; do \
	$$name -c '$(FITS)' 2>/dev/null && { command -v $$name; break; }; done)
BIN := .venv/bin
# The rule for `slow`, which pyproject.toml states: what is not, `make test` runs in five minutes on two cores.
MARK ?= not slow and not kafka
REST := $(if $(KAFKA_HOME),slow or kafka,slow and not kafka)
TESTS ?=
JOBS ?= 3
ARGS ?=
RUN_READY := .venv/.ready-run
DEV_READY := .venv/.ready-dev
SERVICE_TESTS := $(addprefix tests/integration/test_,streams.py learner.py rollout_worker.py synthesis_worker.py)
export OMP_NUM_THREADS ?= 1

.DEFAULT_GOAL := help
.PHONY: help install run test test-all test-kafka test-pythons check lint format types imports compatibility lock golden simulate tamper bench-verdicts bench-audit bench-streams bench-learning bench-ctrl-c clean

help:  ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(RUN_READY): requirements.lock pyproject.toml
	@test -n "$(PYTHON)" && $(PYTHON) -c '$(FITS)' \
		|| { echo "Python 3.11, 3.12 or 3.13 is needed; name one with PYTHON=/path/to/python3." >&2; exit 2; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/python -c 'import torch' 2>/dev/null || { \
		echo "This build of PyTorch needs CUDA's libraries: some 3 GB are installed with it."; \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -c requirements.lock torch; }
	@touch $@

$(DEV_READY): $(RUN_READY) requirements-dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps -r requirements-dev.lock
	@touch $@

install: $(RUN_READY)  ## what `run` needs, into .venv

run: $(RUN_READY)  ## five epochs of the whole loop on this machine (ARGS="--seed 2" adds flags)
	@$(BIN)/rods run $(ARGS)

test: $(DEV_READY)  ## five minutes of tests, a whole run among them (TESTS=path, MARK=expression, JOBS=processes)
	@$(BIN)/python -m pytest -n $(JOBS) --dist loadfile -m "$(MARK)" $(TESTS) $(ARGS)

test-all: $(if $(KAFKA_HOME),test-kafka)  ## every test that `test` leaves out; those on Apache Kafka where KAFKA_HOME is set
	@$(MAKE) --no-print-directory test MARK="$(REST)"

test-pythons: $(DEV_READY)  ## the unit tests on each other Python 3.11 to 3.13 of this machine (TORCH=1: those of the model too)
	@.ci/test-pythons

test-kafka: $(DEV_READY)  ## the services' integration tests on Apache Kafka from KAFKA_HOME (TESTS=path, ARGS="-k ...")
	@TEST_BROKER=kafka $(BIN)/python -m pytest -n 2 --dist loadfile $(or $(TESTS),$(SERVICE_TESTS)) $(ARGS)

check: lint types imports compatibility test  ## lint, types, imports, schema compatibility, tests of five minutes

lint: $(DEV_READY)  ## ruff, rules and format
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

format: $(DEV_READY)  ## let ruff repair and format
	@$(BIN)/ruff check --fix . && $(BIN)/ruff format .

types: $(DEV_READY)  ## mypy, strict
	@$(BIN)/python -m mypy

imports: $(DEV_READY)  ## the directions in which packages may import
	@$(BIN)/lint-imports

compatibility: $(DEV_READY)  ## schema files, index and golden bytes against the event types
	@$(BIN)/python -m pytest -q tests/schemas/test_evolution.py tests/schemas/test_golden.py

golden: $(DEV_READY)  ## golden bytes for schema versions that have none yet
	@$(BIN)/python -m tests.golden.events

simulate: $(DEV_READY)  ## seeded schedules of log, workers and learners (ARGS="--schedules 1000000 --processes 2")
	@$(BIN)/python -m tests.simulation $(ARGS)

tamper: $(DEV_READY)  ## seeded tamperings with an archive, each reported in its place (ARGS="--acts 10000")
	@$(BIN)/python -m tests.tamperings $(ARGS)

lock:  ## resolve requirements.lock and requirements-dev.lock anew
	@.ci/lock

bench-verdicts: $(DEV_READY)  ## our BFCL verdicts against bfcl_eval's checker: agreement and speed
	@$(BIN)/python -m benchmarks.verdicts $(ARGS)

bench-streams: $(DEV_READY)  ## the streams: speed, memory and latency (ARGS="--quick")
	@$(BIN)/python -m benchmarks.streams $(ARGS)

bench-audit: $(DEV_READY)  ## what the audit does a second (ARGS="--groups 625000 --tasks 100000 --epochs 50 --jobs 2")
	@$(BIN)/python -m benchmarks.audit $(ARGS)

bench-ctrl-c: $(DEV_READY)  ## seconds from Ctrl-C to the end of a run (ARGS="--broker kafka")
	@$(BIN)/python -m benchmarks.ctrl_c $(ARGS)

bench-learning: $(DEV_READY)  ## three seeds, a control and a static pool from the warm start
	@$(BIN)/python -m benchmarks.learning $(ARGS)

clean:  ## remove .venv and caches; runs/ stays
	rm -rf .venv .venv-3.* .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist
