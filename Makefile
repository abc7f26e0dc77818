# One entry point for people: `make` lists what there is.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python

.DEFAULT_GOAL := help
.PHONY: help demo run test lint types format docs compat bench wheel wheeltest fuzz clean

# Two processes: many tests wait for something, and some measure time. In the order of their names the longest are not last.
PARALLEL := -n 2 --dist loadfile --no-loadscope-reorder
# Tests to which it makes no difference how usp was installed, of the network, of tools and of files, and those that compare
# the compiled parts with plain Python: they are run once.
ONCE := --ignore-glob='tests/test_faults*' --ignore-glob='tests/test_clients*' --ignore-glob='tests/test_cli*' \
  $(patsubst %,--ignore=tests/test_%.py,soak deadlines requests_session terms redirects bench fuzz aio schedule limits \
  export_files export_where export_select export_dedupe export_arrow export_frames plain columns survey)
# What shows that a wheel has all that it needs: its modules, its compiled parts, its pages. The rest was run before it was built.
PACKED := $(patsubst %,tests/test_%.py,public_api fixtures check_pages docs tree)
# What the compiled parts are built of.
COMPILED := setup.py $(wildcard src/usp/*/*.pyx src/usp/*/*.pxi)

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/installed ## run usp on its built-in example website, with no network
	@$(PY) -m usp demo

run: demo

test: $(VENV)/developing ## run all tests
	@$(PY) -m pytest -q $(PARALLEL)

lint: $(VENV)/developing ## check style
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .

types: $(VENV)/developing ## check types
	@$(PY) -m mypy

format: $(VENV)/developing ## put the style right
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

docs: $(VENV)/developing ## write command help and problem codes into the documentation
	@$(PY) tools/docs.py --write

compat: $(VENV)/developing ## compare with ultimate-sitemap-parser 1.8.1, installed beside
	@$(PY) tools/compat.py

bench: $(VENV)/developing ## compare speed and memory with other readers; WRITE=1 writes docs/benchmarks.md
	@$(PY) tools/bench $(if $(WRITE),--write)

wheel: $(VENV)/created ## build a wheel into dist/, with the compiled scanner where there is a compiler
	@rm -rf build dist
	@$(PY) -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/*.whl

wheeltest: wheel ## run the tests against built wheels: compiled, and as it is built where there is no compiler
	@$(PYTHON) -m venv --clear .wheel
	@.wheel/bin/python -m pip install --quiet --disable-pip-version-check "$$(ls dist/*.whl)[dev]"
	@.wheel/bin/usp --version
	@.wheel/bin/python -m pytest -q $(PARALLEL) $(PACKED)
	@rm -rf build
	@CC=false .wheel/bin/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir .wheel/pure .
	@.wheel/bin/python -m pip install --quiet --disable-pip-version-check --force-reinstall --no-deps .wheel/pure/*.whl
	@.wheel/bin/usp --version | grep "pure Python"
	@USP_CORPUS=/nonexistent .wheel/bin/python -m pytest -q $(PARALLEL) $(ONCE)

fuzz: $(VENV)/installed ## search for documents that are read wrongly, for a minute; SECONDS=600 for longer
	@$(PY) tools/fuzz --seconds $(or $(SECONDS),60) $(INPUT)

clean: ## remove everything that these targets made
	rm -rf $(VENV) build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .compat .bench .wheel .fuzz
	find src -name "*.so" -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	  || { echo "usp needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.11" >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null \
	  || { echo "Python's venv module is missing; on Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(VENV)/installed: $(VENV)/created pyproject.toml $(COMPILED)
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable .
	@touch $@

$(VENV)/developing: $(VENV)/created pyproject.toml $(COMPILED)
	@$(PY) -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@ $(VENV)/installed
