# whichfs: every task by name. `make` alone lists them.
#
# Variables: ARGS (arguments for choose), PREFIX and DESTDIR (for install), CARGO_TARGET_DIR (Cargo's own),
# KERNEL (version of the lab kernel), KILLS (how often soak kills a run on a device).
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# Set-up comes before what needs it, also under `make -j`: cargo and the kernel build are parallel themselves.
.NOTPARALLEL:

PREFIX ?= /usr/local
KERNEL ?= 6.12
ARGS ?=

# Not abspath, which takes a path with blanks for several.
target := $(shell realpath -m -- '$(or $(CARGO_TARGET_DIR),target)')
release := $(target)/release
agent := $(release)/whichfs-agent.static
# Finds a cargo that is new enough at each call, because `make setup` may have just installed it.
cargo := setup/cargo
# What the tests and benchmarks of the lab need to know.
lab_env = WHICHFS_AGENT='$(agent)' WHICHFS_AGENTS='$(release)' WHICHFS_KERNEL="$$(kernel/build --version $(KERNEL) --print-path)" \
    WHICHFS_USERLAND="$$(userland/build --print-path)"

# Static programs run in the lab, and on every x86-64 distribution, whatever its C library.
static = $(cargo) rustc --release --locked --target-dir '$(target)/static' --config "$$(setup/same-paths)"
static_flags = -C target-feature=+crt-static -C relocation-model=static -C strip=symbols
packages := $(target)/packages

.PHONY: help setup build agent agents kernel userland choose test test-full attack fuzz bench truth soak verdicts lint reference install parts deb wheel image boards test-packages test-python test-slurm clean

help: ## this list
	@echo 'usage: make TARGET'
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' Makefile | expand -t 12

setup: ## install what is missing: Debian packages, Rust (asks sudo if not root)
	@setup/setup.sh

build: agent ## build whichfs and the static agent that runs in the lab
	@echo 'build: whichfs' >&2
	@$(cargo) build --release --locked -p whichfs

agent:
	@echo 'build: whichfs-agent, static' >&2
	@$(static) -p whichfs-agent --bin whichfs-agent -- $(static_flags) -C opt-level=3
	@mkdir -p '$(release)'
	@# By rename: a running trial keeps the file it has.
	@cp '$(target)/static/release/whichfs-agent' '$(agent).new' && mv '$(agent).new' '$(agent)'

agents: ## build the agents that study run --on ssh://… copies to boards: x86_64, aarch64, armv7
	@setup/boards agents '$(release)'

kernel: ## build the lab kernel, if the cache does not have it
	@kernel/build --version $(KERNEL) >/dev/null

userland: ## build the image of programs that trials of the lab run, if the cache does not have it
	@userland/build >/dev/null

choose: setup build kernel userland ## the main job, from nothing to a verdict: make choose ARGS='--card … --for …'
	@$(lab_env) '$(release)/whichfs' choose $(ARGS)

# What takes minutes and is far from most changes: all documented commands, virtual machines, populations of cards,
# the swarm's ten thousand seeds.
full_only = lab_documents qemu_ sure_verdicts stopping_early sixty_ loop_cross_check loop_flashbench swarm_ten_thousand
test_command = $(cargo) test --release --locked --workspace --lib --bins --tests --no-fail-fast
tests = $(lab_env) $(test_command)

# The documentation's examples first, so that the last summary is that of the tests proper.
test: setup build kernel userland ## everything the tests need, then all tests but the slow ones
	@echo 'test: examples in the documentation, then the tests' >&2
	@setup/boards --any agents '$(release)'
	@$(cargo) build --release --locked --workspace --examples
	@$(lab_env) $(cargo) test --release --locked --workspace --doc
	@$(lab_env) setup/run-tests '$(target)/tests.txt' $(full_only) -- $(test_command)

test-full: setup build kernel userland ## all tests: also all documented commands, virtual machines, populations of cards
	@setup/boards --any agents '$(release)'
	@$(cargo) build --release --locked --workspace --examples
	@$(lab_env) $(cargo) test --release --locked --workspace --doc
	@$(tests)

# Test programs take several patterns; these are in the names of all tests of docs/security.md.
attack: setup build kernel userland ## the attacks of docs/security.md alone (test-full has them too)
	@$(tests) -- attack_

fuzz: ## run the fuzz targets, MINUTES (10) each, and keep their corpus (nightly Rust, cargo-fuzz)
	@fuzz/run '$(or $(MINUTES),10)'

bench: setup build kernel userland ## measure speed beside its floor
	@$(lab_env) $(cargo) bench --locked --workspace --bench '*'

truth: setup build kernel userland ## compare the lab with published measurements: writes docs/truth.md (a quarter of an hour on two free cores)
	@kernel/build --version 6.1
	@$(lab_env) setup/truth '$(release)/whichfs' $(ARGS)

