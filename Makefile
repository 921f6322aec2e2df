# cordwood: from a fresh checkout to a tested wheel. `make help` lists the targets.
#
# Needed beforehand: Python 3.11 or newer, make, and a Rust toolchain with rustfmt and clippy.
# Everything that is built stays in the checkout, under .venv and target.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
WHEELS := target/wheels

# --group needs pip 25.1; Python 3.11 comes with an older one.
PIP_VERSION := 26.3

# One process more than cores, since some tests wait, such as for a killed program. One with nothing left to do takes over some
# tests of another.
EACH_CORE := --numprocesses $(shell $(PYTHON) -c 'import os; print((os.cpu_count() or 1) + 1)') --dist worksteal

# One interpreter for every Cargo command: a different path would rebuild PyO3.
export PYO3_PYTHON := $(CURDIR)/$(BIN)/python
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# --verifytypes looks for the package only in the first Python on the path, whatever --pythonpath says.
# The variable keeps pyright's wrapper from checking the network for a newer version on each run.
PYRIGHT := PATH="$(CURDIR)/$(BIN):$$PATH" PYRIGHT_PYTHON_IGNORE_WARNINGS=1 pyright

# Targets run in order, since they share target and .venv, and Cargo uses all cores on its own. But `test` runs the Rust tests
# beside the release builds and the checks that need only those. Then the Python tests use all cores.
ifdef BESIDE
wheel-abi3: wheel
test-python: test-rust types test-abi3
else
.NOTPARALLEL:
endif
.DELETE_ON_ERROR:
.DEFAULT_GOAL := help

.PHONY: help demo dev check test lint lint-benches test-rust test-aarch64 test-windows model loom exhaustive asan wheel install test-python test-pythons test-remote test-engines conformance conformance-archive conformance-reader survival verdicts soak types test-abi3 wheel-abi3 sdist package-check release-check deny advisories docs web test-web bench-abi3 bench bench-pipelines bench-memory bench-durable bench-survival fuzz mutants fmt clean

help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

# The two commands ------------------------------------------------------------------------------

demo: $(VENV)/demo.stamp install  ## Build the wheel, then read and write the log of a real LevelDB
	$(BIN)/python tools/demo.py

test: lint  ## Run every check below
	$(MAKE) BESIDE=yes --jobs=2 test-rust test-python types test-abi3

# While you work ----------------------------------------------------------------------------------

# Changes in python/ take effect at once; after a change in rust/, run it again.
dev: $(VENV)/test.stamp $(VENV)/lint.stamp  ## Build the package into .venv for development: debug, editable
	VIRTUAL_ENV="$(CURDIR)/$(VENV)" $(BIN)/maturin develop --profile dev --quiet
	$(BIN)/python tools/stub.py
	$(BIN)/python tools/man.py

# Finds most mistakes in less than a minute; `make test` runs everything. (Clippy on the binding would make the next
# `make dev` rebuild PyO3, so that is left to `make lint`.) With T, only those tests run: paths below tests/ go to
# pytest, anything else to `cargo test` for the core.
CHECKED := $(addprefix tests/api/test_,$(addsuffix .py, \
		reader writer record_batches sources follow fast_calls values objects large_files)) \
	tests/format/test_golden.py tests/format/test_vectors.py tests/package/test_help.py
ifdef T
check: $(if $(filter tests/%,$(T)),dev,$(VENV)/pip.stamp)  ## Check the format, the lints and the fast tests; only some tests: T=tests/api/test_follow.py, T="--lib resync"
	$(if $(filter tests/%,$(T)),$(BIN)/pytest --quiet $(T),cargo test --quiet --package cordwood-log --locked $(T))
