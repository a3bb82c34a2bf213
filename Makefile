# maskwise: every target prepares what it needs by itself; `make` alone lists them.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo test test-vlm test-llm test-integrations test-web test-full lint docs notebooks bench bench-quick figures figures-docs nano finetuning reinforcement occlusion photo fuzz tree release-check clean

VENV := .venv
PY := $(VENV)/bin/python
LOGS := .cache/log
WEB := tests/web/node_modules
SECONDS ?= 60

# Measuring branches takes half as long again, so it is done on request: make test COVERAGE=1
COVERAGE ?=

# What an installation depends on: a change in any of these installs again.
KERNEL := $(wildcard src/maskwise/masks/*.c src/maskwise/masks/*.h)
RECIPE := pyproject.toml setup.py constraints.txt $(KERNEL)

# An interpreter named by the user is taken or refused; otherwise the first that is new enough.
ifeq ($(origin PYTHON),undefined)
PYTHON := python3
PYTHONS := python3 python3.13 python3.12 python3.11 python3.14 python
else
PYTHONS := $(PYTHON)
endif
SUITABLE := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))

# $(call quietly,what it does,name of the log,command): one line on the screen, the rest in the log.
define quietly
@mkdir -p $(LOGS); printf '%s ... (log: %s)\n' '$(1)' '$(LOGS)/$(2).log'; \
if ! { $(3); } >$(LOGS)/$(2).log 2>&1; then \
	tail -n 30 $(LOGS)/$(2).log; \
	printf 'failed: %s. The whole story is in %s\n' '$(1)' '$(LOGS)/$(2).log'; \
	exit 1; \
fi
endef

define INSTALL_CHROMIUM
$(call quietly,installing chromium,chromium,command -v chromium || { apt-get update && apt-get install -y chromium; })
endef

define INSTALL_POSTGRESQL
$(call quietly,installing PostgreSQL,postgresql,\
	ls /usr/lib/postgresql/*/bin/initdb || { apt-get update && apt-get install -y postgresql; })
endef

# $(call maskwise,arguments): show a command, then run it.
maskwise = @printf '\n$$ maskwise %s\n' '$(1)'; $(VENV)/bin/maskwise $(1)

help: ## list the targets
	@printf 'make TARGET, where TARGET is one of\n'
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  \1\t\2/p' Makefile
	@printf 'PYTHON=python3.12 chooses the interpreter (3.11 or newer) for the first installation.\n'

demo: $(VENV)/.installed-core ## evaluate the bundled model on the bundled benchmark and write a report to look at
	@rm -rf demo && mkdir -p demo
	$(call maskwise,eval world --model tiny --out demo/run)
	$(call maskwise,show world 1 --predictions demo/run/predictions.jsonl --out demo/example1.png)
	$(call maskwise,show world 60 --predictions demo/run/predictions.jsonl --out demo/example2.png)
	$(call maskwise,show world 121 --predictions demo/run/predictions.jsonl --out demo/example3.png)
	@printf '\nLook at demo/run/report.html in a browser, and at demo/example1.png, example2.png and example3.png.\n'
	@printf 'Next: maskwise ls models, maskwise ls benchmarks, maskwise eval --help, docs/guides/adapters.md for your own model.\n'

test: lint ## formatting, types and all tests but those of test-vlm, test-llm, test-integrations, test-web and test-full
	@printf 'testing ...\n'
	@$(PY) -m pytest --numprocesses auto --dist loadfile $(if $(COVERAGE),--cov --cov-report=) \
		-m 'not browser and not full and not integrations and not llm and not load and not vlm'
	@if [ -n '$(COVERAGE)' ]; then \
		printf 'coverage of lines and branches: %s %%\n' "$$($(PY) -m coverage report --format=total)"; \
	fi

test-vlm: $(VENV)/.installed-dev ## the slow tests of the vision-language model: several processes, Ray, learning
	@printf 'testing the vision-language model ...\n'
	@$(PY) -m pytest -m vlm tests/models/vlm tests/training

# Where they cannot be installed, the tests are skipped and say so.
test-llm: $(VENV)/.installed-dev ## judge and builder with a real language model (SmolLM2 by llama.cpp), in an environment of its own
	@mkdir -p $(LOGS); printf 'installing a language model ... (log: %s)\n' $(LOGS)/llm.log
	@$(PY) -m tests.llm.environment .cache/llm >$(LOGS)/llm.log 2>&1 || tail -n 5 $(LOGS)/llm.log
	@printf 'asking a language model ...\n'
	@$(PY) -m pytest -rs -m llm tests/llm

