# Everything a fresh clone needs: `make book` and `make test` first install requirements.lock into .venv.
PYTHON ?= python3
BIN = .venv/bin
# uv installs in 20 seconds what takes pip three minutes; where there is none, pip does it.
INSTALL = $(BIN)/uv pip install --quiet --compile-bytecode --python $(BIN)/python $(1) || $(BIN)/python -m pip install --quiet $(1)
READY = .venv/.ready
SOURCE = _build/source
# Notebooks or tests at a time, each of which may need 1 GB of memory, and has one thread for matrices.
JOBS ?= 3
PYTEST = $(BIN)/python -m pytest --numprocesses $(JOBS) --dist loadfile
export OMP_NUM_THREADS = 1
unexport PYTHONDONTWRITEBYTECODE  # or each process compiles its imports anew, which takes four times as long

.PHONY: setup book test test-all reproduce anew bench lint lock

setup: $(READY)

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv --clear .venv
	-$(BIN)/python -m pip install --quiet uv==0.13.7
	$(call INSTALL,--no-deps --only-binary :all: --require-hashes --requirement requirements.lock)
	$(call INSTALL,--no-deps --no-build-isolation --editable .)
	touch $@

# The book is built from a copy of its pages, with the executed notebooks in the place of the notebooks.
book: export SPAQL_NUMBERS = $(CURDIR)/_build/numbers
book: setup
	rm -rf $(SOURCE) _build/html _build/numbers && mkdir -p $(SOURCE)/notebooks
	cp -R _config.yml _toc.yml book tests $(SOURCE)
	ls -r notebooks/*.ipynb | xargs -P $(JOBS) -I {} \
		$(BIN)/spaql run {} --output $(SOURCE)/{}
	$(BIN)/jupyter-book build $(SOURCE) --path-output . --all -W -n --keep-going
	@echo "The book: $(CURDIR)/_build/html/index.html"

test: lint book
	$(PYTEST)

# The long ones too: faults by the hundred, clusters that lose workers, training TRPO, wheels.
test-all: export SPAQL_FAULTS = 200
test-all: lint book
	{ $(call INSTALL,--requirement requirements-trpo.txt); } || echo "No CPU build of torch: see requirements-trpo.txt"
	$(PYTEST) -m ""

reproduce: anew book
anew: setup
	$(BIN)/spaql reproduce

bench: setup
	$(BIN)/spaql bench

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# Pins that still fit stay; UPGRADE=--upgrade takes the newest ones.
lock: setup
	$(BIN)/uv pip compile --universal --python-version 3.11 --only-binary :all: --generate-hashes --no-annotate --no-header \
		--quiet $(UPGRADE) --extra book --extra cluster --extra test --output-file requirements.lock pyproject.toml