else
check: dev
	cargo fmt --all --check
	cargo clippy --quiet --package cordwood-log --package cordwood-payload --locked -- -D warnings
	$(BIN)/ruff format --quiet --check
	$(BIN)/ruff check --quiet
	$(BIN)/python tools/phrases.py
	$(BIN)/python tools/lines.py --check
	cargo test --quiet --package cordwood-log --package cordwood-payload --lib --locked
	cargo build --quiet --package cordwood-log --features zstd --example conformance --locked
	$(BIN)/python conformance/suite.py --known conformance/known.txt target/debug/examples/conformance
	$(BIN)/pytest --quiet $(EACH_CORE) $(CHECKED)
endif

# The steps of `make test` ----------------------------------------------------------------------

WASM := wasm32-unknown-unknown
HAS_WASM := $(wildcard $(shell rustc --print target-libdir --target $(WASM)))

# The benchmarks of the core are in the workspace of the comparison with its peers, which are not needed for them.
COMPARE := --manifest-path benches/compare/Cargo.toml --target-dir target/compare --locked
BENCH := --package cordwood-bench $(COMPARE)

# In a command for the whole workspace, the core has the features that the binding asks for. A command for the core alone
# checks what a Rust program gets by default, without zstd; and without files, for WebAssembly if that target is installed.
lint: $(VENV)/lint.stamp  ## Check format and lints, and that the documented figures are those of the newest benchmark record
	cargo fmt --all --check
	cargo fmt --manifest-path rust/fuzz/Cargo.toml --check
	cargo fmt --manifest-path rust/exhaustive/Cargo.toml --check
	cargo fmt --all --manifest-path benches/compare/Cargo.toml --check
	cargo fmt --manifest-path benches/durable/Cargo.toml --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	cargo clippy --package cordwood-log --locked -- -D warnings
	cargo clippy --package cordwood-log --no-default-features --locked -- -D warnings
	$(if $(HAS_WASM),cargo check --package cordwood-log --no-default-features --locked --target $(WASM))
	RUSTDOCFLAGS="-D warnings" cargo doc --package cordwood-log --package cordwood-payload --no-deps --locked
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/python tools/phrases.py
	$(BIN)/python tools/lines.py --check
	$(BIN)/python tools/commits.py
	$(BIN)/python tools/layers.py
	$(BIN)/python tools/matrix.py --check
	$(BIN)/python benches/plot.py --check
	$(BIN)/python benches/survival/page.py --check
	$(BIN)/zizmor --offline --quiet .github
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml

# Not part of `make test`: half a minute for dependencies that only the benchmarks have.
lint-benches:  ## Check the lints of the benchmarks in Rust
	cargo clippy $(BENCH) --all-targets -- -D warnings

test-rust: $(VENV)/pip.stamp  ## Run the Rust tests, documentation examples included
	cargo test --package cordwood-log --package cordwood-payload --package cordwood-web --features cordwood-log/zstd --locked
	$(BIN)/python conformance/suite.py --known conformance/known.txt target/debug/examples/conformance
	cargo test --package cordwood-log --locked --test engines --test dialect_ops --test pack
	$(EXHAUSTIVE) small
	$(if $(CORDWOOD_CORPUS),cargo test --package cordwood-log --locked --test vectors -- --ignored)

# The directory is emptied first, so that an old wheel cannot be installed in place of the new one.
wheel: $(VENV)/demo.stamp LICENSE-THIRD-PARTY  ## Build the release wheel into target/wheels
	rm -rf $(WHEELS)
	$(BIN)/python tools/wheels.py --out $(WHEELS)

# The version stays the same between builds: without --force-reinstall pip would keep the old one.
install: wheel  ## Install that wheel into .venv
	$(BIN)/pip install --quiet --force-reinstall --no-deps --no-index $(WHEELS)/cordwood-*.whl

# The tests use the installed wheel: nothing here puts python/ on the import path.
test-python: $(VENV)/test.stamp $(VENV)/peers.stamp $(VENV)/appengine.stamp install  ## Run the Python tests on the installed wheel
	$(BIN)/pytest --quiet $(EACH_CORE)

# Not part of `make test`: a release build for each Python.
test-pythons: $(VENV)/demo.stamp LICENSE-THIRD-PARTY  ## Run the tests of the classes on each Python on the path or in pyenv
	$(BIN)/python tools/test_pythons.py

