# Two commands do everything on a fresh machine with Python 3.11+ and make:
#   make demo   sets up and runs the whole flow on the bundled sample, offline
#   make test   sets up and passes the tests
# make test-more runs the rest: real servers, Ray, notebooks, axe, and properties with many examples.
# make docs builds the pages into build/docs, make docs-links asks whether the pages that they link to are there.
# make study says what judgekit finds in public data (docs/study.md): it clones that into the cache folder, or takes copies
# that are there, STUDIES=DIR. make study-judged ENDPOINT=URL MODEL=NAME labels their passages with an LLM: it counts the
# cost and asks first (YES=1 does not ask; LIMIT=40 tries 40 questions; KEY_ENV=NAME names the variable with the key).
# With LOCAL=1 it needs neither server nor key: it replays what a model of 135 million parameters said to 100 questions. For
# more (LIMIT=150) it installs llama-server and the model by name.
# make weekly runs everything else that is claimed (.ci/weekly lists it): other Pythons, real servers, references, …
# make check runs the linter and the type checker. Everything is installed into $(VENV).
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
LOWEST := $(VENV)/lowest
SIDE_BY_SIDE := -n auto --maxprocesses 4 --dist loadgroup

.PHONY: demo test test-more test-fast lab test-lowest check package weekly promises coverage conformance exports servers hooks \
	mutants notebooks pictures docs docs-links bench bench-against study study-judged clean

demo: $(VENV)/.installed
	$(BIN)/judgekit demo
	@command -v judgekit > /dev/null || echo "To call judgekit as above: . $(BIN)/activate"

test: $(VENV)/.dev
	$(BIN)/python -m pytest $(SIDE_BY_SIDE)

test-more: $(VENV)/.dev
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -m "(more or hypothesis) and not bench and not many" --hypothesis-profile many

# Before each commit, after make hooks.
test-fast: $(VENV)/.dev
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -q -m "not bench and not many and not more and not hypothesis" \
		$(addprefix tests/,metrics reading wire test_architecture.py)

# Which of N random mutants of a room its own tests kill.
mutants: $(VENV)/.dev
	$(BIN)/python -m pip install -q --group mutants
	$(BIN)/python -m tests.mutants $(ROOM) $(or $(N),30) $(or $(SEED),1)

hooks: $(VENV)/.dev
	$(BIN)/pre-commit install

# The laboratory: what the tests try a little of, with many more rounds.
lab: $(VENV)/.dev
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -rPs -m many tests/reading tests/lab

# The rooms that depend on other packages, with the lowest version of each that pyproject.toml allows. Those warn of what
# later ones have dropped.
test-lowest: $(LOWEST)/.dev
	$(LOWEST)/bin/python -m pytest $(SIDE_BY_SIDE) -q -W ignore::DeprecationWarning -m "not bench and not many and not more and not browser" \
		$(addprefix tests/,analysis cli client data experiment metrics setup store wire)