test-integrations: $(VENV)/.installed-dev ## maskwise inside lmms-eval, Weights & Biases and MLflow, in an environment of their own
	@mkdir -p $(LOGS); printf 'installing other tools ... (log: %s)\n' $(LOGS)/integrations.log
	@$(PY) -m tests.integrations.environment .cache/integrations >$(LOGS)/integrations.log 2>&1 || \
		tail -n 5 $(LOGS)/integrations.log
	@printf 'testing inside other tools ...\n'
	@$(PY) -m pytest -rs -m integrations tests/integrations

test-web: $(VENV)/.installed-dev $(WEB)/.installed ## scripts of the pages, the pages in a real browser, review under load; installs node, chromium and PostgreSQL (Debian)
	@printf 'checking the scripts of the pages ...\n'
	@npm --prefix tests/web run --silent lint
	@npm --prefix tests/web run --silent test
	$(INSTALL_CHROMIUM)
	$(INSTALL_POSTGRESQL)
	@printf 'testing the pages in a browser ...\n'
	@$(PY) -m pytest -m browser tests/server tests/test_figures.py
	@printf 'under load: fifty simulated reviewers while the server is killed three times, 24 requests of a large TIFF ...\n'
	@$(PY) -m pytest -s -m load tests/review tests/server

test-full: $(VENV)/.installed-dev ## long forms of tests: review with ten times the load; installs PostgreSQL (Debian); about 20 minutes
	$(INSTALL_POSTGRESQL)
	@$(PY) -m pytest -s -m full

lint: $(VENV)/.installed-dev ## formatting and types only
	@printf 'checking style and format ...\n'
	@$(PY) -m ruff check --quiet --output-format concise .
	@$(PY) -m ruff format --quiet --check . || { \
		printf 'these files are not formatted; run: $(PY) -m ruff format\n'; \
		$(PY) -m ruff format --check .; exit 1; }
	@$(VENV)/bin/clang-format --dry-run --Werror $(KERNEL) || { \
		printf 'run: $(VENV)/bin/clang-format -i src/maskwise/masks/*.[ch]\n'; exit 1; }
	@printf 'checking types ...\n'
	@$(PY) -m mypy

notebooks: $(VENV)/.installed-dev ## run the notebooks of examples/ and store their outputs
	@$(PY) -m docs.notebooks

docs: $(VENV)/.installed-docs ## the documentation site in build/site, offline, with search; broken links are errors
	@$(PY) -m docs.build build/site

bench: $(VENV)/.installed-bench ## measure the mask engine beside the public ones
	@$(PY) bench/run.py

bench-quick: $(VENV)/.installed-dev ## every section of `make bench` with small sizes, to see that it runs; part of `make test`
	@$(PY) bench/run.py --quick

figures: $(VENV)/.installed-core ## the metrics of the bundled model and its baselines on the world's test split
	@$(PY) bench/figures.py

figures-docs: $(VENV)/.installed-dev ## all images of the documents, PHOTOGRAPHS= folder of COCO val2017; installs chromium (Debian)
	$(INSTALL_CHROMIUM)
	@$(PY) -m docs.figures $(if $(PHOTOGRAPHS),--photographs $(PHOTOGRAPHS))

nano: $(VENV)/.installed-dev ## the metrics of a trained `nano` and its blind baselines on the world, CHECKPOINT= its folder
	@$(PY) -m bench.nano $(or $(CHECKPOINT),$(error CHECKPOINT= names the folder of a run of configs/vlm/nano.toml))

finetuning: $(VENV)/.installed-dev ## tiny and, with CHECKPOINT= its folder, nano before and after fine-tuning on questions of the recipe r2sm
	@$(PY) -m bench.finetuning $(if $(CHECKPOINT),--checkpoint $(CHECKPOINT))

reinforcement: $(VENV)/.installed-dev ## a nano before and after GRPO on held-out scenes, CHECKPOINT= its folder
	@$(PY) -m bench.reinforcement $(or $(CHECKPOINT),$(error CHECKPOINT= names the folder of a run of nano.toml or nano-short.toml))

occlusion: $(VENV)/.installed-dev ## amodal masks with and without the parts for occlusion, from the same start, CHECKPOINT= its folder
	@$(PY) -m bench.occlusion $(or $(CHECKPOINT),$(error CHECKPOINT= names the folder of a run of nano.toml or nano-short.toml))