# Not part of `make test`: it installs 60 packages. `make test` tests the same with in-memory file systems and stores.
test-remote: $(VENV)/remote.stamp install  ## Read from an S3 server, through s3fs and obstore
	$(BIN)/pip --python $(VENV)/remote/bin/python install --quiet --force-reinstall --no-deps --no-index $(WHEELS)/cordwood-*.whl
	$(VENV)/remote/bin/python -m pytest tests/remote

# Not part of `make test` either: Beam is 500 MB, Spark 850 MB, and Spark needs Java 17. `make test` tests everything that needs no runner.
# Spark's workers run another Python by default. Where many tests share a core, they take minutes to start.
test-engines: export PYSPARK_PYTHON := $(CURDIR)/$(VENV)/spark/bin/python
test-engines: $(VENV)/beam.stamp $(VENV)/spark.stamp $(VENV)/libraries.stamp install  ## Read and write in pipelines of Apache Beam and jobs of Apache Spark, and read in other libraries
	$(BIN)/pip --python $(VENV)/beam/bin/python install --quiet --force-reinstall --no-deps --no-index $(WHEELS)/cordwood-*.whl
	$(VENV)/beam/bin/python -m pytest tests/pipelines/test_beam.py tests/package/test_help.py
	$(VENV)/beam/bin/python -m pytest tests/package/test_docs.py -k 'beam or engines.md'
	$(BIN)/pip --python $(VENV)/libraries/bin/python install --quiet --force-reinstall --no-deps --no-index $(WHEELS)/cordwood-*.whl
	$(VENV)/libraries/bin/python -m pytest tests/package/test_docs.py -k 'libraries.md or training.md'
	$(VENV)/libraries/bin/python -m pytest tests/pipelines/test_grain.py
	$(BIN)/pip --python $(VENV)/spark/bin/python install --quiet --force-reinstall --no-deps --no-index $(WHEELS)/cordwood-*.whl
	$(VENV)/spark/bin/python -m pytest -o faulthandler_timeout=600 tests/pipelines/test_spark.py
	$(VENV)/spark/bin/python -m pytest -o faulthandler_timeout=600 tests/package/test_docs.py -k spark.md

# Not part of `make test`: it fetches packages of Debian, and takes some minutes.
conformance: $(VENV)/test.stamp $(VENV)/peers.stamp $(VENV)/appengine.stamp  ## Ask the readers of other projects for the conformance cases, and write conformance/engines.md
	PYTHONPATH=$(VENV)/peers $(BIN)/python conformance/engines.py

# Not part of `make test`: it needs Node.
conformance-reader:  ## Ask the reader in JavaScript for the conformance cases
	python3 conformance/suite.py node conformance/readers/reader.mjs

conformance-archive:  ## Write target/cordwood-conformance-VERSION.tar.gz: the cases, for readers in other languages
	python3 conformance/archive.py target

# Not part of `make test`, which does a tenth of it or less: it takes a quarter of an hour.
survival: $(VENV)/test.stamp install  ## Kill, fork and rotate 6,500 times, read in threads 1,600 times, look at 20,000 recycled and 30,000 packed logs, flip each bit of a log; judge 2,000 states of databases; check for losses
	CORDWOOD_SURVIVAL=full $(BIN)/pytest tests/survival tests/format/test_packed.py tests/engines/test_databases.py
	CORDWOOD_SURVIVAL=full cargo test --package cordwood-log --locked --test all -- damage::

# Installs the versions of the engines into target/engines. RECORD=--record writes its table into docs/safety.md.
verdicts: $(VENV)/test.stamp install  ## Compare the verdicts about 670 databases of killed writers and 1,500 changed ones with their engines
	$(BIN)/python tests/survival/verdicts.py --states 160 --engines target/engines $(RECORD)

