# `make` prints the targets. New here? Try `make demo` and `make test`.
VENV ?= .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# What `fedctl` needs, without tests and tools.
BASE_STAMP := $(VENV)/.installed-base
# The interpreter of the environment; by default the one that tools/interpreter.py finds.
PYTHON ?=
# Six on two cores, because tests of real processes wait for clocks and timeouts.
WORKERS ?= 6
# Without bytecode files each start of a process compiles all modules, for two seconds.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
PYTEST := $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup --no-loadscope-reorder
.PHONY: help env demo check test test-all affected record-costs kubernetes test-kubernetes docs pictures release lint types contracts bytecode static format generate \
	mutation lock bench bench-quick clean

help: ## Print the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## /  make \1\t/' | expand -t 24

env: $(STAMP) ## Create the virtual environment with the versions in constraints.txt
$(STAMP) $(BASE_STAMP): pyproject.toml constraints.txt
	@# An environment without pip is what an interrupted creation leaves; uv needs none.
	@{ test -x $(BIN)/python && { command -v uv || $(BIN)/python -m pip --version; }; } >/dev/null 2>&1 || { \
		python="$(PYTHON)"; test -n "$$python" || python=$$(python3 tools/interpreter.py) || \
			{ echo "make: no suitable Python found; install one or run: make PYTHON=/path/to/python3"; exit 1; }; \
		"$$python" -m venv --clear $(VENV); }
	@echo "Installing into $(VENV) (once) ..."
	@$(BIN)/python tools/install.py $(if $(filter $(STAMP),$@),test)
	@touch $@

demo: $(if $(wildcard $(STAMP)),$(STAMP),$(BASE_STAMP)) ## Run a federation with three simulated members (ONCE=1: exit after convergence)
	@$(BIN)/fedctl demo $(if $(ONCE),--once) $(if $(DIR),--dir $(DIR))

check: static ## Run what is fast, in three minutes: rules, properties, one scenario per feature
	$(PYTEST) --tier check

test: static ## Run everything that needs no real Kubernetes, in nine to twelve minutes
	$(PYTEST)

test-all: static ## Run everything, for releases and nights: matrices, 5,000 fault seeds, mutations, real Kubernetes
	HYPOTHESIS_PROFILE=nightly FAULT_SEEDS=5000 FAULT_ROUNDS=10 $(PYTEST) --tier all --timeout 7200
	$(MAKE) mutation
	$(MAKE) kubernetes test-kubernetes ALL=1

affected: env ## Run the tests that a change can reach, the closest first, for a minute (BASE=ref, ALL=1: all of them)
	@$(BIN)/python -m tests.support.suite.affected $(if $(BASE),--base $(BASE)) $(if $(ALL),--all)

record-costs: env ## Record what the tests of the last run cost, in tests/costs.json
	@$(BIN)/python -m tests.support.suite.summary

kubernetes: env ## Build a real Kubernetes from its Go modules (once; about 12 CPU minutes; ALL=1: older ones, too)
	@$(BIN)/python tests/kubernetes/build.py $(if $(ALL),v1.34 v1.32)

test-kubernetes: env ## Run what needs a real Kubernetes (ALL=1: the slow part, too; CORE=1: what each landing must pass)
	@$(BIN)/python -m tests.kubernetes.suites $(if $(ALL),--all) $(if $(CORE),--core)

lint: env
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: env
	$(BIN)/mypy

contracts: env
	$(BIN)/lint-imports --no-logo

# Without bytecode each worker would compile all tests for itself, which takes three times as long as their collection.
bytecode: env
	@test -d tests/unit/__pycache__ || $(BIN)/python -m pytest --collect-only >/dev/null || true # the run will name the fault

static: env
	@$(MAKE) --no-print-directory -j2 types lint contracts bytecode

format: env ## Format the code
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

mutation: env ## Mutate product code and count what the tests notice (SAMPLE=300 SEED=1 AREA=delivery)
	$(BIN)/python -m tests.mutation.run $(if $(SAMPLE),--sample $(SAMPLE)) $(if $(SEED),--seed $(SEED)) $(if $(AREA),--area "$(AREA)")

generate: env ## Regenerate committed data: built-in schemas, CRD manifests, JSON schemas, SQLite tables, the table of rights, references, dashboard and alerts
	$(BIN)/python tools/generate_schema.py
	$(BIN)/python tools/generate_crds.py
	$(BIN)/python tools/generate_json_schemas.py
	$(BIN)/python tools/generate_tables.py
	$(BIN)/python tools/generate_rights.py
	$(BIN)/python tools/generate_tenancy.py
	$(BIN)/python tools/generate_monitoring.py
	$(BIN)/python tools/generate_references.py

lock: env ## Write constraints.txt: versions and hashes of all packages, with uv (UPGRADE=1: the newest versions)
	@$(BIN)/python tools/lock.py $(if $(UPGRADE),--upgrade)

docs: env ## Build the documentation site into site/ and check its links
	@$(BIN)/python -c "import material" 2>/dev/null || $(BIN)/python tools/install.py test docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo site/index.html

pictures: env ## Take the pictures in docs/ui again, with Chromium (ONLY="graph map": only these screens)
	@$(BIN)/python -c "import PIL" 2>/dev/null || $(BIN)/python -m pip install --quiet pillow
	@$(BIN)/python -m tools.pictures $(ONLY)

release: env ## Check, and build wheel, sdist, charts, image, notes and checksums in dist/VERSION (VERSION=1.0.0; CHECKS=0: without `make check`; TAG=1: commit, tag and sign)
	@test -n "$(VERSION)" || { echo "error: give a version, for example make release VERSION=1.0.0" >&2; exit 1; }
	$(if $(filter 0,$(CHECKS)),,$(MAKE) check)
	@$(BIN)/python -m tools.release $(VERSION) $(if $(TAG),--tag)

bench: env ## Run the benchmarks and print goals, results and ratios, in at most ten minutes (TURNS=3, FULL=1)
	$(BIN)/python benchmarks/table.py $(if $(TURNS),--turns $(TURNS)) $(if $(FULL),--full)

bench-quick: env ## Check counted work against benchmarks/limits.json, in a minute
	@$(BIN)/python benchmarks/quick.py

clean: ## Remove the environment, caches and the demo's state
	rm -rf $(VENV) .demo .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
