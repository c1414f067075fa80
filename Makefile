# A machine with Python >= 3.10 (with venv) and make is enough; everything else is installed into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/.installed

.PHONY: resemblance site test-site wheel onefile fleet-unit looks recording data replay-tables quick faults flushes docs tutorial fleet fleet-demo fleet-slurm fleet-sshd test-install fuzz gpu bench-static help demo demo-real pictures test test-long test-conda test-projects test-notebook test-locks test-real lint bench bench-diagnosis bench-repair clean

help:
	@echo "make demo       a small broken environment, diagnosed, repaired and undone (no GPU, no torch)"
	@echo "make demo-real  the same on real torch (some GB from your default index)"
	@echo "make docs       the documentation, in build/site: pages made from playbooks and code, every link followed"
	@echo "make site       that, and beside it the page that diagnoses a pasted log in the browser (node and npm; package indexes once)"
	@echo "make tutorial   docs/tutorial.md from a run of all its commands"
	@echo "make recording  a recording like that in README, of a session in a real terminal, in build"
	@echo "make pictures   the pictures in README, of the real app on a really broken environment"
	@echo "make looks      every screen in three sizes and the colours of three kinds of terminals, in build/looks (minutes)"
	@echo "make quick      linters, types, import contracts and the tests nearest to what the branch changes (two minutes)"
	@echo "make test       linters, types, import contracts and tests"
	@echo "make test-long  the repairs, kills and installs for which others stand in make test (a quarter of an hour)"
	@echo "make test-conda repairs of conda environments before real conda as referee (minutes)"
	@echo "make test-projects  repairs in projects of the real poetry and PDM, which judge them (a minute, and a package index once)"
	@echo "make test-notebook  the magics of notebooks in a real Jupyter kernel (a minute, and a package index once)"
	@echo "make test-site  that page in a headless Chromium: its answers, its size, and that nothing leaves it (minutes)"
	@echo "make fleet      repairs of many machines by real Ansible, and by Slurm after make fleet-slurm, and 200 fleets of 1,000"
	@echo "                machines on a model of the engine (half an hour; a package index once)"
	@echo "make fleet-slurm Debian's Slurm for these tests, below build/ (as root on Debian; a minute)"
	@echo "make fleet-sshd Debian's sshd for the test over real SSH, which runs as root, below build/"
	@echo "make fleet-unit one file of envmedic and uv for the machines of a fleet, dist/envmedic-node.pex, or with a Python of its own"
	@echo "                from UNIT_ARCHIVE (a package index once)"
	@echo "make fleet-demo a small real fleet by Ansible, with a machine killed in the middle of its repair (minutes; a package index once)"
	@echo "make test-locks every environment that a test repairs, made again from its locks (most of an hour)"
	@echo "make test-install  wheel and source archive installed by uv tool and pipx on every Python that is here (minutes)"
	@echo "make onefile    envmedic with its libraries as one file, dist/envmedic.pex (a package index once)"
	@echo "make test-real  repairs of real torch environments (some GB)"
	@echo "make gpu        checks seen to fail, and genuine faults repaired, on an NVIDIA GPU (GPU_PREFIX: an environment with torch)"
	@echo "make faults     SIGKILL, full disks, failing calls, networks, installers, file systems (as root; hours)"
	@echo "make flushes    a power cut at every flush of a virtual machine's disk (as root, with qemu; half an hour)"
	@echo "make data       the compatibility tables, from the default index and tests/tables/documents.json (at most 300 requests),"
	@echo "                and the wheel envmedic-data of them in dist"
	@echo "make replay-tables  what tables cut off at each of the last eight torch releases answer about the next one"
	@echo "make bench      ratios of clone, probe, overhead, reading logs and the terminal UI"
	@echo "make bench-diagnosis  how many reports of a labelled corpus are diagnosed rightly (ENVMEDIC_CORPUS)"
	@echo "make resemblance  the classifier that guesses by words, from labelled TEXTS, and what it is worth"
	@echo "make bench-static  verdicts on compiled files against the real loader (several GB)"
	@echo "make fuzz       readers of what strangers write, given mutated real files: what was tried, and what was read wrongly"
	@echo "make bench-repair  real environments, projects and conda prefixes broken in a hundred ways and in stacks of them, repaired, judged, undone and redone (some GB, hours)"

$(INSTALLED): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "envmedic needs Python 3.10 or newer; set PYTHON=/path/to/python3")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

