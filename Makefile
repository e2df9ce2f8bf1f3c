# `make` or `make help` prints the comments behind the targets.
.DEFAULT_GOAL := help
SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
PYTHON ?= python3
PDBOX := $(VENV)/.installed
DEV := $(VENV)/.dev-installed
# Tests wait more than they compute. Their order is that of tests/conftest.py.
PARALLEL := -n 4 --dist loadfile --no-loadscope-reorder
PYTHONS := 3.9 3.11 3.13

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

install: $(DEV) ## pdbox and all that its tests and checks need into .venv (1 GB)

$(PDBOX): pyproject.toml scripts/install.sh
	@PYTHON='$(PYTHON)' sh scripts/install.sh $(VENV)
	@touch $@

$(DEV): $(PDBOX)
	@PYTHON='$(PYTHON)' sh scripts/install.sh $(VENV) dev
	@touch $@

docker: $(PDBOX) ## nothing where a Docker engine answers; on Debian as root: install and start one
	@sh scripts/docker.sh $(BIN)/python

image: docker ## the sandbox images that the tests use, where they are missing or out of date
	@$(BIN)/pdbox image build --missing $(addprefix --python ,$(PYTHONS))

demo: $(PDBOX) ## the main job, visibly: an MCP client debugs a buggy sample in a sandbox
	@$(BIN)/pdbox doctor >/dev/null 2>&1 || sh scripts/docker.sh $(BIN)/python
	@$(BIN)/pdbox demo

test: image $(DEV) ## everything, in containers too
	PDBOX_REQUIRE_DOCKER=1 $(BIN)/pytest $(PARALLEL)

check: $(DEV) ## format, lint, types, and the tests that need no containers
	$(BIN)/ruff format --check
	$(BIN)/ruff check
	$(BIN)/pyright
	$(BIN)/pytest $(PARALLEL) -m 'not docker'

chaos: image $(DEV) ## clients at work while containers, streams and the server are killed: MINUTES=10 CLIENTS=20 BACKEND=docker
	PDBOX_CHAOS_MINUTES=$(or $(MINUTES),10) PDBOX_CHAOS_CLIENTS=$(or $(CLIENTS),20) $(BIN)/pytest -q -s tests/e2e/test_chaos.py -k "$(BACKEND)"

bench: image $(DEV) ## how fast it is, beside references measured in the same run
	$(BIN)/python -m tests.bench

manifests: $(PDBOX) ## write manifests/tools.json and task.schema.json anew from the code
	$(BIN)/pdbox tools --json > manifests/tools.json
	$(BIN)/python -c 'from mcp_server.tasks.model import schema_text; print(schema_text())' > manifests/tasks/task.schema.json

clean: ## remove what was installed and cached here; engine and images stay
	rm -rf $(VENV) .pytest_cache .ruff_cache .hypothesis build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

.PHONY: help install docker image demo test check chaos bench manifests clean
