# `make` alone lists the targets. Each sets up what it needs in .venv.
PYTHON ?= python3
BIN := .venv/bin
OUTPUT ?= demo-output

# Two cores are not fought over: one thread for each of XLA and BLAS in every worker.
ONE_THREAD := --xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1
QUIET := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 XLA_FLAGS="$(ONE_THREAD)" JAX_PLATFORMS=cpu
# glibc gives arrays above 32 MB back to the system at once, and asking for them again costs more than filling them.
KEEP_MEMORY := MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=17179869184 MALLOC_TOP_PAD_=268435456
# Tests compile much and run little, so they compile without optimization; workers, later runs and other clones on this
# machine share compiled functions.
COMPILED := $(or $(XDG_CACHE_HOME),$(if $(HOME),$(HOME),$(CURDIR))/.cache)/rdgp/tests-$(shell uname -n)
QUICK := OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1 JAX_PLATFORMS=cpu \
	XLA_FLAGS="$(ONE_THREAD) --xla_cpu_use_fusion_emitters=false --xla_backend_optimization_level=0" \
	JAX_COMPILATION_CACHE_DIR="$(COMPILED)" JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS=0 \
	JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES=-1

.DEFAULT_GOAL := help
.PHONY: help demo picture test check format bench steps quality depth winds clean

help:  ## List the targets
	@sed -n 's/^\([a-z]*\):.*## /  make \1	/p' Makefile

demo: .venv/.cli  ## Fit real winds along a satellite track, shallow and deep, and draw them
	$(BIN)/rdgp demo --output $(OUTPUT) --force

picture: .venv/.plot  ## Fit a posterior on the sphere and draw it
	$(BIN)/python examples/posterior_on_the_sphere.py $(OUTPUT)

test: .venv/.dev  ## Run all tests
	@mkdir -p "$(COMPILED)" && find "$(COMPILED)" -type f -mtime +14 -delete || true
	$(QUICK) $(BIN)/python -m pytest -n 2 --dist loadgroup --max-worker-restart 0 -q

check: .venv/.dev  ## Lint, formatting, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python tools/architecture.py

format: .venv/.dev  ## Fix formatting and simple lint
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/.bench  ## Print the table of speeds, as ratios
	$(QUIET) $(KEEP_MEMORY) $(BIN)/python benchmarks/foundation.py
	$(QUIET) $(KEEP_MEMORY) $(BIN)/python benchmarks/deep.py

steps: .venv/.dev  ## Compare steps with those of another checkout, at OLD
	$(QUIET) $(KEEP_MEMORY) $(BIN)/python benchmarks/steps.py $(OLD)

quality: .venv/.dev  ## Print how well deep models predict (needs RDGP_DATA)
	$(QUIET) $(KEEP_MEMORY) $(BIN)/python -m rdgp_paper.benchmarks.quality

depth: .venv/.dev  ## Compare shallow and deep default fits on twenty data sets (needs RDGP_DATA)
	$(QUIET) $(KEEP_MEMORY) $(BIN)/python -m rdgp_paper.benchmarks.depth

winds: .venv/.dev  ## Compare models of winds at four heights, run by run (needs RDGP_DATA)
	$(QUIET) $(KEEP_MEMORY) $(BIN)/python -m rdgp_paper.benchmarks.winds --folder docs

clean:  ## Remove the environment and caches
	rm -rf .venv .mypy_cache .ruff_cache .hypothesis "$(COMPILED)" demo-output

.venv/bin/python:
	$(PYTHON) -m venv .venv

.venv/.plot: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[plot]"
	@touch $@

.venv/.cli: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[cli]"
	@touch $@ .venv/.plot

.venv/.dev: .venv/bin/python pyproject.toml constraints.txt
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev]"
	@touch $@ .venv/.plot .venv/.cli

.venv/.bench: .venv/.dev
	$(BIN)/python -m pip install --quiet -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet -c constraints.txt -e ".[dev,bench]"
	@touch $@
