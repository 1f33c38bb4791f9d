# The thin face of the build: Meson and ninja do the work, the scripts in tools/ the rest.
# Works from any folder: make -C DIR, make -f DIR/Makefile. `make help` lists what there is.

# The folder of this file; it may hold spaces, which $(abspath) would split at.
ROOT := $(shell cd "$$(dirname "$$(printf '%s' '$(MAKEFILE_LIST)' | sed 's/^ //')")" && pwd)
PREFIX ?= /usr/local
DESTDIR ?=

# With STASIS_BUILD_DIR the programs in that folder are used as they are, and nothing is built.
ifdef STASIS_BUILD_DIR
BUILD := $(STASIS_BUILD_DIR)
READY :=
else
BUILD := $(ROOT)/build
READY := build
endif
RUN := "$(ROOT)/tests/run" --build-dir "$(BUILD)"

.DEFAULT_GOAL := build
.PHONY: build help deps deps-once demo test soak check-gpu lint format fuzz bench install clean criu gpu-bundle

build: ## compile everything into build/
	@"$(ROOT)/tools/build.sh" "$(ROOT)/build"

help: ## this list
	@sed -n 's/^\([a-z-]*\):.*## /  \1\t/p' "$(ROOT)/Makefile"

deps: ## install and download what building and testing need
	@"$(ROOT)/tools/deps.sh"

deps-once:
	@$(if $(STASIS_BUILD_DIR),:,"$(ROOT)/tools/deps.sh" --once)

demo: deps-once ## the whole round trip and both corruption cases, told step by step
	@$(if $(STASIS_BUILD_DIR),:,"$(ROOT)/tools/build.sh" --quiet "$(ROOT)/build")
	@"$(ROOT)/tools/demo.sh" "$(BUILD)"

test: deps-once ## every test that needs no GPU; T=name runs one (name, suite/name, or a pattern)
	@$(if $(STASIS_BUILD_DIR),:,"$(ROOT)/tools/build.sh" --quiet "$(ROOT)/build")
	@$(RUN) --exclude-suite gpu $(if $(T),--test '$(T)' --verbose) $(TEST_OPTIONS)

soak: $(READY) ## whole fault tables and cycles, cycles under sanitizers, every switch that breaks the simulator; hours
	@"$(ROOT)/tools/soak.sh" "$(BUILD)"

check-gpu: $(READY) ## the suites conformance and gpu on this machine's own driver
	@python3 "$(ROOT)/tools/check_gpu" "$(BUILD)" $(if $(T),--test '$(T)' --verbose) $(TEST_OPTIONS)

lint: ## format, clang-tidy, cppcheck, shellcheck, thread safety, include directions, text
	@"$(ROOT)/tools/lint.sh"

format: ## bring our C files into the project's format
	@"$(ROOT)/tools/lint.sh" format-fix

fuzz: ## fuzz the decoders for FUZZ_SECONDS each (default 60)
	@"$(ROOT)/tools/fuzz.sh"

bench: $(READY) ## the programs behind the figures that we publish
	@"$(ROOT)/tools/bench.sh" "$(BUILD)"

install: $(READY) ## install below PREFIX (default /usr/local), staged in DESTDIR
	@"$(ROOT)/tools/install.sh" "$(ROOT)" "$(PREFIX)" "$(DESTDIR)"

criu: ## unpack a current CRIU into .deps/criu
	@"$(ROOT)/tools/get-criu.sh"

gpu-bundle: ## a folder in .gpu/bundle that tests another machine's GPU without compiler or network
	@"$(ROOT)/tools/gpu-bundle.sh"

clean: ## remove what was built (.deps stays)
	@rm -rf "$(ROOT)/build" "$(ROOT)"/build-* "$(ROOT)/.gpu"
