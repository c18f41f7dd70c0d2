# On a fresh machine with Python 3.11+, `make trial` and `make test` install everything they need.
PYTHON ?= python3
# more than the usual two cores: tests wait for other processes a third of their time (four were no faster)
WORKERS ?= 3
VENV := .venv
BIN := $(VENV)/bin
# each folder with a project file is a distribution
PARTS := $(patsubst %/pyproject.toml,%,$(wildcard */pyproject.toml))
PACKAGES := $(foreach part,$(PARTS),$(patsubst $(part)/%/__init__.py,%,$(wildcard $(part)/*/__init__.py)))
SOURCES := $(PARTS) examples tests benchmarks locked docs wheels
PATHS := $(subst $() ,:,$(PARTS:%=$(CURDIR)/%))
KERNELS := wavesim_server.dynamics wavesim_server.environment wavesim_server.acoustics
WEB := viz/web
PAGE := viz/wavesim_viz/static/index.html
JUDGES := tests/judges
# The first import writes bytecode. PYTHONDONTWRITEBYTECODE would make each program translate its imports at every start (a minute per
# worker in `make test`), so it is unset here.
unexport PYTHONDONTWRITEBYTECODE
# Packages are installed exactly as pinned by hash in locked/*.txt, by uv if it is present.
LOCKED := --require-hashes --no-deps --only-binary :all:
OWN := --no-deps --no-build-isolation
install = $(if $(shell command -v uv),uv pip install --quiet --python $(1),$(1) -m pip install -qq --disable-pip-version-check --no-compile)
INSTALL = $(call install,$(BIN)/python)
# a locked file into an environment, with progress
locked = sh locked/install.sh $(1) $(2) $(call install,$(2)/bin/python) $(LOCKED) -r $(1)
NPM := npm ci --no-audit --no-fund --loglevel=error --fetch-retries=1
PYTEST = $(BIN)/python -m pytest -n $(WORKERS)
ABSENT := { echo "packages could not be downloaded (see above): check the network. To install offline, fill a folder on another machine with"; \
	echo "  pip download --require-hashes --only-binary :all: -r FILE -d FOLDER      (FILE: the file of locked/ that was being installed)"; \
	echo "and use that folder here: PIP_NO_INDEX=1 PIP_FIND_LINKS=FOLDER make ...      (uv: UV_NO_INDEX=1 UV_FIND_LINKS=FOLDER)"; exit 1; }
NO_PAGE := echo "cannot build the page here (it needs the npm registry): \`wavesim viz\` reports this, everything else works"
NO_JUDGES := echo "npm is missing or failed; the tests that use Signal K are skipped"
NO_ARLPY := echo "cannot install arlpy here; the test that uses it is skipped"

.PHONY: help trial compiled web wheels test test-long test-uncompiled coverage test-mhkit test-bellhop test-navigators test-trainers test-wheels setup lint types imports docs docs-check site examples bench mutants pictures lock version audit clean

help:
	@sed -nE 's/^([a-z][a-z -]*):.*## (.*)/\1\t\2/p' Makefile | while IFS="$$(printf '\t')" read -r name text; do printf 'make %-16s %s\n' "$$name" "$$text"; done

trial: ## set up, run the demonstration trial and draw its pictures into runs/demo
	@$(MAKE) --no-print-directory -j4 $(PAGE) compiled $(VENV)/.installed
	@$(BIN)/wavesim trial config.xml

compiled: $(VENV)/.compiler # the kernels, from the sources, before the other packages are installed
	@PYTHONPATH="$(PATHS)" $(BIN)/python -c "from wavesim_server.cli import compile_; compile_()"

web: $(PAGE) ## build the page of the viewer (`make trial` does this too)

wheels: $(VENV)/.installed $(PAGE) .venv-wheels/.ready ## build the wheels of all distributions into dist, with the machine code of the kernels
	@rm -rf dist build/wheels $(PARTS:%=%/build)
	@$(BIN)/python -m pip wheel -qq --disable-pip-version-check $(OWN) -w build/wheels/pure $(PARTS:%=./%) && rm -rf $(PARTS:%=%/build)
	@NUMBA_CACHE_DIR=$(CURDIR)/build/kernels PYTHONPATH="$(PATHS)" $(BIN)/python -m wheels.machine_code build/wheels/code
	@.venv-wheels/bin/python -m wheels.pack build/wheels/pure build/wheels/code dist && ls dist/*.whl

setup: $(VENV)/.dev $(PAGE) .venv-oracles/.arlpy $(JUDGES)/node_modules/.ready ## install everything that the tests need

test: ## set up and run the tests (the kernels are compiled once, not in each worker)
	@$(MAKE) --no-print-directory -j4 setup compiled
	@$(PYTEST) --dist loadgroup $(ARGS)

test-long: setup ## run the long tests: shipped trials, tutorials, studies, one hash on a busy machine
	@$(PYTEST) --dist loadgroup -m long $(ARGS)

test-uncompiled: $(VENV)/.dev ## run the kernels as plain Python: same results, and coverage of their lines
	@NUMBA_DISABLE_JIT=1 $(PYTEST) -q -W default::RuntimeWarning -m "not compiled" $(KERNELS:%=--cov=%) --cov-branch --cov-report=term:skip-covered --durations=10 tests/physics

coverage: test-uncompiled ## report the lines that tests run: kernels uncompiled, other code only in the process of the tests
	@$(PYTEST) -q -m "not system and not long and not mhkit and not bellhop and not navigators and not trainers and not wheels" --cov-append --cov-branch $(PACKAGES:%=--cov=%) --cov-report=term:skip-covered tests/sdk tests/protocol tests/server tests/world tests/emulators tests/studies tests/viz tests/bridges

test-wheels: $(VENV)/.dev .venv-audit/.ready wheels ## install the wheels as users do, on this Python, the newest one and 64-bit ARM
	@$(BIN)/python -m pytest -q -rs -m wheels tests/wheels $(ARGS)

test-mhkit test-bellhop test-navigators test-trainers: test-%: $(VENV)/.dev .venv-%/.ready ## compare with a reference that has an environment of its own
	@$(BIN)/python -m pytest -q -m $* $(JUDGES)

$(VENV)/.python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "WaVeSim needs Python 3.11 or newer; $(PYTHON) is older. Try: make PYTHON=python3.12"; exit 1; }
	@$(PYTHON) -m venv $(VENV) && touch $@ || { echo "cannot create a virtual environment; on Debian: apt-get install python3-venv"; exit 1; }

$(VENV)/.compiler: | $(VENV)/.python
$(VENV)/.dev: $(VENV)/.installed
$(VENV)/.compiler $(VENV)/.dev: $(VENV)/.%: locked/%.txt
	@$(call locked,$<,$(VENV)) && touch $@ || $(ABSENT)

# Our own packages come first: Numba, which runs in parallel, checks for SciPy and must not find it half installed. Last, the import of
# the plots writes their bytecode in two seconds, while the kernels still compile.
$(VENV)/.installed: locked/run.txt $(VENV)/.compiler $(PARTS:%=%/pyproject.toml)
	@$(INSTALL) $(OWN) $(PARTS:%=-e ./%)
	@$(call locked,$<,$(VENV)) || $(ABSENT)
	@$(BIN)/python -c "import wavesim_viz.plots" && touch $@

# One environment for each group of packages that must not be beside ours: references of the tests, tools.
.venv-%/.ready: locked/%.txt | $(VENV)/.python
	@$(PYTHON) -m venv .venv-$* && $(call locked,$<,.venv-$*) && touch $@ || $(ABSENT)

.venv-oracles/.arlpy: locked/arlpy.txt locked/oracles.txt | $(VENV)/.dev
	@$(MAKE) --no-print-directory .venv-oracles/.ready && $(call install,.venv-oracles/bin/python) --require-hashes $(OWN) -r $< || { $(NO_ARLPY); rm -rf .venv-oracles; mkdir .venv-oracles; }; touch $@

$(JUDGES)/node_modules/.ready: $(JUDGES)/package-lock.json | $(VENV)/.dev
	@echo "installing Signal K and canboat, references for the tests, into $(@D) (once)"
	@(cd $(JUDGES) && $(NPM) --ignore-scripts >/dev/null) || $(NO_JUDGES); mkdir -p $(@D); touch $@

# Without Node.js, one from the Python registry builds the page.
$(PAGE): $(WEB)/package-lock.json $(WEB)/build.mjs $(wildcard $(WEB)/src/*) | $(if $(shell command -v npm),,$(VENV)/.installed)
	@echo "building the page of the viewer"
	@{ command -v npm >/dev/null || { $(INSTALL) $(LOCKED) -r locked/node.txt && export PATH="$(CURDIR)/$(BIN):$$PATH"; }; } \
		&& cd $(WEB) && $(NPM) >/dev/null && npm run --silent build || $(NO_PAGE)

lint: $(VENV)/.dev $(PAGE) ## check style, spelling and English
	@$(BIN)/ruff check $(SOURCES) && $(BIN)/ruff format --check $(SOURCES)
	@$(BIN)/codespell $$(git ls-files ":!tests") && $(BIN)/python -m docs.english
	@cd $(WEB) && npm run --silent lint && npm run --silent test

types: $(VENV)/.dev $(PAGE) ## check the types of Python and TypeScript
	@$(BIN)/mypy && cd $(WEB) && npm run --silent types
	@MYPYPATH="$(PATHS):examples/onboard" $(BIN)/mypy -m auv -m usv -m oneway -m homing -m talker -m captain -m tunnel -m learned -m recorded -m soundmodem
	@MYPYPATH="$(PATHS):examples/mac" $(BIN)/mypy -m node -m throughput -m sensing -m thousand

imports: $(VENV)/.dev ## check which package may import which
	@$(BIN)/lint-imports

docs docs-check: $(VENV)/.dev ## regenerate the generated pages and tables of docs/, or check that they are up to date
	@$(BIN)/python docs/generate.py $(if $(filter docs-check,$@),--check)

site: .venv-docs/.ready ## build the documents as a searchable site for offline use; a broken link is an error
	@NO_MKDOCS_2_WARNING=1 .venv-docs/bin/mkdocs build --quiet && echo "the site of the documents is in site/index.html"

examples: $(VENV)/.dev ## test the examples and the code in the documents
	@$(PYTEST) -q --dist loadgroup tests/examples $(ARGS)

bench: $(VENV)/.dev ## run the benchmarks; copy the results to docs/performance.md by hand
	@for name in kernel acoustics trial sensors network viewer; do $(BIN)/python -m benchmarks.$$name || exit 1; done

mutants: .venv-mutants/.ready ## run mutation tests: do the tests notice small changes of the code? (MODULES="area ring" selects modules)
	@$(call install,.venv-mutants/bin/python) $(OWN) $(PARTS:%=-e ./%)
	@.venv-mutants/bin/python -m benchmarks.mutants $(MODULES)

pictures: $(VENV)/.dev $(PAGE) ## draw the pictures of the documents; trials that runs/ lacks are run
	@$(BIN)/python docs/pictures.py

lock: .venv-audit/.ready ## rewrite locked/ and the npm lock files after a change of requirements (ARGS=--upgrade takes the newest)
	@PATH="$(CURDIR)/.venv-audit/bin:$$PATH" sh locked/lock.sh $(ARGS)

version: ## write the version of CITATION.cff into all distributions
	@$(PYTHON) locked/version.py

audit: .venv-audit/.ready $(VENV)/.installed ## check locked packages for known vulnerabilities and licences (queries registries)
	@.venv-audit/bin/python locked/audit.py $(BIN)/python

clean: ## remove everything that make created
	rm -rf .venv* dist site $(JUDGES)/node_modules $(WEB)/node_modules viz/wavesim_viz/static runs build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache
