# On a fresh machine with Python 3.11+, `make trial` and `make test` install everything they need.
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
# Packages are installed exactly as pinned by hash in locked/*.txt; `make lock` writes these files from constraints.txt and the requirements.
# The first import writes bytecode. PYTHONDONTWRITEBYTECODE would make each program translate its imports at every start (a minute per
# worker in `make test`), so it is unset here.
unexport PYTHONDONTWRITEBYTECODE
INSTALL := -m pip install -qq --disable-pip-version-check --no-compile
LOCKED := --require-hashes --no-deps --only-binary :all:
OWN := --no-deps --no-build-isolation
PIP := $(BIN)/python $(INSTALL)
NPM := npm ci --no-audit --no-fund --loglevel=error --fetch-retries=1
ABSENT := { echo "packages could not be downloaded (see above): check the network. To install offline, fill a folder on another machine with"; \
	echo "  pip download --require-hashes --only-binary :all: -r FILE -d FOLDER      (FILE: the file of locked/ that was being installed)"; \
	echo "and use that folder here: PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER make ..."; exit 1; }
PARTS := broker_sdk kernels world devices conformance server emulators viz bridges studies
PACKAGES := wavesim_sdk wavesim_kernels wavesim_world wavesim_devices wavesim_conformance wavesim_server wavesim_emulators wavesim_viz wavesim_bridges wavesim_studies
KERNELS := wavesim_server.dynamics wavesim_server.environment wavesim_server.acoustics
PROJECTS := $(PARTS:%=%/pyproject.toml)
SOURCES := $(PARTS) examples tests benchmarks locked docs
# more than the usual two cores: tests wait for other processes a third of their time (four were no faster)
WORKERS ?= 3

.PHONY: help trial compiled web wheels test test-long test-uncompiled coverage test-mhkit test-bellhop test-navigators test-wheels setup lint types imports docs docs-check site examples bench mutants pictures lock audit clean

help:
	@echo "make trial     set up, run the demonstration trial and draw its pictures into runs/demo"
	@echo "make web       build the page of the viewer (\`make trial\` does this too)"
	@echo "make test      set up and run the tests"
	@echo "make wheels    build the wheels of all distributions into dist"
	@echo "make test-long run the long tests: shipped trials, tutorials, studies, one hash on a busy machine"
	@echo "make lint types imports docs-check test-uncompiled test-mhkit test-bellhop test-navigators test-wheels    run the other checks of CI"
	@echo "make coverage  report the lines that tests run: kernels uncompiled, other code only in the process of the tests"
	@echo "make docs      regenerate the generated pages and tables of docs/"
	@echo "make site      build the documents as a searchable site for offline use"
	@echo "make mutants   run mutation tests: do the tests notice small changes of the code? (MODULES=\"area ring\" selects modules)"
	@echo "make bench     run the benchmarks; copy the results to docs/performance.md by hand"
	@echo "make lock      rewrite locked/ and the npm lock files after a change of requirements or constraints.txt"
	@echo "make audit     check locked packages for known vulnerabilities and licences (queries registries)"

trial:  # build page, kernels and packages in parallel
	@$(MAKE) --no-print-directory -j4 $(PAGE) compiled $(VENV)/.installed
	@$(BIN)/wavesim trial config.xml

compiled: $(VENV)/.compiler  # from the sources, before the other packages are installed
	@PYTHONPATH="$(CURDIR)/broker_sdk:$(CURDIR)/kernels:$(CURDIR)/world:$(CURDIR)/devices:$(CURDIR)/server" $(BIN)/python -c "from wavesim_server.cli import compile_; compile_()"

web: $(PAGE)

