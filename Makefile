# The usual tools' own commands, nothing more. VENV and PYTHON may be given: make test VENV=.venv313 PYTHON=python3.13
# ARGS go to the command: make bench ARGS=--tiny
PYTHON ?= python3
VENV ?= .venv
AOT_VENV ?= .venv-aot
DIST_VENV ?= .venv-dist
OLDEST_VENV ?= .venv-oldest
BIN = $(VENV)/bin
PROCESSES = -n logical --maxprocesses 4 --dist worksteal# one of up to 2 GiB for each core
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help env demo check test test-oldest thorough peers examples lint docs site site-test bench accelerator aot dist

help: ## show this list
	@grep -E '^[a-z-]+: .*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 13

env: $(VENV)/dev.stamp ## make .venv with attnpool and the tools of the extra dev

demo: $(VENV)/all.stamp ## pool real sentence embeddings in NumPy and in JAX; writes attnpool_demo.png
	$(BIN)/python examples/demo.py

check: $(VENV)/all.stamp ## judge attnpool_flax against the oracle, every function and dtype
	$(BIN)/attnpool check $(ARGS)

test: $(VENV)/dev.stamp ## run the tests; ARGS names folders of them
	$(BIN)/pytest -q $(PROCESSES) -m 'not thorough and not mesh' $(ARGS)
	JAX_NUM_CPU_DEVICES=8 $(BIN)/pytest -q $(PROCESSES) -m 'mesh and not thorough' $(ARGS) $(if $(ARGS),|| test $$? -eq 5)

test-oldest: ## run the guarantees and the tests of layouts, modules and export with the oldest JAX and Flax, in .venv-oldest
	$(MAKE) test VENV=$(OLDEST_VENV) ARGS='tests/test_guarantees.py tests/layouts tests/modules tests/call/test_export.py'
test-oldest: export PIP_CONSTRAINT = $(CURDIR)/.ci/oldest.txt

thorough: $(VENV)/dev.stamp ## run the tests that compile much: tiles, blocks, meshes, memory, export
	$(BIN)/pytest -q $(PROCESSES) -m 'thorough and not mesh'
	JAX_NUM_CPU_DEVICES=8 $(BIN)/pytest -q $(PROCESSES) -m 'mesh and thorough'

peers: $(VENV)/peers.stamp ## run the tests beside ONNX, PyTorch, TensorFlow, Flax, PyG, entmax, transformers, timm; fails where they are skipped
	$(BIN)/pytest -q $(PROCESSES) tests/peers

examples: $(VENV)/examples.stamp ## run the examples, small; fails where they are skipped
	$(BIN)/pytest -q tests/examples

lint: $(VENV)/dev.stamp ## style, format, types, workflows
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --pythonpath $(BIN)/python --warnings
	$(BIN)/check-jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(BIN)/check-jsonschema --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/zizmor --offline --quiet .github

docs: $(VENV)/dev.stamp ## write the generated files that are committed: type stubs, attnpool_ref/table/sources.py, tables of docs/options.md, docs/pictures/
	$(BIN)/python tools/generate/bibliography.py
	PYTHONPATH=. $(BIN)/python tools/generate/make_pictures.py
	$(BIN)/python tools/generate/make_options.py
	$(BIN)/python tools/generate/make_stubs.py
	$(BIN)/python -m bench --page
	PYTHONPATH=. $(BIN)/python tests/repo/interface.py

site: $(VENV)/site.stamp ## build the site of the pages and the docstrings into build/site, without a network; warnings are errors
	rm -rf build/site build/doctrees
	$(BIN)/sphinx-build -q -W --keep-going -d build/doctrees docs build/site
	@echo 'Open build/site/index.html in a browser.'

site-test: site ## open every page of the site in a Chromium: errors, formulas, searches, links, widths; says if there is no browser
	$(BIN)/python tools/site/site_walk.py $(ARGS)

bench: $(VENV)/bench.stamp ## time attnpool_flax beside the floor and other libraries; writes docs/performance.md
	$(BIN)/python -m bench $(ARGS)

accelerator: ## judge and time it on a GPU or TPU in 8 minutes, with the Python that is there; installs nothing
	$(PYTHON) -m bench.accelerator $(ARGS)

aot: $(AOT_VENV)/aot.stamp ## compile for a TPU and an H200 without one, compare costs with plain formulas; needs Python 3.12 and 2 GB
	$(AOT_VENV)/bin/python -m bench.aot $(ARGS)

dist: $(DIST_VENV)/dist.stamp ## build the wheel and the sdist, check both, run the README and doctests of the one and tests of the other elsewhere; ARGS=--quick: only the README
	$(DIST_VENV)/bin/python tools/release/make_dist.py $(ARGS)

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(AOT_VENV)/aot.stamp: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.version_info < (3, 12) and sys.exit("make aot needs Python 3.12 or later: make aot PYTHON=python3.13")'
	test -x $(AOT_VENV)/bin/python || $(PYTHON) -m venv $(AOT_VENV)
	$(AOT_VENV)/bin/python -m pip install --disable-pip-version-check --editable '.[aot]'
	touch $@

$(DIST_VENV)/dist.stamp: pyproject.toml
	test -x $(DIST_VENV)/bin/python || $(PYTHON) -m venv $(DIST_VENV)
	$(DIST_VENV)/bin/python -m pip install --disable-pip-version-check --editable '.[dist]'
	touch $@

$(VENV)/all.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[all]'
	touch $@

$(VENV)/dev.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[dev]'
	touch $@ $(VENV)/all.stamp

$(VENV)/peers.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[peers]'
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps 'timm==1.0.31' # its layers alone, without torchvision
	touch $@ $(VENV)/dev.stamp $(VENV)/all.stamp

$(VENV)/examples.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[examples]'
	touch $@ $(VENV)/dev.stamp $(VENV)/all.stamp

$(VENV)/site.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[site]'
	touch $@ $(VENV)/all.stamp

$(VENV)/bench.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[bench]'
	touch $@ $(VENV)/all.stamp
