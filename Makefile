# `make trial` and `make test` are all that a fresh machine with Python 3.11+ needs.
PYTHON ?= python3
VENV := .venv
ORACLES := .venv-oracles
MHKIT := .venv-mhkit
BELLHOP := .venv-bellhop
NAVIGATORS := .venv-navigators
MUTANTS := .venv-mutants
AUDIT := .venv-audit
DOCS := .venv-docs
JUDGES := tests/judges
WEB := viz/web
PAGE := viz/wavesim_viz/static/main.js
BIN := $(VENV)/bin
# What is installed is what locked/*.txt names, byte by byte; `make lock` writes them from constraints.txt and the requirements.
# Bytecode is left to whoever needs it first. Where the environment forbids to keep it, each program would translate all that it imports at
# each start (a minute of `make test` for each worker): not here.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := -m pip install -qq --disable-pip-version-check --no-compile
LOCKED := --require-hashes --no-deps --only-binary :all:
OWN := --no-deps --no-build-isolation
PIP := $(BIN)/python $(INSTALL)
NPM := npm ci --no-audit --no-fund --loglevel=error --fetch-retries=1
ABSENT := { echo "this needs packages that could not be had (see above): is there a network? Without one: fill a folder elsewhere with"; \
	echo "  pip download --require-hashes --only-binary :all: -r FILE -d FOLDER      (FILE: the one of locked/ that was being installed)"; \
	echo "and tell pip of it here: PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER make ..."; exit 1; }
PARTS := broker_sdk server emulators viz bridges studies
PACKAGES := wavesim_sdk wavesim_server wavesim_emulators wavesim_viz wavesim_bridges wavesim_studies
KERNELS := wavesim_server.dynamics wavesim_server.environment wavesim_server.acoustics
PROJECTS := broker_sdk/pyproject.toml server/pyproject.toml emulators/pyproject.toml viz/pyproject.toml bridges/pyproject.toml studies/pyproject.toml
SOURCES := broker_sdk server emulators viz bridges studies examples tests benchmarks locked docs
# more than the usual two cores: tests wait for other processes a third of their time (four were no faster)
WORKERS ?= 3

.PHONY: help trial compiled web wheels test test-long test-uncompiled coverage test-mhkit test-bellhop test-navigators test-wheels setup lint types imports docs docs-check site examples bench mutants pictures lock audit clean

help:
	@echo "make trial     set up, run the demonstration trial, draw its pictures into runs/demo"
	@echo "make web       build the viewer's page (\`make trial\` does so too)"
	@echo "make test      set up, run the tests"
	@echo "make wheels    build the wheels of all distributions into dist"
	@echo "make test-long run the long ones: shipped trials, tutorials, studies, one hash on a busy machine"
	@echo "make lint types imports docs-check test-uncompiled test-mhkit test-bellhop test-navigators test-wheels    the other checks of CI"
	@echo "make coverage  which lines the tests run: kernels uncompiled, all else as far as it is in the tests' own process"
	@echo "make docs      write the generated pages and tables of docs/ anew"
	@echo "make site      the documents as a site with search, for a browser without a network"
	@echo "make mutants   change the code in small ways: do the tests notice? (MODULES=\"area ring\" for some)"
	@echo "make bench     measure; results go to docs/performance.md by hand"
	@echo "make lock      write locked/ and the locks of npm anew, after a change of requirements or constraints.txt"
	@echo "make audit     are vulnerabilities known of what is locked? may it be passed on? (asks registries)"

trial:  # page, kernels and packages side by side
	@$(MAKE) --no-print-directory -j4 $(PAGE) compiled $(VENV)/.installed
	@$(BIN)/wavesim trial config.xml

compiled: $(VENV)/.compiler  # from the sources, before all else is installed
	@PYTHONPATH="$(CURDIR)/broker_sdk:$(CURDIR)/server" $(BIN)/python -c "from wavesim_server.cli import compile_; compile_()"

web: $(PAGE)

