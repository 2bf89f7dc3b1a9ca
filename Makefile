# The two commands a newcomer needs: `make demo` and `make test`. Everything is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

# West Nile virus by codons, as docs/time-trees.md says; goes on where it was stopped.
WNV ?= wnv-output/wnv
CARNIVORES ?= carnivores-output/carnivores
.PHONY: demo wnv carnivores test test-slow lint docs bench clean

$(VENV)/.installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "phloem needs Python 3.11 or newer; call: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)"; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test,plot,ui]'
	@touch $@

# Only where PHLOEM_TEST_GPU=1 asks for the Triton kernels in Triton's interpreter, which needs no GPU.
$(VENV)/.installed-triton: $(VENV)/.installed-test
	$(BIN)/python -m pip install --quiet --disable-pip-version-check torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check 'triton==3.9.*'
	@touch $@

ifeq ($(PHLOEM_TEST_GPU),1)
TEST_READY := $(VENV)/.installed-triton
else
TEST_READY := $(VENV)/.installed-test
endif

demo: $(VENV)/.installed
	@mkdir -p demo-output
	$(BIN)/phloem mcmc examples/primates.nex --model GTR+G4 --seed 1 --prefix demo-output/primates --redo

wnv: $(VENV)/.installed
	@mkdir -p $(dir $(WNV))
	$(BIN)/phloem time examples/west_nile.fasta.gz --datatype codon --sites 1-11028 --stop-codons mask \
	  --ambiguity missing --dates examples/west_nile.dates.tsv --model GY94+FO+G4 --gamma median \
	  --clock ucln --clock-sd cv --tree-prior skyline --pieces 10 \
	  --prior clock_rate='exponential(3)' --prior clock_cv='exponential(1)' --prior kappa=jeffreys \
	  --prior omega=jeffreys --prior alpha='exponential(2)' --prior frequencies='dirichlet(1)' --prior pop_size_1=jeffreys \
	  --runs 2 --sample-every 4000 --device auto --prefix $(WNV)

# GTR+G4 and a relaxed clock on the carnivores (docs/validation.md); resumed where it was stopped.
carnivores: $(VENV)/.installed
	@mkdir -p $(dir $(CARNIVORES))
	$(BIN)/phloem time examples/carnivores.fasta.gz --model GTR+FO+G4 --clock ucln --tree-prior yule \
	  --prior clock_rate=1 --generations 10000000 --warm-up 0.05 --sample-every 400 --check-every 20000 \
	  --runs 2 --prefix $(CARNIVORES)
	$(BIN)/python benchmarks/carnivores_clades.py $(CARNIVORES) --burn-in 0.05

test: $(TEST_READY)
	$(BIN)/python -m pytest -m 'not slow' -n 2 --dist worksteal

test-slow: $(TEST_READY)
	$(BIN)/python -m pytest -m slow -n 2

lint: $(VENV)/.installed-test
	$(BIN)/ruff check src tests benchmarks
	$(BIN)/ruff format --check src tests benchmarks
	$(BIN)/mypy

# The documentation as a site, in site/.
docs: $(VENV)/.installed-test
	$(BIN)/python -m mkdocs build --strict

bench: $(VENV)/.installed-test
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) demo-output site .pytest_cache .mypy_cache .ruff_cache
