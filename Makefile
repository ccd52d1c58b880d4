# Every target sets up what it needs in .venv, once, with uv where present and plain Python otherwise.
VENV := .venv
BIN := $(VENV)/bin
RUN := $(VENV)/.ready
DEV := $(VENV)/.ready-dev
BENCH := $(VENV)/.ready-bench
LONG := $(VENV)/.ready-long
MUTATE := $(VENV)/.ready-mutate
LOWEST := $(VENV)-lowest
comma := ,
LOWEST_EXTRAS := agents,beautifulsoup4,cassandra,mcp,minilm,openai,otel,pdf,plot,yake,zim
DOCS := $(VENV)/.ready-docs
SITE := site
PAGES := $(shell find docs linkstore extractors notebooks -name '*.md' -o -name '*.py' -o -name '.nav.yml')
DEMO_STORE := .demo/sqlite
ARGS ?=
REPORT ?=
WORKERS ?= 2
DATA ?= $(LINKSTORE_EVAL_DATA)

.DEFAULT_GOAL := help
.PHONY: help demo test test-model test-rest test-all test-long test-lowest fuzz mutate lint format docs dist bench screenshots web cassandra clean

help: ## List the targets
	@grep -E '^[a-z-]+:.*## ' Makefile | awk -F ':.*## ' '{printf "  make %-11s %s\n", $$1, $$2}'

demo: $(RUN) ## Show what links find: on a site of 15 pages, then on the manual of SQLite
	$(BIN)/linkstore demo
	rm -rf $(DEMO_STORE)
	$(BIN)/linkstore demo sqlite --store $(DEMO_STORE)
	@echo 'see it in the browser:  $(BIN)/linkstore serve --store $(DEMO_STORE)'

test: $(DEV) ## Run the tests but for the slow modules; ARGS go to pytest
	LINKSTORE_TESTS=quick $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

test-rest: $(DEV) ## Run the slow modules: kills, rings of servers, schedules, a browser, notebooks, the site
	LINKSTORE_TESTS=rest $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

test-all: test test-rest ## Run all tests, then each of the other targets in a clone with an environment of its own
	.ci/targets lint demo docs web

test-long: $(LONG) ## Run the tests with the long counts in full; REPORT=FILE writes a report, and goes on where a run stopped
	LINKSTORE_LONG=1 LINKSTORE_REPORT="$(REPORT)" $(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

test-model: $(DEV) ## Run ten tasks with a real model; MODEL is a folder with model.gguf and llama-server, or a URL
	LINKSTORE_MODEL_PLACE="$(MODEL)" $(BIN)/python -m pytest tests/model $(ARGS)

test-lowest: $(LOWEST)/.ready ## Run the tests with the lowest versions of all that linkstore needs
	$(LOWEST)/bin/python -m pytest -n $(WORKERS) --dist loadgroup $(ARGS)

fuzz: $(DEV) ## Fuzz the readers for an hour; ARGS such as --minutes 5 --reader html
	PYTHONPATH=tests/support $(BIN)/python -m fuzzing $(ARGS)

mutate: $(MUTATE) ## Measure which small changes the tests notice; ARGS such as links traversal --sample 100 --seed 2
	PYTHONPATH=tests/support $(BIN)/python -m mutation $(ARGS)

lint: $(DEV) ## Check style and types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/pyright --pythonpath $(BIN)/python linkstore extractors/linkstore_extractors tests/store/typing

format: $(DEV) ## Format the code, and fix what ruff can fix
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DOCS) ## Regenerate the generated parts of docs/ and notebooks/, and build the site
	$(BIN)/python notebooks/build.py
	$(BIN)/python docs/generate.py
	$(BIN)/zensical build --strict --clean
	$(BIN)/python docs/generate_llms.py $(SITE)

$(SITE)/index.html: zensical.toml $(PAGES) | $(DOCS)
	$(BIN)/zensical build --strict --clean

dist: ## Build the wheel and the source distribution in dist/, and use each from an empty environment
	.ci/dist python3

bench: $(BENCH) ## Run the benchmarks; DATA is the folder of the data sets
	@for script in benchmarks/[a-z]*.py; do \
		echo "== $$script"; $(BIN)/python "$$script" $(if $(DATA),--data "$(DATA)") || exit 1; \
	done

screenshots: $(DEV) ## Take the pictures of the page that docs/ shows; needs Chromium
	PYTHONPATH=tests/support $(BIN)/python docs/screenshots.py

web: ## Build the page's script and styles from linkstore/explorer/web; needs Node 20
	cd linkstore/explorer/web && npm ci --silent --no-fund --no-audit && npm run --silent check && npm run --silent build

cassandra: $(DEV) ## Start a Cassandra server, until Ctrl-C; ARGS go to it
	PYTHONPATH=tests/support $(BIN)/python -m cassandra_server $(ARGS)

clean: ## Remove generated files
	rm -rf $(VENV) $(LOWEST) .cache .demo $(SITE) dist build

$(VENV)/bin/python:
	@if command -v uv >/dev/null 2>&1; then \
		uv venv --allow-existing --python '>=3.11' $(VENV); \
	else \
		for python in python3 python3.14 python3.13 python3.12 python3.11; do \
			if command -v $$python >/dev/null 2>&1 \
				&& $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then \
				$$python -m venv $(VENV) && $(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'; \
				exit; \
			fi; \
		done; \
		echo 'linkstore needs Python 3.11 or newer; none was found' >&2; exit 1; \
	fi

# $(call install,WHAT): into the environment, by uv where present.
define install
	@echo "installing into $(VENV): $(1)"
	@if command -v uv >/dev/null 2>&1; then \
		uv pip install --quiet --python $(BIN)/python $(1); \
	else \
		$(BIN)/python -m pip install --quiet $(1); \
	fi
	@touch $@
endef

$(RUN): pyproject.toml | $(VENV)/bin/python
	$(call install,--editable .)

$(DEV): pyproject.toml | $(RUN)
	$(call install,--editable . --group dev)

$(LOWEST)/.ready: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m venv --clear $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet uv
	$(LOWEST)/bin/uv pip compile --quiet --resolution lowest-direct --output-file $(LOWEST)/versions.txt \
		$(foreach extra,$(subst $(comma), ,$(LOWEST_EXTRAS)),--extra $(extra)) pyproject.toml
	$(LOWEST)/bin/uv pip install --quiet --python $(LOWEST)/bin/python --constraints $(LOWEST)/versions.txt \
		--group dev --editable '.[$(LOWEST_EXTRAS)]'
	@touch $@

$(DOCS): pyproject.toml | $(RUN)
	$(call install,--editable . --group docs)

$(LONG): pyproject.toml | $(RUN)
	$(call install,--editable . --group dev --group long)

$(MUTATE): pyproject.toml | $(RUN)
	$(call install,--editable . --group dev --group mutate)

$(BENCH): pyproject.toml | $(RUN)
	$(call install,--editable . --group dev --group bench)