photo: $(VENV)/.installed-core ## the metrics of the model for photographs and its controls, COCO=, REASONSEG=, COCOA= dataset folders
	@$(PY) -m bench.photo $(if $(COCO),--coco $(COCO)) $(if $(REASONSEG),--reasonseg $(REASONSEG)) $(if $(COCOA),--cocoa $(COCOA))

# The package is copied beside the instrumented kernel, so that nothing else can load by mistake.
fuzz: $(VENV)/.installed-dev ## damaged input for the C kernel (under sanitizers) and for all readers, SECONDS=60
	$(call quietly,building the kernel with the address and undefined-behaviour sanitizers,fuzz,\
		rm -rf .cache/fuzz && mkdir -p .cache/fuzz && cp -R src/maskwise .cache/fuzz/ && \
		rm -f .cache/fuzz/maskwise/masks/_kernel*.so && \
		MASKWISE_SANITIZE=1 $(PY) setup.py -q build_ext --build-lib .cache/fuzz --build-temp .cache/fuzz/objects && \
		ls .cache/fuzz/maskwise/masks/_kernel*.so)
	@printf 'fuzzing the kernel for %s seconds ...\n' $(SECONDS)
	@PYTHONPATH=.cache/fuzz PYTHONMALLOC=malloc LD_PRELOAD="$$($(CC) -print-file-name=libasan.so)" \
		ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
		$(PY) tests/fuzz/fuzz_kernel.py --seconds $(SECONDS)
	@printf 'fuzzing the readers for %s seconds ...\n' $(SECONDS)
	@$(PY) -m tests.fuzz.fuzz_readers --seconds $(SECONDS)

# Nothing is published. TAG=v0.1.0 is compared with the version; NEWEST=1 takes the newest dependencies, not the pins.
release-check: $(VENV)/.made ## build the distributions, check them, and install and use them outside the repository
	$(call quietly,installing the tools that build distributions,release,$(PY) -m release.environment .cache/release)
	@.cache/release/bin/python -m release.check --out dist $(if $(TAG),--tag $(TAG)) $(if $(NEWEST),--newest)

tree: $(VENV)/.installed-dev ## update the parts of the documents that are written from the code
	@$(PY) -m docs.generate

clean: ## remove the environment, caches and everything built
	rm -rf $(VENV) .cache build dist demo .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf src/maskwise.egg-info $(WEB)
	rm -f src/maskwise/masks/_kernel*.so
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.made:
	@for python in $(PYTHONS); do \
		if "$$python" -c '$(SUITABLE)' 2>/dev/null; then \
			mkdir -p $(LOGS); \
			printf 'making %s with %s ... (log: %s)\n' $(VENV) "$$("$$python" --version)" $(LOGS)/venv.log; \
			"$$python" -m venv --clear $(VENV) >$(LOGS)/venv.log 2>&1 && touch $@ && exit 0; \
			cat $(LOGS)/venv.log; exit 1; \
		fi; \
	done; \
	printf 'maskwise needs Python 3.11 or newer with the venv module; none among: %s\n' '$(PYTHONS)'; \
	printf 'Name one with  make PYTHON=/path/to/python3 ...  (Debian and Ubuntu: install python3-venv)\n'; \
	exit 1

# A kernel built from other sources must not outlive them, so it goes first.
$(VENV)/.installed-%: $(VENV)/.made $(RECIPE)
	$(call quietly,installing maskwise ($*),install-$*,\
		rm -f src/maskwise/masks/_kernel*.so && \
		$(PY) -m pip install --disable-pip-version-check --no-input -c constraints.txt -e ".$(EXTRA_$*)")
	@$(PY) -c 'from maskwise.masks import kernel_name; name = kernel_name(); \
		print("mask kernel:", name, "" if name == "c" else "(the C one was not built; see $(LOGS)/install-$*.log)")'
	@touch $@

# ESLint and jsdom, in the versions of the lock file.
$(WEB)/.installed: tests/web/package-lock.json
	$(call quietly,installing node,node,command -v npm || { apt-get update && apt-get install -y nodejs npm; })
	$(call quietly,installing ESLint and jsdom from npm,npm,npm ci --prefix tests/web)
	@touch $@

EXTRA_core :=
EXTRA_dev := [bench,dev,docs,grpo,llm,postgres,ray,release,train,vlm,web,webtest]
EXTRA_docs := [docs]
EXTRA_bench := [bench,vlm]
.PRECIOUS: $(VENV)/.made $(VENV)/.installed-%
