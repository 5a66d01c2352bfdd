# Everything a person or a CI job does with a checkout. `make setup` once; every target runs it first (a stamp makes it quick).
PYTHON_BIN := .venv/bin/python
CODE := src bench tests scripts
# One more than there are processors: tests wait for other processes now and then. Each takes up to 1 GiB with its servers.
PYTEST_WORKERS ?= $(shell n=$$(nproc); echo $$((n < 8 ? n + 1 : 8)))
PYTEST_FLAGS ?=
# In the order in which they stand: by the number of their tests the slow files, which have few, would come last.
PYTEST = $(PYTHON_BIN) -m pytest -n $(PYTEST_WORKERS) --dist loadfile --no-loadscope-reorder --max-worker-restart 1
# Where this is set, every process of every test compiles what it imports anew: 1.5 s of processor time for each server.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo picture test long lint format typecheck imports collect docs check bench posix sync-figures scale-figures retrieval-figures agents-figures clean

help: ## this list
	@awk -F':.*## ' '/^[a-z]+:.*## /{printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: ## Debian packages when root, .venv, locked dependencies
	@bash scripts/setup.sh

demo: setup ## mount a memory, search it by meaning, unmount: the whole product in a minute
	@$(PYTHON_BIN) scripts/demo.py

picture: setup ## record the demo again as docs/images/demo.svg
	@$(PYTHON_BIN) scripts/demo.py --svg docs/images/demo.svg

test: setup ## the test lane
	@$(PYTEST) -m "not long" $(PYTEST_FLAGS)

long: setup ## the same properties with more cases
	@$(PYTEST) -m long -o faulthandler_timeout=8000 $(PYTEST_FLAGS)

mutants: setup ## change the planner, the queue and the renames in every place and count what the tests notice: an hour
	@$(PYTHON_BIN) -m tests.mutants

lint: setup ## ruff, rules and format
	@$(PYTHON_BIN) -m ruff check $(CODE)
	@$(PYTHON_BIN) -m ruff format --check $(CODE)

format: setup ## let ruff rewrite the code
	@$(PYTHON_BIN) -m ruff check --fix $(CODE)
	@$(PYTHON_BIN) -m ruff format $(CODE)

typecheck: setup ## mypy --strict
	@$(PYTHON_BIN) -m mypy

imports: setup ## the rooms import downwards only
	@.venv/bin/lint-imports

collect: setup ## import every test, run none
	@told=$$($(PYTHON_BIN) -m pytest --collect-only -qq -m "not long" -p no:xdist) || { echo "$$told"; exit 1; }

docs: setup ## write docs/cli.md again from --help, and docs/api.md from the routes
	@$(PYTHON_BIN) -m memdir.cli.docs
	@$(PYTHON_BIN) -m memdir.server.docs

# Unit tests, one mount, one server: what most changes break. The rest has mounts, kills, fuzzers and other programs.
CHECKED := tests/core tests/client tests/memory tests/sync tests/fs/test_contract.py tests/fs/test_gitignore.py tests/retrieval/test_kinds.py \
	tests/server/pipeline tests/server/test_files_http.py tests/server/test_search_http.py tests/server/test_imports.py tests/cli/test_main.py tests/agents \
	tests/acceptance/test_main_job.py tests/test_checkout.py tests/test_promises.py tests/test_style.py

check: lint typecheck imports ## lint, types, import rules and the tests for daily work, in some 3 minutes
	@$(PYTEST) -m "not long" $(CHECKED) $(PYTEST_FLAGS)

bench: setup ## the figures of docs/benchmarks.md, as JSON
	@.venv/bin/memdir bench smoke --json

posix: setup ## the filesystem beside native and other mounts: some 20 minutes
	@.venv/bin/memdir bench posix

sync-figures: setup ## the sync measured and written into docs/benchmarks.md: some 20 minutes
	@.venv/bin/memdir bench sync --grow --output sync-figures.json
	@$(PYTHON_BIN) scripts/sync_figures.py sync-figures.json

scale-figures: setup ## search up to a million passages, measured and written into docs/benchmarks.md: about an hour
	@.venv/bin/memdir bench scale --output scale-figures.json
	@$(PYTHON_BIN) scripts/scale_figures.py scale-figures.json

agents-figures: setup ## memories of agents measured and written into docs/benchmarks.md: half an hour for the first three sizes
	@.venv/bin/memdir bench agents --output agents-figures.json
	@$(PYTHON_BIN) scripts/agents_figures.py agents-figures.json

retrieval-figures: setup ## rankings, lines, languages, hops measured and written into docs/benchmarks.md: CRANFIELD=DIR CISI=DIR
	@.venv/bin/memdir bench retrieval --cranfield $(CRANFIELD) --cisi $(CISI) --lines --unrelated --languages --hops --output retrieval-figures.json
	@$(PYTHON_BIN) scripts/retrieval_figures.py retrieval-figures.json

clean: ## remove caches and build output, keep .venv
	@rm -rf dist build .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis demo-run sync-figures.json scale-figures.json retrieval-figures.json agents-figures.json
	@find src bench tests scripts -name __pycache__ -type d -prune -exec rm -rf {} +
