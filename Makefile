# make run     set up what is missing, start the server, print its address
# make test    set up what is missing, run all checks and tests
# make setup   the set-up alone; afterwards .venv/bin/iact is the command

.DEFAULT_GOAL := run
.NOTPARALLEL:
.PHONY: run setup test test-slow test-long setup-test lint types unit coverage mutants bench fuzz lock format examples docs release screenshots sessions

# Where Python is told to keep no compiled modules, each of the workers would compile all of ours and of the tests anew.
unexport PYTHONDONTWRITEBYTECODE

PY := .venv/bin/python
BOOT = python=$$(sh iact/setup/python.sh) && "$$python" -m iact.setup
# What takes longest comes first, so that no worker is left alone with it at the end.
FIRST = $(addprefix tests/,sandbox/ acceptance/ web/ iact/)
ROOMS = $(filter-out tests/__pycache__/ $(FIRST),$(sort $(wildcard tests/*/)))
TESTS = $(FIRST) $(ROOMS) $(sort $(wildcard tests/test_*.py))
# How many processes run tests beside each other; a file's tests stay together. 0: all in one, as a debugger wants it.
WORKERS = 4
BESIDE = -n $(WORKERS) --dist loadfile --no-loadscope-reorder

setup:
	@$(BOOT) setup

run:
	@$(BOOT) run
	@exec .venv/bin/iact serve

# Types are checked beside the tests: for a minute only one processor would have something to do.
test: setup-test lint
	@$(MAKE) --no-print-directory --silent types > .venv/iact.types 2>&1 & types=$$!; \
		$(MAKE) --no-print-directory unit; tests=$$?; \
		wait $$types || { cat .venv/iact.types; exit 1; }; cat .venv/iact.types; exit $$tests

setup-test:
	@$(BOOT) test

lint: | .venv
	@$(PY) -m ruff check .
	@$(PY) -m ruff format --check .
	@$(PY) -m codespell_lib *.md docs examples accounts benchmarks cluster core ext_modules faces hippocampus iact protos sandbox web

types: | .venv
	@$(PY) -m mypy
	@NO_COLOR=1 DENO_DIR=.venv/deno DENO_NO_UPDATE_CHECK=1 .venv/bin/deno check --quiet --config web/jsconfig.json --no-remote web/static/js

# ARGS: what to give to pytest instead of all that is not slow. WORKERS: see above. IACT_TEST_SCALE (default 1) multiplies the
# rounds of slow suites. All of it: docs/how-to/test.md.
unit: | .venv
	@$(PY) -m pytest $(BESIDE) $(or $(ARGS),-m "not slow" $(TESTS))

# The rest of the tests, which the continuous build plays behind `make test`: tests/slow.py says which, and why. Those of the
# model on board come last, with nothing beside them; then it plays 20 tasks, which are compared with the last figures.
test-slow: setup-test
	@$(BOOT) model
	@$(PY) -m pytest $(BESIDE) -m "slow and not board" $(TESTS)
	@$(PY) -m pytest -m board tests/acceptance tests/iact
	@$(PY) -m benchmarks.board

# Before a release, and where time allows: the suites that IACT_TEST_SCALE multiplies, with 16 times the rounds (then all
# of the hostile commands go through the whole product), the ratios of costs, and both fuzzers for MINUTES each: the shell
# classifier against a real bash, and the language. About an hour and a half on two cores. What the fuzzers find goes into the corpora that
# `make test` reads.
LONG = $(sort $(shell grep -rlE '\btests\.rounds\b|\b(each|either)_backend\b|\bevery_wall\b' tests --include='test_*.py'))
test-long: setup-test
	@IACT_TEST_SCALE=$(or $(IACT_TEST_SCALE),16) $(PY) -m pytest -o faulthandler_timeout=7200 $(BESIDE) $(or $(ARGS),$(LONG))
	@$(PY) -m benchmarks --short
	@$(PY) -m tests.core.gate.fuzz --minutes $(or $(MINUTES),10)
	@$(MAKE) --no-print-directory fuzz

# Lines of the core that its own tests reach: the table of those that they don't, and a failure below 95 %.
coverage: | .venv
	@$(PY) -m coverage run -m pytest tests/core $(sort $(wildcard tests/test_*.py))
	@$(PY) -m coverage report

# ROOM: one of gate, journal, language, plan (or a file of one: "gate.rules"). Small changes to its functions, one at a
# time, each of which some test of these rooms must notice. What came of it: docs/measurements/mutants.md.
mutants: | .venv
	@IACT_TEST_SCALE=$(or $(IACT_TEST_SCALE),0.2) $(PY) -m mutmut run --max-children 2 "core.$(or $(ROOM),gate).*"
	@$(PY) -m mutmut results

# ARGS: names of benchmarks, to renew their parts of docs/benchmarks.md alone; or --short for the ratios.
bench: setup
	@$(PY) -m benchmarks $(ARGS)

# Recorded anew, by playing them on the product; needed when a prompt, a label or a rule has changed.
examples: setup
	@$(PY) -m iact.examples.recording $(ARGS)

# All pictures of the page in the documentation, taken anew.
screenshots: setup-test
	@$(PY) -m docs.screenshots

# The sessions of the documentation that other people's programs led, played anew.
sessions: setup-test
	@$(PY) -m docs.sessions $(ARGS)

# MINUTES: how long. New finds are taken into the corpus, which every test run reads.
fuzz: | .venv
	@$(PY) -m pip install --quiet atheris
	@$(PY) -m tests.core.language.fuzz --minutes $(or $(MINUTES),10)

format: | .venv
	@$(PY) -m ruff check --fix .
	@$(PY) -m ruff format .

# The versions of everything, with digests; written anew on purpose only.
lock: | .venv
	@$(PY) -m pip install --quiet uv
	@$(PY) -m uv pip compile pyproject.toml --group dev --universal --generate-hashes --python-version 3.11 \
		--no-emit-index-url --custom-compile-command "make lock" --quiet --output-file requirements.lock

.venv:
	@$(BOOT) environment

# The documentation as a site, in build/site; a link that leads nowhere is an error.
docs: | .venv
	@$(PY) -m mkdocs build --quiet

# A release: from a clean tree whose version the changelog names, through all tests, both distributions in dist/, checked.
# What is then left is a person's: a tag, and the upload.
release: test test-slow docs
	@git diff --quiet HEAD || { echo "release: the working tree has changes; commit or drop them first"; exit 1; }
	@version=$$($(PY) -c "import tomllib; print(tomllib.load(open('pyproject.toml', 'rb'))['project']['version'])"); \
		grep -q "^## \[\?$$version" CHANGELOG.md || { echo "release: CHANGELOG.md has no section for $$version"; exit 1; }
	@rm -rf dist && $(PY) -m build --outdir dist
	@$(PY) -m pip install --quiet twine && $(PY) -m twine check --strict dist/*
