# cordwood: from a fresh checkout to a tested wheel. `make help` lists the targets.
#
# Needed beforehand: Python 3.11 or newer, make, and a Rust toolchain with rustfmt and clippy.
# Everything that is made lies in the checkout, under .venv and target.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
WHEELS := target/wheels

# The first pip with --group is 25.1; older ones come with Python 3.11.
PIP_VERSION := 26.3

# One interpreter for every Cargo command: another path would rebuild PyO3.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# --verifytypes looks for the package only in the first Python on the path, whatever --pythonpath says.
# The variable keeps pyright's wrapper from asking the network for a newer version at each run.
PYRIGHT := PATH="$(CURDIR)/$(BIN):$$PATH" PYRIGHT_PYTHON_IGNORE_WARNINGS=1 pyright

# The steps of `test` are in order, and share target and .venv. Cargo uses all cores by itself.
.NOTPARALLEL:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

.PHONY: help demo test lint test-rust wheel install test-python types bench fmt clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# The two commands ------------------------------------------------------------------------------

demo: $(VENV)/demo.stamp install  ## Build the wheel, then read and write the log of a real LevelDB
	$(BIN)/python tools/demo.py

test: lint test-rust wheel test-python types  ## Run every check below, in this order

# The steps of `make test` ----------------------------------------------------------------------

lint: $(VENV)/test.stamp  ## Check format and lints, Rust and Python
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy --package cordwood --features zstd --all-targets --locked -- -D warnings
	$(BIN)/ruff format --check
	$(BIN)/ruff check

test-rust: $(VENV)/pip.stamp  ## Run the Rust tests, documentation examples included
	cargo test --workspace --locked
	cargo test --package cordwood --features zstd --locked --lib --test engines --test dialect_golden --test dialect_verbs

# An old wheel must not be installed in place of the new one, so the folder starts empty.
wheel: $(VENV)/demo.stamp  ## Build the release wheel into target/wheels
	rm -rf $(WHEELS)
	$(BIN)/maturin build --release --locked --interpreter $(BIN)/python --out $(WHEELS)

# The version stays the same between builds: without --force-reinstall pip would keep the old one.
install: wheel  ## Install that wheel into .venv
	$(BIN)/pip install --quiet --force-reinstall --no-deps --no-index $(WHEELS)/cordwood-*.whl

# The tests see the installed wheel: nothing here puts python/ on the import path.
test-python: $(VENV)/test.stamp install  ## Run the Python tests on the installed wheel
	$(BIN)/pytest

# The stubs are hand-written: stubtest compares them with the built module, and the type checkers
# see what a user's type checker sees.
types: $(VENV)/test.stamp install  ## Check the stubs against the module, and the types of the package
	$(BIN)/stubtest cordwood --mypy-config-file pyproject.toml
	$(BIN)/mypy python/cordwood $(wildcard tests/typing)
	$(PYRIGHT) --verifytypes cordwood --ignoreexternal
	$(PYRIGHT) --warnings

# Not part of the tests: what they print depends on the machine.
bench: $(VENV)/test.stamp install  ## Measure, and keep the figures in benches/record
	cargo bench --locked --package cordwood-bench
	$(BIN)/python benches/python/bench.py --json target/bench-python.json
	$(BIN)/python benches/record.py target/bench-python.json

# By hand ---------------------------------------------------------------------------------------

fmt: $(VENV)/test.stamp  ## Format the sources and apply the safe lint fixes
	cargo fmt --all
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:  ## Remove everything that was made here, .venv included
	rm -rf target $(VENV) .hypothesis .mypy_cache .pytest_cache .ruff_cache

# The environment: a stamp says that a group of pyproject.toml is installed ----------------------

$(VENV)/pip.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "cordwood needs Python 3.11 or newer, not \"$(PYTHON)\"; name one: make PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet pip==$(PIP_VERSION)
	@touch $@

$(VENV)/demo.stamp: $(VENV)/pip.stamp pyproject.toml
	$(BIN)/pip install --quiet --group demo
	@touch $@

$(VENV)/test.stamp: $(VENV)/pip.stamp pyproject.toml
	$(BIN)/pip install --quiet --group test --group lint
	@touch $@
