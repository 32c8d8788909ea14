# Everything a fresh clone needs is made here: `make test` and `make book` set up .venv from requirements.lock by themselves.
PYTHON ?= python3
BIN = .venv/bin
INSTALL = $(BIN)/python -m pip --disable-pip-version-check install --quiet --no-compile
# uv installs a lock in a fraction of pip's time; where it cannot, since it does not read pip's settings, pip does.
UV_VERSION = 0.13.7
HASHED = --quiet --no-deps --only-binary :all: --require-hashes --requirement
FROM = $(BIN)/uv pip install --python $(BIN)/python $(HASHED) $(1) || $(INSTALL) $(HASHED) $(1)
LOCKED = .venv/.locked
READY = .venv/.ready
TESTING = .venv/.testing
TRPO = .venv/.trpo
# How many notebooks or files of tests run at once: one on each core, as far as there are 2 GB of memory for each.
CORES = $(shell $(PYTHON) -c 'import os; memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"); \
	print(max(1, min(os.cpu_count() or 1, memory // 2_000_000_000)))')

# Bytecode is kept even where the surroundings say otherwise: without it each of the many processes that tests and notebooks
# start would compile all that it imports, for some ten seconds.
unexport PYTHONDONTWRITEBYTECODE

# One thread for NumPy's matrices in each of the processes that run side by side. Each would start one per core otherwise,
# these would wait for each other, and a chapter that plays networks would take twice as long.
book test test-all: export OMP_NUM_THREADS = 1

.PHONY: test test-all bookless book lab explorer reproduce bench venv lock lint format clean

# One process more than cores: many tests wait for a browser, or for a program that they start.
PYTEST = $(BIN)/python -m pytest --numprocesses $$(($(CORES) + 1)) --no-loadscope-reorder
# All other tests need no book. They run while it is made, on what that leaves of the cores.
BOOKISH = tests/paper/test_book.py

test:
	@$(MAKE) --no-print-directory -j $(CORES) JOBS= lint bookless book
	$(PYTEST) --dist worksteal $(BOOKISH)

# The long tests too, weekly and before a release.
test-all: export SPAQL_FAULTS = 200
test-all: export PYTEST_ADDOPTS = -m ""
test-all: $(TRPO) test

bookless: $(TESTING)
	@mkdir -p _build
	@nice $(PYTEST) --dist loadfile --ignore=$(BOOKISH) > _build/tests.log 2>&1; found=$$?; cat _build/tests.log; exit $$found