# Not part of `make test`: it takes as many hours as H says. RECORD=--record writes its figures into docs/safety.md.
H := 1
soak: $(VENV)/test.stamp install  ## Write, follow and read logs for hours, while processes are killed and disks are full: H=8
	$(BIN)/python tests/survival/soak.py $(H) $(RECORD)

# The types in the stub are written by hand: stubtest compares them with the built module, whose docstrings the stub
# repeats. The type checkers see what a user's type checker sees, including the documentation's examples.
types: $(VENV)/test.stamp $(VENV)/lint.stamp install  ## Check the stubs against the module, and the types of the package
	$(BIN)/python tools/stub.py --check
	$(BIN)/stubtest cordwood --mypy-config-file pyproject.toml --allowlist tests/typing/stubtest-allowlist.txt
	$(BIN)/mypy python/cordwood python/pyspark_cordwood $(wildcard tests/typing)
	$(PYRIGHT) --verifytypes cordwood --ignoreexternal
	$(PYRIGHT) --warnings
	$(BIN)/python tools/examples.py target/examples
	$(BIN)/mypy --config-file= --strict target/examples
	$(PYRIGHT) --warnings --project target/examples

# For Pythons without a wheel of their own: one wheel for all versions from 3.11. `make bench-abi3` compares the two.
wheel-abi3: $(VENV)/demo.stamp LICENSE-THIRD-PARTY  ## Build the wheel for the stable ABI into target/wheels-abi3
	rm -rf $(WHEELS)-abi3
	$(BIN)/python tools/wheels.py --abi3 --out $(WHEELS)-abi3

# PYTHONPATH takes precedence over the installed wheel. Three quarters of the time these tests wait.
test-abi3: $(VENV)/test.stamp install wheel-abi3  ## Run the tests of the classes on that wheel
	rm -rf target/abi3
	$(BIN)/pip install --quiet --no-deps --no-index --target target/abi3 $(WHEELS)-abi3/cordwood-*.whl
	PYTHONPATH=target/abi3 $(BIN)/pytest --quiet --numprocesses 4 @tests/classes.txt

bench-abi3: test-abi3  ## Time that wheel against the one for this Python
	$(BIN)/python benches/python/abi3.py target/abi3

# Packages ----------------------------------------------------------------------------------------

# The licences require these texts to accompany any binary that contains the code.
LICENSE-THIRD-PARTY: Cargo.lock pyproject.toml tools/licences.py
	$(PYTHON) tools/licences.py > $@

sdist: $(VENV)/demo.stamp LICENSE-THIRD-PARTY  ## Build the source distribution into target/sdist
	$(BIN)/python tools/published.py target/published
	rm -rf target/sdist
	$(BIN)/maturin sdist --manifest-path target/published/rust/cordwood-python/Cargo.toml --out target/sdist

# Not part of `make test`: five release builds.
package-check: $(VENV)/package.stamp LICENSE-THIRD-PARTY  ## Build everything that would be published, and try each piece where nothing else is installed
	$(BIN)/python tools/package_check.py

release-check:  ## Say what prevents a release of this commit
	$(PYTHON) tools/release_check.py

# The site ----------------------------------------------------------------------------------------

# Of the page "Try it here". Of zstd's compressors, only those of the levels that cordwood uses are in the module. The other
# options are those of zstd-sys for a small one.
ZSTD_SMALL := HUF_FORCE_DECOMPRESS_X1 ZSTD_FORCE_DECOMPRESS_SEQUENCES_SHORT ZSTD_NO_INLINE ZSTD_STRIP_ERROR_STRINGS
ZSTD_PARTS := GREEDY LAZY LAZY2 BTLAZY2 BTOPT BTULTRA
web: export CARGO_PROFILE_RELEASE_STRIP := symbols
web: export CFLAGS_wasm32_unknown_unknown := -Os $(ZSTD_SMALL:%=-D%=1) $(ZSTD_PARTS:%=-DZSTD_EXCLUDE_%_BLOCK_COMPRESSOR)
web:  ## Build the module of the site's page that reads logs
	$(if $(and $(HAS_WASM),$(shell command -v clang)),cargo build --quiet --package cordwood-web --release --locked --target $(WASM), \
		@echo "web: left out, as it needs clang, and: rustup target add $(WASM)")

