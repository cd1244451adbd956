# The usual tools' own commands, nothing more. VENV and PYTHON may be given: make test VENV=.venv313 PYTHON=python3.13
# PEERS may pin what `make peers`, `make verdicts` and `make bench` install: make peers PEERS='torch==2.13.0'. ARGS go to the command: make bench ARGS=--tiny
PYTHON ?= python3
VENV ?= .venv
AOT_VENV ?= .venv-aot
DIST_VENV ?= .venv-dist
BIN = $(VENV)/bin
PROCESSES = -n logical --maxprocesses 4 --dist worksteal# one of up to 2 GiB for each core
ARGS ?=

.DEFAULT_GOAL := help
.PHONY: help env demo check test thorough peers examples lint docs site site-test verdicts bench accelerator aot dist

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

thorough: $(VENV)/dev.stamp ## run the tests that compile much: tiles, blocks, meshes, memory, export
	$(BIN)/pytest -q $(PROCESSES) -m 'thorough and not mesh'
	JAX_NUM_CPU_DEVICES=8 $(BIN)/pytest -q $(PROCESSES) -m 'mesh and thorough'

peers: $(VENV)/peers.stamp ## run the tests beside ONNX, PyTorch, TensorFlow, Flax, PyG, entmax, transformers, timm; fails where they are skipped
	$(BIN)/pytest -q $(PROCESSES) tests/peers

examples: $(VENV)/examples.stamp ## run the examples, small; fails where they are skipped
	$(BIN)/pytest -q tests/examples

lint: $(VENV)/dev.stamp ## style, format, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/basedpyright --pythonpath $(BIN)/python --warnings

docs: $(VENV)/dev.stamp ## write what is generated: docs/variants.md, which.md, bugs.md, traps.md, what docs/notebooks/ prints, docs/pictures/, cases of docs/interactive/, type stubs
	$(BIN)/python tools/generate/bibliography.py
	PYTHONPATH=.:tools/studies $(BIN)/python tools/generate/make_docs.py
	$(BIN)/python tools/generate/make_notebooks.py
	PYTHONPATH=. $(BIN)/python tools/generate/make_pictures.py
	$(BIN)/python tools/generate/make_interactive.py
	$(BIN)/python tools/generate/make_stubs.py

site: $(VENV)/site.stamp ## build the site of the pages and the docstrings into build/site, without a network; warnings are errors
	rm -rf build/site build/doctrees
	$(BIN)/sphinx-build -q -W --keep-going -d build/doctrees docs build/site

site-test: site ## open every page of the site in a Chromium: errors, formulas, searches, links, widths; says if there is no browser
	$(BIN)/python tools/site/site_walk.py $(ARGS)

verdicts: $(VENV)/verdicts.stamp ## judge other libraries' attention and pooling; writes docs/verdicts.md
	PYTHONPATH=.:tools/studies:tools/generate $(BIN)/python tools/studies/make_verdicts.py $(ARGS)

bench: $(VENV)/bench.stamp ## time attnpool_flax beside the floor and other libraries; writes docs/performance.md
	$(BIN)/python -m bench $(ARGS)

accelerator: ## judge and time it on a GPU or TPU in 8 minutes, with the Python that is there; installs nothing
	$(PYTHON) -m bench.accelerator $(ARGS)

aot: $(AOT_VENV)/aot.stamp ## compile for a TPU and an H200 without one, compare costs with plain formulas; needs Python 3.12 and 2 GB
	$(AOT_VENV)/bin/python -m bench.aot $(ARGS)

dist: $(DIST_VENV)/dist.stamp ## build the wheel and the sdist, check both, run doctests of the one and tests of the other elsewhere; ARGS=--quick: no tests
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
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[peers]' $(PEERS)
	$(BIN)/python -m pip install --disable-pip-version-check --no-deps 'timm==1.0.31' # its layers alone, without torchvision
	touch $@ $(VENV)/dev.stamp $(VENV)/all.stamp

$(VENV)/examples.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[examples]'
	touch $@ $(VENV)/dev.stamp $(VENV)/all.stamp

$(VENV)/verdicts.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[verdicts]' $(PEERS)
	touch $@ $(VENV)/all.stamp

$(VENV)/site.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[site]'
	touch $@ $(VENV)/all.stamp

$(VENV)/bench.stamp: pyproject.toml | $(VENV)/bin/python
	$(BIN)/python -m pip install --disable-pip-version-check --editable '.[bench]' $(PEERS)
	touch $@ $(VENV)/all.stamp