soak: setup build kernel userland ## the full counts (20 runs of every filesystem, 30,000 power cuts, 450 probed cards, KILLS (200) kills); a dated result goes to target/
	@mkdir -p '$(target)'
	@{ echo "whichfs $$(git describe --always --dirty 2>/dev/null || echo unversioned), $$(date -u +%FT%TZ)"; \
	   uname -srm; grep -m 1 'model name' /proc/cpuinfo; kernel/build --version $(KERNEL) --print-plan; \
	   $(lab_env) WHICHFS_SOAK=1 $(cargo) test --release --locked -p whichfs-lab --test all lab_determinism -- --nocapture; \
	   $(lab_env) WHICHFS_SOAK=1 $(cargo) test --release --locked -p whichfs-attach --test loop_cross_check -- --nocapture; \
	   $(lab_env) WHICHFS_SOAK=1 $(cargo) test --release --locked -p whichfs --test all lab_an_honest -- --nocapture; \
	   $(lab_env) WHICHFS_KILLS='$(or $(KILLS),200)' $(cargo) test --release --locked -p whichfs --test loops loop_faults_killed -- --nocapture; \
	   $(lab_env) WHICHFS_QEMU_BOARD=1 $(cargo) test --release --locked -p whichfs --test loops qemu_board -- --nocapture; \
	   $(lab_env) setup/soak.sh '$(release)/whichfs' 20; \
	   $(cargo) test --release --locked -p whichfs-probe --test all soak -- --ignored --nocapture; \
	   WHICHFS_SOAK=1 $(cargo) test --release --locked -p whichfs-decide --test all calibration -- --nocapture --test-threads 1; \
	} 2>&1 | tee "$(target)/soak-$$(date -u +%F).txt"

population: ## make the population of measured cards anew from DATA/cards.csv, DATA/flashbench.json and emmc.csv (15 minutes)
	@$(cargo) run --release --locked -p whichfs-posterior --example population -- \
	  '$(DATA)/cards.csv' '$(DATA)/flashbench.json' > '$(target)/population.tsv'
	@mv '$(target)/population.tsv' crates/posterior/data/population.tsv

posteriors: ## infer anew what the cards of knowledge/ may be (two minutes)
	@$(cargo) run --release --locked -p whichfs-posterior --example posteriors > '$(target)/posteriors.tsv'
	@mv '$(target)/posteriors.tsv' crates/posterior/data/posteriors.tsv

verdicts: setup build kernel userland ## run the first PAIRS (30) of all shipped card and need pairs with all seeds: are sure verdicts right? (hours)
	@mkdir -p '$(target)'
	@{ echo "whichfs $$(git describe --always --dirty 2>/dev/null || echo unversioned), $$(date -u +%FT%TZ)"; \
	   $(lab_env) setup/verdicts run '$(release)/whichfs' '$(or $(PAIRS),30)' '$(target)/verdicts'; \
	   setup/verdicts judge '$(target)/verdicts'; \
	} 2>&1 | tee "$(target)/verdicts-$$(date -u +%F).txt"

# Modules that build scripts list, which rustfmt does not find by itself.
listed_modules = $(wildcard crates/fs/src/catalogue/*.rs crates/workload/src/catalogue/*.rs \
   crates/crash/src/faults/*.rs crates/card/src/families/*.rs)

lint: ## format and clippy, where they are installed (Debian's Rust has no clippy)
	@if $(cargo) fmt --version >/dev/null 2>&1; then echo 'lint: format' >&2; $(cargo) fmt --all --check -- $(listed_modules); \
	 else echo 'lint: rustfmt is not installed (rustup component add rustfmt, or apt-get install rustfmt-web): skipped' >&2; fi
	@if $(cargo) clippy --version >/dev/null 2>&1; then echo 'lint: clippy' >&2; \
	     $(cargo) clippy --release --locked --workspace --all-targets -- -D warnings; \
	 else echo 'lint: clippy is not installed (rustup component add clippy): skipped' >&2; fi

reference: build ## write docs/commands.md anew, from the help of all commands
	@'$(release)/whichfs' manual reference > docs/commands.md

install: ## install the built program, with kernel and userland if they are built: make install PREFIX=/usr/local
	@packaging/install '$(release)' '$(DESTDIR)' '$(PREFIX)'

parts: agent kernel userland ## build everything that a package holds, and put it below target/packages/root
	@kernel/build --modules >/dev/null
	@setup/boards --any agents '$(release)'
	@echo 'parts: whichfs, static' >&2
	@$(static) -p whichfs --bin whichfs -- $(static_flags)
	@cp '$(target)/static/release/whichfs' '$(release)/whichfs.static'
	@packaging/licences '$(packages)/licences' "$$(dirname "$$(realpath "$$(userland/build --print-path)")")/packages"
	@rm -rf '$(packages)/root'
	@packaging/install --complete '$(release)' '$(packages)/root' /usr
	@cp '$(packages)'/licences/* '$(packages)/root/usr/share/doc/whichfs/'

deb: parts ## make the Debian package: target/packages/whichfs_VERSION_amd64.deb
	@packaging/deb '$(packages)'

wheel: parts ## make the Python wheel: target/packages/whichfs-VERSION-….whl
	@packaging/wheel '$(packages)'

image: parts ## make the OCI image: target/packages/whichfs-VERSION.oci.tar
	@packaging/image '$(packages)'

boards: parts ## make the archives for boards, static: target/packages/whichfs_VERSION_aarch64.tar.gz, _armv7.tar.gz
	@setup/boards whichfs '$(release)'
	@packaging/boards '$(release)' '$(packages)'

test-packages: deb wheel image ## install the packages in fresh roots of Debian 12 and 13, and make them fail (root, network)
	@packaging/test-deb '$(packages)'
	@packaging/test-wheel '$(packages)'
	@packaging/test-image '$(packages)'

test-python: build kernel userland ## test the Python package and its notebooks (pip, two minutes): make test-python ARGS='-k plot'
	@$(lab_env) WHICHFS_PROGRAM='$(release)/whichfs' packaging/test-python '$(target)/python' $(ARGS)

test-slurm: test-python ## test trials under Slurm on loopback, as root (slurm-wlm, a minute)
	@$(lab_env) WHICHFS_PROGRAM='$(release)/whichfs' packaging/test-slurm '$(target)/python/bin/python'

clean: ## remove what cargo built (kernel and userland stay in the cache)
	@$(cargo) clean