# Not part of `make test`: it needs Chromium, and builds the site. Without Chromium the tests say so.
test-web: $(VENV)/web.stamp install docs  ## Drop logs on the site's page that reads them, in Chromium
	$(BIN)/pip --python $(VENV)/web/bin/python install --quiet --force-reinstall --no-deps --no-index $(WHEELS)/cordwood-*.whl
	$(VENV)/web/bin/python -m pytest tests/web

# Warnings are errors, links that lead nowhere among them. `make test` runs the examples of the pages.
docs: $(VENV)/docs.stamp web  ## Build the site into target/docs
	rm -rf target/docs
	$(VENV)/docs/bin/sphinx-build --quiet --fail-on-warning --keep-going --doctree-dir target/doctrees docs target/docs
	$(BIN)/python tools/site_check.py target/docs

# Another processor, another system --------------------------------------------------------------

AARCH64 := aarch64-unknown-linux-gnu

# Not part of `make test`: it needs tools that few machines have. The core's tests are compiled for AArch64 and run in
# an emulator, which shows that the checksum kernels are correct, not how fast they are. A test that tries every bit or
# every crash would take many minutes there.
test-aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER := aarch64-linux-gnu-gcc
test-aarch64: export CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER := qemu-aarch64 -L /usr/aarch64-linux-gnu
test-aarch64:  ## Run the core's tests for AArch64 in an emulator
	@for tool in aarch64-linux-gnu-gcc qemu-aarch64; do command -v $$tool >/dev/null || \
		{ echo "test-aarch64 needs $$tool; on Debian: apt-get install gcc-aarch64-linux-gnu libc6-dev-arm64-cross qemu-user" >&2; exit 1; }; \
	done
	@test -n "$$(find "$$($${RUSTC:-rustc} --print target-libdir --target $(AARCH64))" -name 'libstd-*.rlib' 2>/dev/null)" || \
		{ echo "test-aarch64 needs Rust's standard library for $(AARCH64): rustup target add $(AARCH64)," >&2; \
		echo "or name a compiler that has it: make test-aarch64 RUSTC=..." >&2; exit 1; }
	cargo test --package cordwood-log --locked --target $(AARCH64) --lib
	cargo test --package cordwood-log --locked --target $(AARCH64) --test all -- golden:: leveldb_log_test::

WINDOWS := x86_64-pc-windows-gnu
WINE := $(shell command -v wine64 || command -v wine || ls /usr/lib/wine/wine64 2>/dev/null)

# Not part of `make test` for the same reason. It takes a quarter of an hour. Wine must have bcryptprimitives.dll, which
# that of Debian 12 does not. WINDOWS_FLAGS are further options for cargo.
test-windows: export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER := x86_64-w64-mingw32-gcc
test-windows: export CARGO_TARGET_X86_64_PC_WINDOWS_GNU_RUNNER := $(WINE)
test-windows: export WINEDEBUG := -all
test-windows: export WINEPREFIX := $(CURDIR)/target/wine
test-windows:  ## Run the core's tests for Windows in Wine
	@for tool in x86_64-w64-mingw32-gcc $(or $(WINE),wine64); do command -v $$tool >/dev/null || \
		{ echo "test-windows needs $$tool; on Debian: apt-get install gcc-mingw-w64-x86-64 wine64" >&2; exit 1; }; \
	done
	cargo test --package cordwood-log --locked --target $(WINDOWS) $(WINDOWS_FLAGS) --lib --tests --no-fail-fast

# The writer's model -------------------------------------------------------------------------------

# The tests also explore it, to a depth of 5; each further action takes about ten times as long.
MODEL_DEPTH := 6
model:  ## Explore the writer's model to a greater depth
	MODEL_DEPTH=$(MODEL_DEPTH) cargo test --package cordwood-log --locked --test model -- --nocapture