# As the wheel holds them: else each new home that a test makes would validate all playbooks, for five seconds
COMPILED := build/compiled.xz
$(COMPILED): $(INSTALLED) $(wildcard playbooks/*.yaml) $(shell find envmedic/model envmedic/playbook -name '*.py')
	$(BIN)/python -m envmedic.playbook.compiled $@

demo: $(COMPILED)
	$(BIN)/python -m tests.demo

demo-real: $(COMPILED)
	$(BIN)/python -m tests.demo --real

$(VENV)/.docs: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

docs: $(VENV)/.docs
	$(BIN)/python -m tests.docs.tutorial --check
	$(BIN)/python -m mkdocs build

site: docs
	$(BIN)/python -m tests.docs.paste.bundle

test-site: site $(COMPILED)
	ENVMEDIC_TEST_SITE=1 $(BIN)/python -m pytest -m site tests/docs/paste

tutorial: $(COMPILED)
	$(BIN)/python -m tests.docs.tutorial

pictures: $(COMPILED)
	$(BIN)/python -m tests.pictures

looks: $(COMPILED)
	$(BIN)/python -m tests.tui.looks $(LOOKS)

recording: $(COMPILED)
	$(BIN)/python -m tests.recording

lint: $(INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Other revisions, or the choice alone: make quick QUICK="--since HEAD~3 --list"
quick: lint $(COMPILED)
	$(BIN)/python -m tests.quick $(QUICK)

test: lint $(COMPILED)
	$(BIN)/python -m compileall -q envmedic tests # read even where PYTHONDONTWRITEBYTECODE keeps runs from writing it
	$(BIN)/python -m pytest -n auto

test-long: $(COMPILED)
	ENVMEDIC_TEST_LONG=1 $(BIN)/python -m pytest -n auto -m long

test-conda: $(COMPILED)
	ENVMEDIC_TEST_CONDA=1 ENVMEDIC_TEST_LONG=1 $(BIN)/python -m pytest -n auto -m conda

# PDM 2.29 does not start with newer releases of these two
TOOLS := build/project-tools
$(TOOLS)/.made:
	$(BIN)/uv venv --quiet $(TOOLS)/poetry && $(BIN)/uv pip install --quiet --python $(TOOLS)/poetry/bin/python 'poetry>=2' poetry-plugin-export
	$(BIN)/uv venv --quiet $(TOOLS)/pdm && $(BIN)/uv pip install --quiet --python $(TOOLS)/pdm/bin/python 'pdm>=2.20' 'hishel<2' 'unearth<0.19'
	touch $@

test-projects: $(COMPILED) $(TOOLS)/.made
	ENVMEDIC_TEST_PROJECTS=1 $(BIN)/python -m pytest -n auto -m projects tests/projects tests/gallery

NOTEBOOK := build/notebook-tools
$(NOTEBOOK)/.made:
	$(BIN)/uv venv --quiet --python $(BIN)/python $(NOTEBOOK) && $(BIN)/uv pip install --quiet --python $(NOTEBOOK)/bin/python nbclient
	touch $@

test-notebook: $(COMPILED) $(NOTEBOOK)/.made
	ENVMEDIC_TEST_NOTEBOOK=1 $(BIN)/python -m pytest -m notebook tests/notebook

# Ansible, and fusepy, in a virtual environment of their own: tests find them there
FLEET_TOOLS := build/fleet-tools
$(FLEET_TOOLS)/.made: $(INSTALLED)
	$(BIN)/uv venv --quiet --clear $(FLEET_TOOLS) && $(BIN)/uv pip install --quiet --python $(FLEET_TOOLS)/bin/python 'ansible-core>=2.16' fusepy
	touch $@

fleet: $(COMPILED) $(FLEET_TOOLS)/.made
	ENVMEDIC_TEST_FLEET=1 ENVMEDIC_TEST_LONG=1 $(BIN)/python -m pytest -n auto tests/fleet tests/witness tests/cli/test_fleet.py tests/cli/test_class_plans.py

fleet-slurm:
	mkdir -p build
	unshare -m bash tests/fleet/slurm.sh $(CURDIR)/build/fleet-slurm

# Debian's sshd for these tests, unpacked and not installed
fleet-sshd:
	rm -rf build/fleet-sshd && mkdir -p build/fleet-sshd
	cd build/fleet-sshd && apt-get download -q openssh-server libwrap0 && for file in *.deb; do dpkg-deb -x "$$file" .; done

fleet-demo: $(COMPILED) $(FLEET_TOOLS)/.made
	$(BIN)/python -m tests.fleet.demo

test-install: $(INSTALLED)
	$(BIN)/python -m tests.install

wheel: $(INSTALLED)
	rm -rf build/wheel && $(BIN)/uv build --quiet --wheel --out-dir build/wheel .

# The core in one file, with its libraries; ONEFILE=repair,mcp takes the extras too. For this Python and machine.
ONEFILE ?=
onefile: wheel
	mkdir -p dist && $(BIN)/uv tool run --quiet --from 'pex>=2.33' pex --resolver-version pip-2020-resolver \
	    "envmedic$(if $(ONEFILE),[$(ONEFILE)]) @ file://$$(echo $(CURDIR)/build/wheel/*.whl)" -c envmedic -o dist/envmedic.pex
	dist/envmedic.pex --version

# One file for the machines of a fleet: the core and uv, for each Python that is named, or with a Python of its own from an archive
UNIT_PYTHONS ?= $(PYTHON)
fleet-unit: wheel
	$(BIN)/python -m tests.fleet.unit build/wheel/*.whl $(addprefix --python ,$(UNIT_PYTHONS)) \
	    $(addprefix --machine ,$(UNIT_MACHINE)) $(addprefix --archive ,$(UNIT_ARCHIVE)) $(addprefix --sha256 ,$(UNIT_SHA256))

test-locks: $(COMPILED)
	ENVMEDIC_TEST_LOCKS=1 ENVMEDIC_TEST_CONDA=1 ENVMEDIC_TEST_LONG=1 $(BIN)/python -m pytest -n auto --timeout 900 tests/envs tests/conda/test_repairs.py

test-real: $(INSTALLED)
	ENVMEDIC_TEST_REAL=1 $(BIN)/python -m pytest -m real_torch

# Needs an NVIDIA GPU and a healthy environment with a CUDA build of torch; without a GPU it says so and ends well.
GPU_PREFIX ?= $(shell $(PYTHON) -c 'import sys; print(sys.prefix)')
GPU_JOBS ?= 1
gpu: $(INSTALLED)
	$(BIN)/python -m tests.gpu --prefix $(GPU_PREFIX) --jobs $(GPU_JOBS)

# What was tried is kept in .faults, and a second run goes on from there.
FAULTS := turns limits children memory calls clocks network installers filesystems powercut renames additions sharing state mutations
faults: $(INSTALLED)
	@mkdir -p .faults
	$(BIN)/python -m tests.faults --part sigkill --resume .faults/sigkill
	$(BIN)/python -m tests.faults $(addprefix --part ,$(FAULTS)) --resume .faults/tried.jsonl

# As root, on Debian, with qemu-system-x86, qemu-system-common and busybox-static; the kernel is fetched as a package.
flushes: $(INSTALLED)
	@mkdir -p .faults/kernel
	@cd .faults/kernel && { test -d boot || { apt-get download -q \
	    "$$(apt-cache depends --important linux-image-cloud-amd64 | sed -n 's/.*Depends: //p')" && dpkg-deb -x ./*.deb .; }; }
	ENVMEDIC_TEST_KERNEL=.faults/kernel $(BIN)/python -m tests.faults --part flushes --resume .faults/flushes.jsonl

# The tables, and the wheel of them. DATA=--offline asks nothing; DATA='--listing NAME=URL' records the files of torch on another index
data: $(INSTALLED)
	$(BIN)/python -m tests.tables --wheel dist $(DATA)
	$(BIN)/python -m tests.docs # which has the days of the tables

# TEXTS: JSON lines with `text` and `labels`, which are other people's and no part of the project
resemblance: $(COMPILED)
	$(BIN)/uv pip install --quiet --python $(BIN)/python --group resemblance
	$(BIN)/python -m tests.resemblance $(TEXTS)

replay-tables: $(INSTALLED)
	$(BIN)/python -m tests.tables.replay

bench: $(INSTALLED)
	$(BIN)/python -m tests.bench

bench-diagnosis: $(INSTALLED)
	$(BIN)/python -m tests.bench.diagnosis

bench-static: $(INSTALLED)
	$(BIN)/python -m tests.bench.static_truth

# How long, and what: make fuzz FUZZ="--seconds 300 elf log"
FUZZ ?= --seconds 60
fuzz: $(INSTALLED)
	$(BIN)/python -m tests.fuzz $(FUZZ)

bench-repair: $(INSTALLED) $(TOOLS)/.made
	PATH="$(CURDIR)/$(TOOLS)/poetry/bin:$(CURDIR)/$(TOOLS)/pdm/bin:$$PATH" $(BIN)/python -m tests.gallery --stack 64 --light 32 $(GALLERY)

clean:
	rm -rf $(VENV) .demo .bench .real .gallery .faults .gpu .fuzz .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist
