# make lab: do the course.  make test: is it sound?  Everything else is for staff.
# Options: PYTHON=python3.12  PIP_ARGS=...  LAB_ARGS="--no-browser --port 9999"  TEST_ARGS=...
#          NIGHTLY_ARGS="--only 04_cos_chain_fusion"  GRADE_ARGS="--student ada --force"

PYTHON ?= python3
DAY := day1
READY := .venv/.ready

# nbgrader starts `alembic` by its bare name
export PATH := $(CURDIR)/.venv/bin:$(PATH)

.PHONY: setup lab test notebooks nightly grade clean

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "The course needs Python 3.11 or newer; $(PYTHON) is " + sys.version.split()[0] + ". Say which to use: make setup PYTHON=python3.12")'
	@test -x .venv/bin/python || $(PYTHON) -m venv .venv
	@echo "Installing into .venv; most of the time is downloads."
	@.venv/bin/python -m pip install -qq --disable-pip-version-check $(PIP_ARGS) -c constraints.txt -e ".[staff]"
	.venv/bin/brrr build
	@touch $(READY)

lab: setup
	@mkdir -p work/$(DAY)
	@for released in notebooks/$(DAY)/*.ipynb; do \
	  mine="work/$(DAY)/$${released##*/}"; \
	  if [ -e "$$mine" ]; then echo "kept your $$mine"; \
	  else cp "$$released" "$$mine" && echo "copied $$mine"; fi; \
	done
	cd work/$(DAY) && ../../.venv/bin/jupyter lab $(LAB_ARGS)

test: setup
	.venv/bin/python -m pytest $(TEST_ARGS)

notebooks: setup
	.venv/bin/brrr build

nightly: setup
	.venv/bin/brrr nightly $(NIGHTLY_ARGS)

grade: notebooks
	.venv/bin/nbgrader autograde $(DAY) $(GRADE_ARGS)
	.venv/bin/nbgrader export
	@echo "Points: grades.csv. Reasons: autograded/LEARNER/$(DAY)/. Handed in again: GRADE_ARGS=--force"

# never the learner's work/, nor submitted/, autograded/, the gradebook or the environment
clean:
	rm -rf build dist *.egg-info nightly .pytest_cache .ruff_cache .import_linter_cache
	find helpers staff tests -name __pycache__ -type d -prune -exec rm -rf {} +