# With more than two preemptions it would take far too long.
loom: export RUSTFLAGS := --cfg loom
loom: export LOOM_MAX_PREEMPTIONS := 2
loom:  ## Try all orders of threads that append, sync and close
	cargo test --package cordwood-log --locked --target-dir target/loom --test loom

# All small files, in blocks of 24 bytes. `make test` runs it with lower bounds. Followers need files: in memory, where
# possible.
SMALL_BLOCKS := RUSTFLAGS="--cfg cordwood_small_blocks" TMPDIR=$(or $(wildcard /dev/shm),$(TMPDIR),/tmp) cargo
EXHAUSTIVE_CRATE := --quiet --locked --manifest-path rust/exhaustive/Cargo.toml --target-dir target/exhaustive
EXHAUSTIVE := $(SMALL_BLOCKS) run $(EXHAUSTIVE_CRATE) --
exhaustive:  ## Read, follow, append to and write all small files, and compare each answer with a model
	$(SMALL_BLOCKS) clippy $(EXHAUSTIVE_CRATE) -- -D warnings
	$(EXHAUSTIVE) full

# The variable lets the stable compiler accept an option of the nightly one. The host is named so that build scripts and
# macros are compiled without it.
asan: export RUSTC_BOOTSTRAP := 1
asan: export RUSTFLAGS := -Zsanitizer=address
asan:  ## Run the core's unit tests under AddressSanitizer
	cargo test --package cordwood-log --locked --lib --target-dir target/asan \
		--target "$$(rustc -vV | sed -n 's/^host: //p')"

# Fuzzing ---------------------------------------------------------------------------------------

FUZZ_TARGETS := decode containers dialects follow round_trip append_damage stream_slice checksum payload
FUZZ_SECONDS := 60
CARGO_FUZZ   := target/tools/bin/cargo-fuzz

# Interesting inputs stay in target/fuzz/corpus, where the next run starts; an input that fails is kept in
# rust/fuzz/artifacts. rust/fuzz/README.md says what the targets compare and what to do with a finding.
#
# No sanitizer, so that inputs are tried faster: `make asan` runs the unit tests under one, and they reach all unsafe code
# that accesses memory. One target writes files: in memory, where possible.
fuzz: export PATH := $(CURDIR)/target/tools/bin:$(PATH)
fuzz: export TMPDIR := $(or $(wildcard /dev/shm),$(TMPDIR),/tmp)
fuzz: $(CARGO_FUZZ)  ## Fuzz each target for a minute
	RUSTFLAGS="--cfg fuzzing" cargo clippy --manifest-path rust/fuzz/Cargo.toml --all-targets --locked \
		--target-dir target/fuzz -- -D warnings
	cargo run --quiet --locked --manifest-path rust/fuzz/Cargo.toml --target-dir target/fuzz --example seeds -- target/fuzz/seeds
	cargo fuzz build --fuzz-dir rust/fuzz --target-dir target/fuzz --sanitizer none
	@for target in $(FUZZ_TARGETS); do \
		echo "$$target: $(FUZZ_SECONDS) seconds"; \
		mkdir -p target/fuzz/corpus/$$target; \
		log=target/fuzz/$$target.log; \
		cargo fuzz run --fuzz-dir rust/fuzz --target-dir target/fuzz --sanitizer none $$target \
			target/fuzz/corpus/$$target target/fuzz/seeds/$$target -- \
			-max_total_time=$(FUZZ_SECONDS) -max_len=4096 -timeout=10 -rss_limit_mb=512 -print_final_stats=1 \
			>$$log 2>&1 || { tail -n 100 $$log; exit 1; }; \
		grep -E 'DONE|^Done' $$log; \
	done