wheels: $(VENV)/.installed $(PAGE)
	@rm -rf dist $(PARTS:%=%/build)
	@$(BIN)/python -m pip wheel -qq --disable-pip-version-check $(OWN) -w dist $(PARTS:%=./%)
	@rm -rf $(PARTS:%=%/build)
	@ls dist/*.whl

test:  # compile the kernels once, not in each worker
	@$(MAKE) --no-print-directory -j4 setup compiled
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

test-long: $(VENV)/.tools $(PAGE) $(VENV)/.judges  # shipped trials, tutorials, complete studies; one hash on a busy machine
	@$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup -m long $(ARGS)

test-uncompiled: $(VENV)/.tools  # run the kernels as plain Python: same results, and coverage of their lines
	@NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q -n $(WORKERS) -W default::RuntimeWarning -m "not compiled" $(KERNELS:%=--cov=%) \
		--cov-branch --cov-report=term:skip-covered --durations=10 tests/physics

coverage: test-uncompiled  # and other code, as far as tests run it in their own process
	@$(BIN)/python -m pytest -q -n $(WORKERS) -m "not system and not long and not mhkit and not bellhop and not navigators and not wheels" --cov-append --cov-branch $(PACKAGES:%=--cov=%) \
		--cov-report=term:skip-covered tests/sdk tests/protocol tests/server tests/world tests/emulators tests/studies tests/viz tests/bridges

test-wheels: $(VENV)/.tools wheels  # in an environment without this folder on its path
	@$(BIN)/python -m pytest -q -m wheels tests/wheels

test-mhkit: $(VENV)/.tools $(VENV)/.mhkit  # a large reference package for our Doppler logs
	@$(BIN)/python -m pytest -q -m mhkit $(JUDGES)

test-bellhop: $(VENV)/.tools $(VENV)/.bellhop  # reference for echoes: paths, times, levels and phases
	@$(BIN)/python -m pytest -q -m bellhop $(JUDGES)

test-navigators: $(VENV)/.tools $(VENV)/.navigators  # references for navigation: track errors, smoother
	@$(BIN)/python -m pytest -q -m navigators $(JUDGES)

setup: $(VENV)/.tools $(PAGE) $(VENV)/.oracles $(VENV)/.judges

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "WaVeSim needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) || { echo "cannot create a virtual environment; on Debian: apt-get install python3-venv"; exit 1; }
	@touch $@

$(VENV)/.compiler: $(VENV)/.python locked/kernels.txt
	@echo "installing WaVeSim into $(VENV) (once)"
	@$(PIP) $(LOCKED) -r locked/kernels.txt || $(ABSENT)
	@touch $@

# Our own packages come first: Numba, which runs in parallel, checks for SciPy and must not find it half installed. Last, the import of
# the plots writes their bytecode in two seconds, while the kernels still compile.
$(VENV)/.installed: $(VENV)/.compiler locked/run.txt $(PROJECTS)
	@$(PIP) $(OWN) $(PARTS:%=-e %)
	@$(PIP) $(LOCKED) -r locked/run.txt || $(ABSENT)
	@$(BIN)/python -c "import wavesim_viz.plots"
	@touch $@

$(VENV)/.tools: $(VENV)/.installed locked/dev.txt
	@echo "installing the tools for tests into $(VENV) (once)"
	@$(PIP) $(LOCKED) -r locked/dev.txt || $(ABSENT)
	@touch $@

# Without Node.js, one from the Python registry builds the page.
$(PAGE): $(WEB)/package-lock.json $(WEB)/build.mjs $(wildcard $(WEB)/src/*) | $(if $(shell command -v npm),,$(VENV)/.installed)
	@echo "building the page of the viewer"
	@{ command -v npm >/dev/null || { $(PIP) $(LOCKED) -r locked/node.txt && export PATH="$(CURDIR)/$(BIN):$$PATH"; }; } \
		&& cd $(WEB) && $(NPM) >/dev/null && npm run --silent build \
		|| echo "cannot build the page here (it needs the npm registry): \`wavesim viz\` reports this, everything else works"

$(VENV)/.oracles: locked/oracles.txt locked/arlpy.txt | $(VENV)/.tools
	@echo "installing arlpy, a reference for the tests, into $(ORACLES) (once)"
	@$(PYTHON) -m venv $(ORACLES) && $(ORACLES)/bin/python $(INSTALL) $(LOCKED) -r locked/oracles.txt \
		&& $(ORACLES)/bin/python $(INSTALL) --require-hashes $(OWN) -r locked/arlpy.txt \
		|| { echo "cannot install arlpy here; the test that uses it is skipped"; rm -rf $(ORACLES); }
	@touch $@

$(VENV)/.judges: $(JUDGES)/package-lock.json | $(VENV)/.tools
	@echo "installing Signal K and canboat, references for the tests, into $(JUDGES)/node_modules (once)"
	@cd $(JUDGES) && $(NPM) --ignore-scripts >/dev/null || echo "npm is missing or failed; the tests that use Signal K are skipped"
	@touch $@

$(VENV)/.mutants: locked/mutants.txt $(PROJECTS) | $(VENV)/.installed
	@echo "installing mutmut and the packages that the tests need into $(MUTANTS) (once)"
	@$(PYTHON) -m venv $(MUTANTS) && $(MUTANTS)/bin/python $(INSTALL) $(LOCKED) -r locked/mutants.txt || $(ABSENT)
	@$(MUTANTS)/bin/python $(INSTALL) $(OWN) -e broker_sdk -e kernels -e world -e devices -e server
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
	@MYPYPATH=broker_sdk:kernels:world:devices:studies:examples/onboard $(BIN)/mypy -m auv -m usv -m oneway -m homing -m talker -m captain -m tunnel -m learned -m recorded

imports: $(VENV)/.tools
	@$(BIN)/lint-imports

docs: $(VENV)/.tools
	@$(BIN)/python docs/generate.py

docs-check: $(VENV)/.tools
	@$(BIN)/python docs/generate.py --check

site: $(VENV)/.docs  # strict: a broken link is an error
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --quiet
	@echo "the site of the documents is in site/index.html"

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

pictures: $(VENV)/.tools $(PAGE)  # runs the trials that they show if runs/ lacks them
	@$(BIN)/python docs/pictures.py

clean:
	rm -rf dist site $(DOCS) $(VENV) $(ORACLES) $(MUTANTS) $(MHKIT) $(BELLHOP) $(AUDIT) $(WEB)/node_modules viz/wavesim_viz/static runs build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
