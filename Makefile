# Needs python3 (3.11 or newer) and make; everything else goes into .venv, once.
# A stamp in .venv carries the checksum of pyproject.toml, so a second call installs nothing.

PYTHON  ?= python3
WORKERS ?= 2
SECONDS ?= 1800
VENV    := .venv
BIN     := $(VENV)/bin
KEY     := $(shell cksum < pyproject.toml | cut -d' ' -f1)
CORE    := $(VENV)/.core-$(KEY)
DEV     := $(VENV)/.dev-$(KEY)
DOCS    := $(VENV)/.docs-$(KEY)
OLD     := .venv-oldest
OLDEST  := $(OLD)/.dev-$(shell cat pyproject.toml tests/oldest.txt | cksum | cut -d' ' -f1)
PIP     := $(BIN)/python -m pip install -qq --disable-pip-version-check
MATHJAX_VERSION := 3.2.2
MATHJAX := docs/_static/mathjax/tex-svg-full.js

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-oldest fuzz check format docs bench atlas clean

help:  ## print this list
	@echo "kfdyn: robot dynamics is a Kalman filter. What make can do:"
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{printf "%-18s %s\n", $$1, $$2}'

demo: $(CORE)  ## run the built-in example (installs the core dependencies only)
	@echo "demo: the built-in example"
	@$(BIN)/kfdyn demo

test: $(DEV)  ## run the tests
	@echo "test: all tests but the slow ones, $(WORKERS) at a time"
	@$(BIN)/python -m pytest --doctest-modules -n $(WORKERS) kfdyn tests

test-all: $(DEV) docs  ## run the tests, with those marked slow, on new examples; build the documentation for them
	@echo "test-all: all tests, the slow ones too, on new examples, $(WORKERS) at a time"
	@KFDYN_EXAMPLES=new $(BIN)/python -m pytest --doctest-modules -n $(WORKERS) -m "" kfdyn tests
	@$(MAKE) test-oldest

test-oldest: $(OLDEST)  ## run the tests on the oldest releases of the dependencies that are promised to work
	@echo "test-oldest: all tests but the slow ones, on the releases of tests/oldest.txt"
	@$(OLD)/bin/python -m pytest -n $(WORKERS) tests

fuzz: $(DEV)  ## run the property tests on new examples for SECONDS=1800
	@$(BIN)/python tests/fuzz.py --seconds $(SECONDS)

check: $(DEV)  ## check format, lint, layers and types
	@echo "check: format (ruff)"
	@$(BIN)/ruff format --check .
	@echo "check: lint (ruff)"
	@$(BIN)/ruff check .
	@echo "check: layers (import-linter)"
	@$(BIN)/lint-imports
	@echo "check: types (mypy)"
	@$(BIN)/mypy

format: $(DEV)  ## format the code and mend what lint can mend
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: $(DOCS) $(MATHJAX)  ## build the documentation, warnings as errors
	@echo "docs: building docs/_build/html"
	@$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html || { rm -rf docs/_build; exit 1; }
	@$(BIN)/python -m sphinx -W --keep-going -q -b revealjs docs/slides docs/_build/html/slides || { rm -rf docs/_build; exit 1; }
	@echo "docs: open docs/_build/html/index.html; the slides of the lecture are docs/_build/html/slides/index.html"

bench: $(DEV)  ## run the benchmarks
	@echo "bench: timing the engine against its peers"
	@$(BIN)/python -m benchmarks
	@$(BIN)/python docs/readme_speed.py

# Budget: an hour of one core. make test measures four entries (seconds), make test-all all of them.
atlas: $(DEV)  ## break the code that the atlas names, run its tests, rewrite the page
	@$(BIN)/python tests/duality/atlas_evidence.py
	@$(BIN)/python tests/duality/sweep_evidence.py
	@$(BIN)/python docs/duality_pages.py

clean:  ## remove the environment and everything built
	@rm -rf $(VENV) $(OLD) docs/_build docs/_static/mathjax docs/generated docs/gallery docs/sg_execution_times.rst
	@rm -rf demo-output build dist .pytest_cache .hypothesis .mypy_cache .ruff_cache .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "kfdyn needs Python 3.11 or newer; '$(PYTHON)' is `$(PYTHON) --version 2>&1`."; \
	  echo "Name another one: make PYTHON=python3.12 demo"; exit 1; }
	@echo "set-up: creating $(VENV)"
	@$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "'$(PYTHON) -m venv' failed; on Debian or Ubuntu: apt install python3-venv"; exit 1; }

$(CORE): | $(BIN)/python
	@echo "set-up: installing kfdyn and its dependencies into $(VENV) (about a minute, once)"
	@$(PIP) --editable .
	@rm -f $(VENV)/.core-* && touch $@

$(DEV): | $(BIN)/python
	@echo "set-up: installing kfdyn, the test tools and the peers into $(VENV) (a few minutes, once)"
	@$(PIP) --editable ".[dev]"
	@rm -f $(VENV)/.dev-* $(VENV)/.core-* && touch $@ $(CORE)

$(OLDEST): tests/oldest.txt
	@echo "set-up: installing the oldest dependencies into $(OLD) (a few minutes, once)"
	@$(PYTHON) -m venv $(OLD)
	@$(OLD)/bin/python -m pip install -qq --disable-pip-version-check -c tests/oldest.txt --editable ".[dev]"
	@rm -f $(OLD)/.dev-* && touch $@

$(DOCS): | $(BIN)/python
	@echo "set-up: installing the documentation tools into $(VENV) (about a minute, once)"
	@$(PIP) --editable ".[docs]"
	@rm -f $(VENV)/.docs-* $(VENV)/.core-* && touch $@ $(CORE)

# MathJax is copied from its npm package so that the pages need no network. Without npm they still build.
$(MATHJAX):
	@if command -v npm > /dev/null; then \
	  echo "set-up: fetching MathJax $(MATHJAX_VERSION)"; \
	  mkdir -p $(@D) && cd $(@D) && npm pack --silent mathjax@$(MATHJAX_VERSION) > /dev/null && \
	  tar -xzf mathjax-$(MATHJAX_VERSION).tgz --strip-components=2 package/es5/tex-svg-full.js && \
	  tar -xzf mathjax-$(MATHJAX_VERSION).tgz --strip-components=1 package/LICENSE && \
	  rm mathjax-$(MATHJAX_VERSION).tgz && touch tex-svg-full.js; \
	else \
	  echo "docs: npm is missing, so formulas stay TeX source. Install npm, or put MathJax 3's"; \
	  echo "      tex-svg-full.js at $(MATHJAX), and run make docs again."; \
	fi