# Not part of `make test`: installing cargo-deny compiles some 300 packages.
CARGO_DENY := target/tools/bin/cargo-deny
deny: $(CARGO_DENY)  ## Check the licences, the sources and the versions of all dependencies of the crates
	$(CARGO_DENY) --locked --all-features check licenses bans sources

# Not part of `deny`: its outcome changes without a change here. It fetches the list of RustSec.
advisories: $(CARGO_DENY)  ## Look for known vulnerabilities of the crates' dependencies
	$(CARGO_DENY) --locked --all-features check advisories

$(CARGO_DENY):
	cargo install cargo-deny --version 0.20.2 --locked --root target/tools --target-dir target/tools/build

$(CARGO_FUZZ):
	cargo install cargo-fuzz --version 0.13.2 --locked --root target/tools --target-dir target/tools/build

# Not part of the tests: it takes some hours. A run goes on where the last one stopped.
mutants:  ## Change the core on purpose, in 3,000 places, and look whether a test fails
	$(PYTHON) tools/mutants/run.py

# Not part of the tests: the results depend on the machine, and the peers are downloaded. It takes a quarter of an hour.
# Criterion's directory is emptied first, because everything in it goes into the record.
bench: export CRITERION_HOME := $(CURDIR)/target/criterion
bench: $(VENV)/test.stamp install  ## Measure against the alternatives; keep the figures and draw them
	rm -rf target/criterion
	cargo bench $(BENCH)
	cargo run --release $(COMPARE) > target/bench-compare.txt
	cat target/bench-compare.txt
	$(BIN)/python benches/python/bench.py --json target/bench-python.json
	$(BIN)/python benches/python/bench.py --checksums --json target/bench-checksums.json
	$(BIN)/python benches/record.py --rust --compare target/bench-compare.txt --python target/bench-python.json \
		--checksums target/bench-checksums.json
	$(BIN)/python benches/plot.py

bench-pipelines: $(VENV)/beam.stamp install  ## Time reading in pipelines of Apache Beam, beside Beam's own TFRecord
	$(BIN)/pip --python $(VENV)/beam/bin/python install --quiet --force-reinstall --no-deps --no-index $(WHEELS)/cordwood-*.whl
	$(VENV)/beam/bin/python benches/python/pipelines.py

# Logs of up to 10 GiB; a length that does not fit on the disk is left out.
bench-memory: $(VENV)/test.stamp install  ## Measure the memory that reading needs, by the length of the file
	$(BIN)/python benches/python/memory.py --json target/bench-memory.json
	$(BIN)/python benches/record.py --memory target/bench-memory.json
	$(BIN)/python benches/plot.py

# Not part of the tests either: it downloads and builds eight other logs, in a workspace of their own. It takes half an hour on a
# busy disk. The directory of the logs is on the disk of the checkout: in memory, a sync costs nothing.
DURABLE := cargo run --release --locked --manifest-path benches/durable/Cargo.toml --target-dir target/durable --
bench-durable: export TMPDIR := $(CURDIR)/target
bench-durable: $(VENV)/test.stamp install  ## See what other logs lose in a crash; time their appends, reading and opening
	$(DURABLE) crash
	$(DURABLE) append
	$(DURABLE) read
	$(BIN)/python benches/durable/durable.py

# Not part of the tests: the others are downloaded, and it takes a quarter of an hour. In memory, where possible.
bench-survival: export TMPDIR := $(or $(wildcard /dev/shm),$(TMPDIR),/tmp)
bench-survival: $(VENV)/survival.stamp install  ## See what 24 formats and logs lose by a flipped bit, a lost page, a cut and a kill
	$(BIN)/pip --python $(VENV)/survival/bin/python install --quiet --force-reinstall --no-deps --no-index $(WHEELS)/cordwood-*.whl
	$(VENV)/survival/bin/python benches/survival/survive.py --json benches/survival/record.json
	$(BIN)/python benches/survival/page.py

# By hand ---------------------------------------------------------------------------------------