check: $(VENV)/.dev
	$(BIN)/ruff check judgekit tests benchmarks notebooks studies examples docs/*.py
	$(BIN)/ruff format --check judgekit tests benchmarks notebooks studies examples docs/*.py
	$(BIN)/mypy

# Builds sdist and wheel, and tries the wheel in an empty folder.
package: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist > build-package.log 2>&1 || { cat build-package.log; exit 1; }
	rm -f build-package.log
	$(BIN)/python -m twine check --strict dist/*
	$(BIN)/python -m pytest -q -m more tests/integration/test_wheel.py

weekly: $(VENV)/.dev
	$(BIN)/python .ci/weekly $(JOBS)

# Breaks each promise of the pages in a copy, and asks its test whether it notices.
promises: $(VENV)/.dev
	$(BIN)/python -m tests.promises

# Branches that tests run, by room; a room below its floor is an error (tests/coverage.toml).
coverage: $(VENV)/.dev
	$(BIN)/python -m pytest $(SIDE_BY_SIDE) -q --cov=judgekit --cov-branch --cov-report=json:build/coverage.json
	$(BIN)/python -m tests.floors build/coverage.json

# Values compared with those of trec_eval, ir_measures, KILT and other references, as a table.
conformance: $(VENV)/.dev
	$(BIN)/python -m tests.conformance

# Has the tools whose exports judgekit reads write them again, each release in an environment of its own; says what changed.
# TOOLS="ragas langsmith" makes some of them.
exports: $(VENV)/.dev
	$(BIN)/python -m tests.exports $(TOOLS)

# Runs the notebooks and keeps what they show.
notebooks: $(VENV)/.dev
	$(BIN)/python -W ignore tests/test_notebooks.py

# Draws the pictures of the README and the pages from the demo; that of the report needs a Chromium (CHROMIUM=PATH).
CHROMIUM ?= chromium
pictures: demo
	$(BIN)/python docs/draw.py
	$(BIN)/judgekit report judgekit-demo --figures build/pictures
	cp build/pictures/decision.svg docs/_static/decision.svg
	cp build/pictures/by-use.svg docs/_static/by-use.svg
	$(CHROMIUM) --headless --no-sandbox --disable-gpu --hide-scrollbars --window-size=1200,800 \
		--screenshot=docs/_static/report.png file://$(CURDIR)/judgekit-demo/report.html

# A warning (a link inside of the project that leads nowhere, a page that no other lists) is an error.
docs: $(VENV)/.docs
	$(BIN)/python docs/generate.py
	$(BIN)/python -m sphinx -q -W --keep-going -j auto -d build/doctrees docs build/docs

# Those of other sites may be down or out of reach: only a page that is not there is an error.
docs-links: $(VENV)/.docs
	-$(BIN)/python -m sphinx -q -b linkcheck -d build/doctrees docs build/links
	! grep -E '"status": "broken".*(404|410) Client Error' build/links/output.json

bench: $(VENV)/.dev
	$(BIN)/python -m pip install -q --group bench
	$(BIN)/python -m pytest -m bench -s benchmarks

# The same works here and at another commit, by turns: make bench-against REF=v0.3.0
bench-against: $(VENV)/.dev
	$(BIN)/python -m benchmarks.against $(REF) $(WORKS)

# Asks real servers anew what tests/servers holds of them, and shows what changed.
servers: $(VENV)/.dev
	$(BIN)/python -m tests.probing

study: $(VENV)/.installed
	$(BIN)/python -m studies

study-judged: $(VENV)/.installed
ifdef LOCAL
	$(BIN)/python -m studies.small_model $(if $(LIMIT),--limit $(LIMIT)) $(if $(PUBLISH),--publish $(PUBLISH))
else
	$(BIN)/python -m studies.judged $(ENDPOINT) --model $(MODEL) $(if $(LIMIT),--limit $(LIMIT)) $(if $(YES),--yes) $(if $(KEY_ENV),--key-env $(KEY_ENV))
endif

clean:
	rm -rf $(VENV) dist build judgekit-demo

$(BIN)/python:
	$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(None if v >= (3, 11) else f"judgekit needs Python 3.11 or newer, this is {v[0]}.{v[1]}: make PYTHON=python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -q --upgrade "pip>=25.1"

$(VENV)/.installed: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install -q --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.installed
	$(BIN)/python -m pip install -q --editable . --group dev
	@touch $@

$(VENV)/.docs: $(VENV)/.installed
	$(BIN)/python -m pip install -q --group docs
	@touch $@

$(LOWEST)/.dev: $(BIN)/python pyproject.toml
	$(PYTHON) -m venv $(LOWEST)
	$(BIN)/python -c 'import tomllib; p = tomllib.load(open("pyproject.toml", "rb")); print("\n".join(d.replace(">=", "==") for d in p["project"]["dependencies"]))' > $(LOWEST)/lowest.txt
	$(LOWEST)/bin/python -m pip install -q --upgrade "pip>=25.1"
	$(LOWEST)/bin/python -m pip install -q --editable . --group test --constraint $(LOWEST)/lowest.txt
	@touch $@