# The book is built from a copy of its pages, with the executed notebooks in their place.
SOURCE = _build/source
# The last ones take longest, so they are begun first: none of them runs on alone at the end.
NOTEBOOKS = $(shell ls -r notebooks/*.ipynb)
JOBS = -j $(CORES)

# What a notebook of the book computes goes to a folder of its own, where a test sees that it is nothing.
book: export SPAQL_RUNS = $(CURDIR)/_build/computed
book: $(READY)
	rm -rf $(SOURCE) _build/html _build/computed && mkdir -p $(SOURCE)/notebooks
	cp -r _config.yml _toc.yml book spaql $(SOURCE)
	@$(MAKE) --no-print-directory $(JOBS) $(addprefix $(SOURCE)/,$(NOTEBOOKS))
	$(BIN)/jupyter-book build $(SOURCE) --path-output . --all -W -n --keep-going
	@echo "The book: $(CURDIR)/_build/html/index.html"

# Without a grammar of addresses that takes two seconds to import, and no notebook has any.
PAPERMILL = $(BIN)/python -c 'import sys; sys.modules["rfc3987_syntax"] = None; from papermill.cli import papermill; papermill()'

$(SOURCE)/%.ipynb: %.ipynb
	@echo "papermill $<"
	@$(PAPERMILL) $< $@ --cwd notebooks --no-progress-bar --log-level WARNING

# The paper's runs and the ablation, but not TRPO, which takes hours (spaql reproduce --study trpo), from nothing, beside
# what is stored; then it is compared with that.
reproduce: $(READY)
	rm -rf _build/reproduced
	$(BIN)/spaql reproduce --study xi --study long --study ablation --store _build/reproduced --against results
	$(MAKE) book

# The policies of the book's explorer: those of the stored runs, SPAQL-R's, and a few more that it trains.
explorer: $(READY)
	$(BIN)/python -c 'from spaql.paper.book.explorer import book_policies, write_policies; write_policies("book/explorer/policies.js", book_policies())'

bench: $(READY)
	$(BIN)/spaql bench

lint: $(TESTING)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(TESTING)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The same environment in JupyterLab, to change the notebooks by hand.
lab: $(READY)
	$(BIN)/jupyter lab notebooks

venv: $(READY)

# The environment starts empty whenever the lock has changed, so that it never holds what the lock no longer names. Only
# wheels are taken: where a package has none, as numba on Intel Macs, pip says so at once and does not try to compile it.
# Bytecode is left to the first import, for most of what is installed is never imported: it would be a fifth of the size.
$(LOCKED): requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=...")'
	@$(PYTHON) -m venv --clear .venv || { echo "$(PYTHON) cannot make a virtual environment." \
		"On Debian and Ubuntu that needs a package: apt install python3-venv" >&2; exit 1; }
	-$(INSTALL) --only-binary :all: uv==$(UV_VERSION)
	$(call FROM,requirements.lock)
	@touch $@

$(READY): $(LOCKED) pyproject.toml
	$(INSTALL) --no-deps --no-build-isolation --editable .
	@touch $@

$(TESTING): $(READY) requirements-test.lock
	$(call FROM,requirements-test.lock)
	@touch $@

# Only the long tests that train TRPO need torch, and for Linux PyPI has nothing but its CUDA build, gigabytes without any use
# here. So on Linux the version is asked for as "+cpu", a name that only CPU builds have: where pip knows of none it says
# no without downloading anything, and the tests are skipped. For macOS every build is a CPU build.
CPU = $(if $(filter Linux,$(shell uname)),+cpu)
$(TRPO): $(TESTING) requirements-torch.txt requirements-trpo.lock
	@if $(BIN)/python -c 'import importlib.util as util, sys; sys.exit(util.find_spec("torch") is None)' \
		|| $(INSTALL) --no-deps --only-binary :all: "$$(cat requirements-torch.txt)$(CPU)" 2> .venv/torch.log; \
	then { $(call FROM,requirements-trpo.lock); } && touch $@; \
	else echo "pip finds no CPU build of torch (.venv/torch.log), so the tests that train TRPO will be skipped. To get one:" && \
		sed -n 's/^\(.*download.pytorch.org.*\)$$/    \1/p' README.md; fi

# Writes the locks from pyproject.toml: what the book needs, what the tests need beyond that, and what TRPO needs beyond
# both. Pins that still fit stay, since the stored results were computed with them; UPGRADE=--upgrade takes the newest
# ones, UPGRADE="--upgrade-package ruff" the newest of one package. --python-version is the oldest that pyproject.toml
# admits, so no pin needs a later patch release of it. What torch needs is resolved as on a Mac, where no CUDA package is
# among it; on Linux it is the same without them.
UPGRADE =
UV = _build/lock/bin/uv pip compile --quiet --python-version 3.11 --only-binary :all: --no-annotate --no-header
BOOK = --extra paper --extra book
# Prints the pins of the second file that the first one names too (keep=1) or does not name (keep=0).
PINS = awk -F == 'NR == FNR { named[$$1]; next } /==/ { kept = ($$1 in named) == keep } /^[^\#]/ && kept'
lock:
	rm -rf _build/lock && $(PYTHON) -m venv _build/lock
	_build/lock/bin/python -m pip install --quiet --only-binary :all: uv==$(UV_VERSION)
	cat requirements.lock requirements-test.lock > _build/lock/all
	cp requirements-trpo.lock _build/lock/trpo
	echo setuptools | $(UV) --universal --fork-strategy fewest --generate-hashes $(UPGRADE) $(BOOK) --extra test \
		--extra cluster pyproject.toml - --output-file _build/lock/all
	echo setuptools | $(UV) --universal $(BOOK) pyproject.toml - --constraint _build/lock/all | sed 's/ .*//' > _build/lock/book
	MACOSX_DEPLOYMENT_TARGET=14.0 $(UV) --python-platform aarch64-apple-darwin --generate-hashes $(UPGRADE) --extra trpo \
		pyproject.toml requirements-torch.txt --constraint _build/lock/all --no-emit-package torch \
		--output-file _build/lock/trpo
	{ echo '# Written by `make lock`. What the book needs.'; $(PINS) keep=1 _build/lock/book _build/lock/all; } > requirements.lock
	{ echo '# Written by `make lock`. What the tests need beyond requirements.lock.'; \
		$(PINS) keep=0 _build/lock/book _build/lock/all; } > requirements-test.lock
	{ echo '# Written by `make lock`. What TRPO needs beyond both, all but torch itself.'; \
		$(PINS) keep=0 _build/lock/all _build/lock/trpo; } > requirements-trpo.lock

clean:
	rm -rf .venv _build .pytest_cache .ruff_cache .mypy_cache .hypothesis
	find spaql tests -name __pycache__ -prune -exec rm -rf {} +