fmt: $(VENV)/lint.stamp  ## Format the sources and apply the safe lint fixes
	cargo fmt --all
	cargo fmt --manifest-path rust/fuzz/Cargo.toml
	cargo fmt --manifest-path rust/exhaustive/Cargo.toml
	cargo fmt --all --manifest-path benches/compare/Cargo.toml
	cargo fmt --manifest-path benches/durable/Cargo.toml
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

clean:  ## Remove everything that was built here, including .venv
	rm -rf target $(VENV) LICENSE-THIRD-PARTY .hypothesis .mypy_cache .pytest_cache .ruff_cache

# The environment: a stamp says that a dependency group of pyproject.toml is installed ------------

$(VENV)/pip.stamp:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "cordwood needs Python 3.11 or newer, not \"$(PYTHON)\"; name one: make PYTHON=python3.11" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet pip==$(PIP_VERSION)
	@touch $@

$(VENV)/demo.stamp: $(VENV)/pip.stamp pyproject.toml
	$(BIN)/pip install --quiet --group demo
	@touch $@

$(VENV)/package.stamp: $(VENV)/pip.stamp pyproject.toml
	$(BIN)/pip install --quiet --group package
	@touch $@

$(VENV)/test.stamp: $(VENV)/demo.stamp pyproject.toml
	$(BIN)/pip install --quiet --group test
	@touch $@

$(VENV)/lint.stamp: $(VENV)/pip.stamp pyproject.toml
	$(BIN)/pip install --quiet --group lint
	@touch $@

$(VENV)/docs.stamp: $(VENV)/pip.stamp pyproject.toml
	$(BIN)/python -m venv --without-pip $(VENV)/docs
	$(BIN)/pip --python $(VENV)/docs/bin/python install --quiet --group docs
	@touch $@

# The readers of exports that cordwood is compared with need an old protobuf, which nothing else here can use.
$(VENV)/appengine.stamp: $(VENV)/pip.stamp pyproject.toml
	$(BIN)/python -m venv --without-pip $(VENV)/appengine
	$(BIN)/pip --python $(VENV)/appengine/bin/python install --quiet --group appengine
	@touch $@

$(VENV)/remote.stamp: $(VENV)/pip.stamp pyproject.toml
	$(BIN)/python -m venv --without-pip $(VENV)/remote
	$(BIN)/pip --python $(VENV)/remote/bin/python install --quiet --group remote
	@touch $@

$(VENV)/web.stamp: $(VENV)/pip.stamp pyproject.toml
	$(BIN)/python -m venv --without-pip $(VENV)/web
	$(BIN)/pip --python $(VENV)/web/bin/python install --quiet --group web
	@touch $@

$(VENV)/beam.stamp: $(VENV)/pip.stamp pyproject.toml
	$(BIN)/python -m venv --without-pip $(VENV)/beam
	$(BIN)/pip --python $(VENV)/beam/bin/python install --quiet --group beam
	@touch $@

$(VENV)/libraries.stamp: $(VENV)/pip.stamp pyproject.toml
	$(BIN)/python -m venv --without-pip $(VENV)/libraries
	$(BIN)/pip --python $(VENV)/libraries/bin/python install --quiet --group libraries
	@touch $@

$(VENV)/survival.stamp: $(VENV)/pip.stamp pyproject.toml
	$(BIN)/python -m venv --without-pip $(VENV)/survival
	$(BIN)/pip --python $(VENV)/survival/bin/python install --quiet --group survival
	@touch $@

$(VENV)/spark.stamp: $(VENV)/pip.stamp pyproject.toml
	$(BIN)/python -m venv --without-pip $(VENV)/spark
	$(BIN)/pip --python $(VENV)/spark/bin/python install --quiet --group spark
	@touch $@

# The originals of the drop-ins, without their dependencies, which clash with others and which reading logs does not
# need.
$(VENV)/peers.stamp: $(VENV)/pip.stamp pyproject.toml
	rm -rf $(VENV)/peers
	$(BIN)/pip install --quiet --no-deps --target $(VENV)/peers --group peers
	@touch $@
