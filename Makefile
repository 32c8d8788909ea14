# Everything a fresh clone needs is made here: `make test` and `make book` set up .venv from requirements.lock by themselves.
PYTHON ?= python3
BIN = .venv/bin
READY = .venv/.ready

.PHONY: test book explorer reproduce bench lock lint format clean

test: $(READY) lint book
	$(BIN)/python -m pytest

# The book is built from a copy of its pages, with the executed notebooks in their place.
SOURCE = _build/source
NOTEBOOKS = $(wildcard notebooks/*.ipynb)

book: $(READY)
	rm -rf $(SOURCE) _build/html && mkdir -p $(SOURCE)/notebooks
	cp -r _config.yml _toc.yml book spaql $(SOURCE)
	@$(MAKE) --no-print-directory -j 2 $(addprefix $(SOURCE)/,$(NOTEBOOKS))
	$(BIN)/jupyter-book build $(SOURCE) --path-output . --all -W -n --keep-going
	@echo "The book: $(CURDIR)/_build/html/index.html"

$(SOURCE)/%.ipynb: %.ipynb
	$(BIN)/papermill $< $@ --cwd notebooks --no-progress-bar --log-level WARNING

# Everything but TRPO, which takes hours (spaql reproduce --study trpo), from nothing, beside what is stored; then it is
# compared with that.
reproduce: $(READY)
	rm -rf _build/reproduced
	$(BIN)/spaql reproduce --study xi --study long --study ablation --store _build/reproduced --against results
	$(MAKE) book

# The policies of the book's explorer, from the stored runs.
explorer: $(READY)
	$(BIN)/python -c 'from spaql.paper.book.explorer import paper_policies, write; write("book/explorer/policies.js", paper_policies())'

bench: $(READY)
	$(BIN)/spaql bench

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(READY)
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

$(READY): requirements.lock pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 11) else "Python 3.11 or newer is needed: make PYTHON=...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --requirement requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	touch $@

# Resolves pyproject.toml's requirements anew, and writes the pins where they stand: the lock and the conda environment.
lock:
	rm -rf .venv && $(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade setuptools
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[cluster,trpo,test,book]'
	$(BIN)/python -m pip freeze --all --exclude-editable --exclude pip \
		| sed -e 's/+cpu$$//' | LC_ALL=C sort -f > requirements.lock
	{ sed '/^      - /d' environment.yml; sed 's/^/      - /' requirements.lock; } > environment.tmp
	mv environment.tmp environment.yml
	touch $(READY)

clean:
	rm -rf .venv _build spaql/__pycache__ .pytest_cache .ruff_cache .hypothesis
