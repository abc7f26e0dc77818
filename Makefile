# One entry point for people: `make` lists what there is.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := -m pip --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo run quick test test-cluster lint types format docs screens compat bench wheel wheeltest newest oldest soak fuzz clean

# More processes than cores, because tests wait for more than half of their time. In the order of their names the longest are not last.
PARALLEL := -n 4 --dist loadfile --no-loadscope-reorder
# Libraries of which usp uses private names.
CLIENTS := aiohttp requests urllib3
SPACE := $(subst ,, )
# The sources of the compiled modules.
COMPILED := setup.py src/usp/compiled.py $(wildcard src/usp/*.pxd src/usp/*/*.pyx src/usp/*/*.pxd)

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/installed ## run usp on its built-in example website, with no network
	@$(PY) -m usp demo

run: demo

quick: $(VENV)/compiled ## check style and types, and run the fastest tests, in about 20 seconds
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --quiet --check .
	@$(PY) -m mypy --no-error-summary
	@$(PY) -m pytest -q -n 2 --dist worksteal -m "not (cli or compare or corpus or export or network or slow or tools)"

test: $(VENV)/compiled ## run all tests
	@$(PY) -m pytest -q $(PARALLEL)

test-cluster: $(VENV)/clustering ## run the tests of Spark, Ray and object stores; installs them, and Java where it is missing
	@$(PY) -m pytest -q -m cluster

lint: $(VENV)/developing ## check style
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

types: $(VENV)/developing ## check types
	@$(PY) -m mypy

format: $(VENV)/developing ## fix the style
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

docs: $(VENV)/compiled ## write command help and problem codes into the documentation
	@$(PY) tools/docs.py --write

screens: $(VENV)/compiled ## take the pictures of terminals in docs/images again
	@$(PY) tools/screens.py --write

compat: $(VENV)/compiled ## compare with ultimate-sitemap-parser 1.8.1, installed in .compat/
	@$(PY) tools/compat.py

bench: $(VENV)/compiled ## compare speed and memory with other readers; WRITE=1 writes docs/benchmarks.md
	@$(PY) tools/bench $(if $(WRITE),--write)

wheel: $(VENV)/created ## build a wheel into dist/, with the compiled parts where there is a compiler
	@rm -rf build dist
	@$(PY) $(PIP) wheel --no-deps --wheel-dir dist .
	@ls dist/*.whl

# Of the compiled wheel: that it has its modules, its compiled parts and its pages; `make test` has run the rest. Of the
# wheel without compiled parts: all that plain Python may do differently.
wheeltest: wheel ## run the tests against built wheels: compiled, and as it is built where there is no compiler
	@$(PYTHON) -m venv --clear .wheel
	@.wheel/bin/python $(PIP) install "$$(ls dist/*.whl)[dev]"
	@.wheel/bin/usp --version
	@.wheel/bin/python -m pytest -q $(PARALLEL) -m wheel
	@rm -rf build
	@CC=false .wheel/bin/python $(PIP) wheel --no-deps --wheel-dir .wheel/pure .
	@.wheel/bin/python $(PIP) install --force-reinstall --no-deps .wheel/pure/*.whl
	@.wheel/bin/usp --version | grep "pure Python"
	@.wheel/bin/python -m pytest -q $(PARALLEL) -m "not (cli or compare or corpus or network or tools)"

# What pip says of usp's own upper bounds is expected: this tests what lies beyond them.
newest: ## test the clients with the newest aiohttp, requests and urllib3, whatever the bounds in pyproject.toml
	@$(PYTHON) -m venv --clear .newest
	@.newest/bin/python $(PIP) install '.[dev]'
	@.newest/bin/python $(PIP) install --upgrade $(CLIENTS) requests-mock responses vcrpy
	@.newest/bin/python -m pip freeze | grep -E "^($(subst $(SPACE),|,$(CLIENTS)))=="
	@.newest/bin/python -m pytest -q $(PARALLEL) -m network

oldest: ## test the clients with the oldest aiohttp, requests and urllib3 that pyproject.toml allows
	@$(PYTHON) -m venv --clear .oldest
	@.oldest/bin/python $(PIP) install '.[dev]' \
	  $$(sed -nE 's/^ *"($(subst $(SPACE),|,$(CLIENTS)))>=([0-9.]+).*/\1==\2/p' pyproject.toml)
	@.oldest/bin/python -m pip freeze | grep -E "^($(subst $(SPACE),|,$(CLIENTS)))=="
	@.oldest/bin/python -m pytest -q $(PARALLEL) -m network

soak: $(VENV)/compiled ## crawl many sites on loopback, some of them bad; SITES=100000 for more than 2,000
	@$(PY) tools/soak.py --sites $(or $(SITES),2000)

fuzz: $(VENV)/installed ## search for documents that are read wrongly, for a minute; SECONDS=600 for longer
	@$(PY) tools/fuzz --seconds $(or $(SECONDS),60) $(INPUT)

clean: ## remove everything that these targets made
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .compat .bench .wheel .newest .oldest .fuzz
	find src -name "*.so" -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "usp needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
	  || { echo "Python's venv module is missing; on Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

# For users of usp: pip builds the compiled parts, in an environment of its own.
$(VENV)/installed: $(VENV)/created pyproject.toml $(COMPILED)
	@$(PY) $(PIP) install --editable .
	@touch $@

# For developers: pip installs usp without its compiled parts, which are built in place, and again after each edit.
$(VENV)/developing: $(VENV)/created pyproject.toml
	@USP_PURE=1 $(PY) $(PIP) install --editable '.[dev]'
	@touch $@

$(VENV)/compiled: $(VENV)/developing $(COMPILED)
	@$(PY) setup.py --quiet build_ext --inplace
	@touch $@ $(VENV)/installed

$(VENV)/clustering: $(VENV)/compiled
	@java -version >/dev/null 2>&1 || { apt-get update -qq && apt-get install -qq -y openjdk-17-jre-headless; }
	@USP_PURE=1 $(PY) $(PIP) install --editable '.[dev,cluster]'
	@touch $@
