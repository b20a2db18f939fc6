# Each target works in a fresh clone on a machine that has python3 >= 3.11, git and a package index.
SHELL := /bin/bash
PYTHON ?= python3
BIN := .venv/bin
UV := VIRTUAL_ENV=$(CURDIR)/.venv $(BIN)/uv
MEMBERS := factory/runtime factory/codegen pipeline factory/cli
SOURCES := factory pipeline/src servers tests docs benchmarks
READY := .venv/.ready
PYTEST := -m pytest -n 4 --dist loadgroup -q --ignore tests/repository
INSTALLER := build/installer/bin/uv
CHECK_PYTHON = $(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "error: $$($(PYTHON) --version) is too old; hint: make $(MAKECMDGOALS) PYTHON=python3.11 (or newer)"; exit 2; }
NO_VENV = { echo "error: no virtual environment could be made; hint: install your system's package python3-venv"; exit 2; }

.PHONY: help install uninstall dist sbom docs pictures demo servers test fast every test-all test-lowest lint style types browser bench exam fuzz audit figures diagrams lock format clean

help: ## what each target does
	@grep -hE '^[a-z]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/'

$(READY): requirements.lock $(addsuffix /pyproject.toml,$(MEMBERS))
	@$(CHECK_PYTHON)
	@[ -x $(BIN)/python ] || $(PYTHON) -m venv .venv || $(NO_VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check "$$(grep -o '^uv==[^ ]*' requirements.lock)"
	@$(UV) pip install --quiet --compile-bytecode --require-hashes -r requirements.lock
	@$(UV) pip install --quiet --no-deps --no-build-isolation $(addprefix -e ,$(MEMBERS))
	@$(BIN)/python -m compileall -q $(addsuffix /src,$(MEMBERS)) benchmarks docs # once, and not in each of four workers
	@touch $@

$(INSTALLER): requirements.lock
	@$(CHECK_PYTHON)
	@$(PYTHON) -m venv --clear build/installer || $(NO_VENV)
	@build/installer/bin/python -m pip install --quiet --disable-pip-version-check "$$(grep -o '^uv==[^ ]*' requirements.lock)"
	@touch $@

install: $(INSTALLER) ## the command mcpfactory for you: in an environment of its own, with completion of your shell
	@$(INSTALLER) tool install --quiet --python "$$($(PYTHON) -c 'import sys; print(sys.executable)')" --constraints requirements.lock \
	  $(addprefix --reinstall-package ,mcpfactory-runtime mcpfactory-codegen mcpfactory-pipeline mcpfactory) ./factory/cli
	@bash factory/shell.sh add $(INSTALLER)

uninstall: $(INSTALLER) ## takes away what `make install` put there
	@bash factory/shell.sh remove $(INSTALLER)

dist: $(READY) ## every wheel and source distribution of ours, in dist/: the same bytes wherever they are made
	@$(BIN)/python -m mcpfactory_pipeline.build.factory_distributions dist $(MEMBERS)

sbom: dist ## a bill of materials (CycloneDX) beside each of our wheels in dist/
	@$(BIN)/python -m benchmarks.sbom dist

demo: $(READY) ## an end-to-end demo in a temporary directory: from an API document to a staged server
	@$(BIN)/python docs/examples/demo.py

servers: $(READY) ## every server of this repository through its pipeline, up to staging
	@$(BIN)/mcpfactory pipeline run

docs: $(READY) requirements-docs.lock ## the pages of docs/ as a site, in build/site
	@$(UV) pip install --quiet --require-hashes -r requirements-docs.lock
	@rm -rf build/site build/doctrees && $(BIN)/python -m sphinx -W --keep-going -q -d build/doctrees docs build/site
	@echo "build/site/index.html"

pictures: $(READY) diagrams ## the pictures of README and docs anew, in docs/pictures; needs chromium
	@$(BIN)/python -m tests.browser.screenshots

test: $(READY) ## style, types and import layers, beside the fast tier of the tests: five minutes on two cores
	@$(MAKE) --no-print-directory --keep-going --jobs 3 types style fast

fast: $(READY)
	@$(BIN)/python $(PYTEST) --tier fast

test-all: $(READY) ## the same with every test, or those of TESTS="tests/…"; installs Redis on Debian if it may
	@$(MAKE) --no-print-directory --keep-going --jobs 3 types style every

every: $(READY)
	@$(BIN)/python -m benchmarks.trials.redis_server
	@$(BIN)/python $(PYTEST) $(TESTS)

test-lowest: $(READY) ## the fast tier with the lowest versions of the dependencies that pyproject.toml allows
	@$(PYTHON) -m venv --clear build/lowest || $(NO_VENV)
	@VIRTUAL_ENV=$(CURDIR)/build/lowest $(BIN)/uv pip install --quiet --resolution lowest-direct -r requirements.in --group dev
	@build/lowest/bin/python $(PYTEST) --tier fast

browser: $(READY) ## the dashboard in Chromium, which must be installed; python -m tests.browser --install gets it on Debian
	@$(BIN)/python -m pytest -q -m browser tests/dashboard
	@$(BIN)/python -m tests.browser
	@$(BIN)/python -m tests.browser.tasks

lint: $(READY) ## style, import directions and the rules of tests/repository, while mypy checks the types
	@$(MAKE) --no-print-directory --keep-going --jobs 2 types style

style: $(READY)
	@$(BIN)/ruff check --quiet $(SOURCES)
	@$(BIN)/ruff format --quiet --check $(SOURCES)
	@told=$$($(BIN)/lint-imports --no-cache) || { echo "$$told"; exit 1; }
	@$(BIN)/python -m pytest -q -p no:xdist tests/repository

types: $(READY)
	@$(BIN)/mypy --no-error-summary $(addsuffix /src,$(MEMBERS)) servers/*/src docs/examples docs/generated.py docs/pages benchmarks

bench: $(READY) ## measurements that docs and README quote
	@$(BIN)/python -m benchmarks

exam: $(READY) ## the examinations from outside, and a table of what each found
	@$(BIN)/python -m benchmarks.exam

fuzz: $(READY) ## searches new inputs that break a promise, and says how many were tried
	@MCPFACTORY_FUZZ=$${MCPFACTORY_FUZZ:-5} $(BIN)/python -m pytest -n 2 -q -m hypothesis

audit: $(READY) ## advisories of all locked packages, where the network allows
	@$(BIN)/python -m benchmarks.audit

figures: $(READY) ## the source tree in figures: modules, circles, names; AGAINST=COMMIT puts those of a commit beside them
	@$(BIN)/python -m benchmarks.codebase $(if $(AGAINST),--against $(AGAINST))

diagrams: $(READY) ## the pictures of docs/architecture.md anew, drawn from the code
	@$(BIN)/python -m benchmarks.codebase.pictures

lock: $(READY) ## resolves all dependencies anew into requirements.lock
	@$(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --group pyproject.toml:dev $(addprefix --no-emit-package ,mcpfactory-runtime mcpfactory-codegen mcpfactory-pipeline mcpfactory) \
	  requirements.in -o requirements.lock
	@$(UV) pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --group pyproject.toml:docs --constraints requirements.lock -o requirements-docs.lock
	@printf -- '-e %s\n' $(MEMBERS) | $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  --no-annotate $(addprefix --no-emit-package ,mcpfactory-runtime mcpfactory-codegen mcpfactory-pipeline mcpfactory) --constraints requirements.lock - \
	  -o pipeline/src/mcpfactory_pipeline/delivery/ci/templates/requirements.lock

format: $(READY) ## formats sources and mends what ruff can mend
	@$(BIN)/ruff check --quiet --fix $(SOURCES); $(BIN)/ruff format --quiet $(SOURCES)

clean: ## removes what the targets made
	rm -rf .venv .mypy_cache .ruff_cache build dist exam-results benchmarks/results pipeline/artifacts pipeline/channels pipeline/locks
	git clean -qfX docs/reference