wheels: $(VENV)/.installed $(PAGE)
	@rm -rf dist $(PARTS:%=%/build)
	@$(BIN)/python -m pip wheel -qq --disable-pip-version-check $(OWN) -w dist $(PARTS:%=./%)
	@rm -rf $(PARTS:%=%/build)
	@ls dist/*.whl

test:  # kernels once, not by each of those that test
	@$(MAKE) --no-print-directory -j4 setup compiled
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

test-long: $(VENV)/.tools $(PAGE) $(VENV)/.judges  # shipped trials, tutorials, studies in whole; one hash on a busy machine
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m long $(ARGS)

test-uncompiled: $(VENV)/.tools  # the kernels as plain Python: the same results, and which of their lines were run
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q -n $(WORKERS) -W default::RuntimeWarning -m "not compiled" $(KERNELS:%=--cov=%) \
		--cov-branch --cov-report=term:skip-covered --durations=10 tests/physics

coverage: test-uncompiled  # and of all else, as far as tests run it in their own process
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m "not system and not long and not mhkit and not bellhop and not navigators and not wheels" --cov-append --cov-branch $(PACKAGES:%=--cov=%) \
		--cov-report=term:skip-covered tests/sdk tests/protocol tests/server tests/world tests/emulators tests/studies tests/viz tests/bridges

test-wheels: $(VENV)/.tools wheels  # in an environment that knows nothing of this folder
	@$(BIN)/python -m pytest -q -m wheels tests/wheels

test-mhkit: $(VENV)/.tools $(VENV)/.mhkit  # a large judge of our Doppler logs
	@$(BIN)/python -m pytest -q -m mhkit $(JUDGES)

test-bellhop: $(VENV)/.tools $(VENV)/.bellhop  # a judge of echoes: their paths, times, levels and phases
	@$(BIN)/python -m pytest -q -m bellhop $(JUDGES)

test-navigators: $(VENV)/.tools $(VENV)/.navigators  # judges of navigation: errors of tracks, smoother
	@$(BIN)/python -m pytest -q -m navigators $(JUDGES)

setup: $(VENV)/.tools $(PAGE) $(VENV)/.oracles $(VENV)/.judges

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "WaVeSim needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "cannot make a virtual environment; on Debian: apt-get install python3-venv"; exit 1; }
	@touch $@

$(VENV)/.compiler: $(VENV)/.python locked/kernels.txt
	@echo "installing WaVeSim into $(VENV) (once)"
	@$(PIP) $(LOCKED) -r locked/kernels.txt || $(ABSENT)
	@touch $@

# Our own first: Numba, which starts beside this, looks whether there is SciPy, and shall not find half of it. Last, what draws
# becomes bytecode: that takes two seconds, which kernels take longer anyway.
$(VENV)/.installed: $(VENV)/.compiler locked/run.txt $(PROJECTS)
	@$(PIP) $(OWN) -e broker_sdk -e server -e emulators -e viz -e bridges -e studies
	@$(PIP) $(LOCKED) -r locked/run.txt || $(ABSENT)
	@$(BIN)/python -c "import wavesim_viz.plots"
	@touch $@

$(VENV)/.tools: $(VENV)/.installed locked/dev.txt
	@echo "installing the tools for tests into $(VENV) (once)"
	@$(PIP) $(LOCKED) -r locked/dev.txt || $(ABSENT)
	@touch $@

# Where there is no Node.js, one from the Python registry builds the page.
$(PAGE): $(WEB)/package-lock.json $(WEB)/build.mjs $(wildcard $(WEB)/src/*) | $(if $(shell command -v npm),,$(VENV)/.installed)
	@echo "building the viewer's page"
	@{ command -v npm >/dev/null || { $(PIP) $(LOCKED) -r locked/node.txt && export PATH="$(CURDIR)/$(BIN):$$PATH"; }; } \
		&& cd $(WEB) && $(NPM) >/dev/null && npm run --silent build \
		|| echo "the page cannot be built here (it needs the npm registry): \`wavesim viz\` will say so, all else works"

$(VENV)/.oracles: locked/oracles.txt locked/arlpy.txt | $(VENV)/.tools
	@echo "installing arlpy, a judge of the tests, into $(ORACLES) (once)"
	@$(PYTHON) -m venv $(ORACLES) && $(ORACLES)/bin/python $(INSTALL) $(LOCKED) -r locked/oracles.txt \
		&& $(ORACLES)/bin/python $(INSTALL) --require-hashes $(OWN) -r locked/arlpy.txt \
		|| { echo "arlpy cannot be installed here; the test that asks it is skipped"; rm -rf $(ORACLES); }
	@touch $@

$(VENV)/.judges: $(JUDGES)/package-lock.json | $(VENV)/.tools
	@echo "installing Signal K and canboat, judges of the tests, into $(JUDGES)/node_modules (once)"
	@cd $(JUDGES) && $(NPM) --ignore-scripts >/dev/null || echo "npm is absent or failed; the tests that ask Signal K are skipped"
	@touch $@

$(VENV)/.mutants: locked/mutants.txt $(PROJECTS) | $(VENV)/.installed
	@echo "installing mutmut and what the tests need into $(MUTANTS) (once)"
	@$(PYTHON) -m venv $(MUTANTS) && $(MUTANTS)/bin/python $(INSTALL) $(LOCKED) -r locked/mutants.txt || $(ABSENT)
	@$(MUTANTS)/bin/python $(INSTALL) $(OWN) -e broker_sdk -e server
	@touch $@

$(VENV)/.mhkit: locked/mhkit.txt | $(VENV)/.tools
	@echo "installing mhkit into $(MHKIT) (once)"
	@$(PYTHON) -m venv $(MHKIT) && $(MHKIT)/bin/python $(INSTALL) $(LOCKED) -r locked/mhkit.txt || $(ABSENT)
	@touch $@

$(VENV)/.bellhop: locked/bellhop.txt | $(VENV)/.tools
	@echo "installing pelagic into $(BELLHOP) (once)"
	@$(PYTHON) -m venv $(BELLHOP) && $(BELLHOP)/bin/python $(INSTALL) $(LOCKED) -r locked/bellhop.txt || $(ABSENT)
	@touch $@

$(VENV)/.navigators: locked/navigators.txt | $(VENV)/.tools
	@echo "installing evo and GTSAM into $(NAVIGATORS) (once)"
	@$(PYTHON) -m venv $(NAVIGATORS) && $(NAVIGATORS)/bin/python $(INSTALL) $(LOCKED) -r locked/navigators.txt || $(ABSENT)
	@touch $@

$(VENV)/.docs: locked/docs.txt | $(VENV)/.python
	@echo "installing mkdocs-material into $(DOCS) (once)"
	@$(PYTHON) -m venv $(DOCS) && $(DOCS)/bin/python $(INSTALL) $(LOCKED) -r locked/docs.txt || $(ABSENT)
	@touch $@

$(VENV)/.audit: locked/audit.txt | $(VENV)/.python
	@$(PYTHON) -m venv $(AUDIT) && $(AUDIT)/bin/python $(INSTALL) $(LOCKED) -r locked/audit.txt || $(ABSENT)
	@touch $@

lock: $(VENV)/.audit
	@PATH="$(CURDIR)/$(AUDIT)/bin:$$PATH" sh locked/lock.sh

audit: $(VENV)/.audit $(VENV)/.installed
	@$(AUDIT)/bin/python locked/audit.py $(BIN)/python

lint: $(VENV)/.tools $(PAGE)
	@$(BIN)/ruff check $(SOURCES)
	@$(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/codespell $$(git ls-files ":!tests")
	@$(BIN)/python -m docs.english
	@cd $(WEB) && npm run --silent lint && npm run --silent test

types: $(VENV)/.tools $(PAGE)
	@$(BIN)/mypy
	@cd $(WEB) && npm run --silent types
	@MYPYPATH=broker_sdk:studies:examples/onboard $(BIN)/mypy -m auv -m usv -m oneway -m homing -m talker -m captain -m tunnel -m learned -m recorded

imports: $(VENV)/.tools
	@$(BIN)/lint-imports

docs: $(VENV)/.tools
	@$(BIN)/python docs/generate.py

docs-check: $(VENV)/.tools
	@$(BIN)/python docs/generate.py --check

site: $(VENV)/.docs  # strict: a link that leads nowhere fails
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet
	@echo "the documents are a site now: site/index.html"

examples: $(VENV)/.tools
	@$(BIN)/python -m pytest -q tests/examples $(ARGS)

bench: $(VENV)/.tools
	@$(BIN)/python benchmarks/kernel.py
	@$(BIN)/python benchmarks/acoustics.py
	@$(BIN)/python -m benchmarks.trial
	@$(BIN)/python benchmarks/sensors.py
	@$(BIN)/python -m benchmarks.network
	@$(BIN)/python -m benchmarks.viewer

mutants: $(VENV)/.mutants
	@$(MUTANTS)/bin/python -m benchmarks.mutants $(MODULES)

pictures: $(VENV)/.tools $(PAGE)  # runs the trials that they show where runs/ has none
	@$(BIN)/python docs/pictures.py

clean:
	rm -rf dist site $(DOCS) $(VENV) $(ORACLES) $(MUTANTS) $(MHKIT) $(BELLHOP) $(AUDIT) $(WEB)/node_modules viz/wavesim_viz/static runs build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
