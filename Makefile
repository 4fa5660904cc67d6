# Everything runs in .venv, made here from any Python >= 3.11. The two stamps only add packages
# to it, so `demo` and `test` share it in either order; a stamp goes stale with pyproject.toml.
PYTHON ?= python3
PY := .venv/bin/python

# One thread per test worker: two workers with threaded BLAS would fight over the cores.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1

# Bytecode is kept even where PYTHONDONTWRITEBYTECODE is set: without it both workers rewrite all
# assertions (9 CPU s each) and each process that a test starts compiles gramian again (0.8 CPU s).
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help demo test test-all test-portable coverage docs dist lint format clean
.NOTPARALLEL:
.DEFAULT_GOAL := help

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: .venv/.stamp-demo  ## run the demonstration; pictures go to demo_output/
	$(PY) examples/demo.py --out demo_output

test: lint  ## lint, type-check and test, without the slow tests
	$(ONE_THREAD) $(PY) -m pytest -n 2 -m "not slow"

test-all: lint  ## lint, type-check and test, with the slow tests
	$(ONE_THREAD) $(PY) -m pytest -n 2

test-portable: .venv/.stamp-test  ## the numerical tests with other BLAS kernels, threads and roundings
	$(PY) -m tests.portable

coverage: .venv/.stamp-test  ## all tests, a third slower, and the lines that they do not reach
	$(ONE_THREAD) $(PY) -m pytest -n 2 --cov --cov-report=term

docs: .venv/.stamp-docs  ## build the pages (docs/_build/html), gallery included, and run every doctest
	PATH="$(CURDIR)/.venv/bin:$$PATH" $(ONE_THREAD) $(PY) -m sphinx -W --keep-going -q -b html \
		-d docs/_build/doctrees docs docs/_build/html
	$(ONE_THREAD) $(PY) -m sphinx -q -b doctest -d docs/_build/doctrees docs docs/_build/doctest

dist: .venv/.stamp-dist  ## build wheel and sdist, check them, and run the README's first screen
	rm -rf dist build/bare
	$(PY) -m build --outdir dist .
	$(PY) -m twine check --strict dist/*
	$(PYTHON) -m venv build/bare
	build/bare/bin/python -m pip install --quiet "$$(ls dist/*.whl)[cli]"
	build/bare/bin/python tests/first_screen.py

lint: .venv/.stamp-test  ## style, banned phrases, import rules and types
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) -m tests.english
	.venv/bin/lint-imports
	$(PY) -m mypy

format: .venv/.stamp-test  ## rewrite the sources in the house style
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

clean:  ## remove everything made here, the environment too
	rm -rf .venv build dist demo_output .coverage .coverage.* .pytest_cache .ruff_cache \
		.mypy_cache .import_linter_cache .hypothesis docs/_build docs/gallery docs/api/generated
	find src tests benchmarks examples -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else \
		"gramian needs Python 3.11 or newer; name one with: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv .venv

.venv/.stamp-demo: pyproject.toml | .venv/bin/python
	$(PY) -m pip install --quiet -e '.[cli]'
	@touch $@

.venv/.stamp-test: pyproject.toml | .venv/bin/python
	$(PY) -m pip install --quiet -e '.[test,conic]'
	@touch $@

.venv/.stamp-dist: pyproject.toml | .venv/bin/python
	$(PY) -m pip install --quiet 'build>=1.2' 'twine>=6' 'hatchling>=1.27'
	@touch $@

.venv/.stamp-docs: pyproject.toml | .venv/bin/python
	$(PY) -m pip install --quiet -e '.[docs]'
	@touch $@
