# The commands of the project. Each target installs what is missing, then runs CMake and CTest: see HACKING.md.
.DEFAULT_GOAL := help
.PHONY: help demo test build install uninstall models gallery wheel test-wheel bench bench-peers format lint test-asan test-slow test-clang test-tsan test-arm64 test-windows test-everything fuzz fuzz-coverage differential clean
MAKEFLAGS += --no-print-directory

say = @printf '==> %s\n'
install = @scripts/install-dependencies
FUZZ_SECONDS ?= 60
CASES ?= 10000
PREFIX ?= /usr/local
SEED ?= 0

help: ## Say what there is to type
	@echo 'make TARGET, where TARGET is one of'
	@sed -n 's/^\([a-z0-9-]*\):.*## \(.*\)/  \1\t\2/p' Makefile | expand -t 18

# It is to be seen soon: with kernels for this machine alone, while `make build` compiles all.
demo: sets = $(shell scripts/instruction-sets)
demo: build ## Compute attention on a sentence and show it
	$(say) 'running build/release/heed demo'
	@build/release/heed demo
	@scripts/say-where build/release/heed

build: ## Build the command, build/release/heed
	$(install) build
	$(say) 'building build/release/heed'
	@cmake --preset release -DHEED_BUILD_TESTS=OFF -DHEED_BUILD_EXAMPLES=OFF -DHEED_INSTRUCTION_SETS=$(sets) --log-level=WARNING >/dev/null
	@cmake --build --preset release --target heed_command

# For packagers: CMake reads DESTDIR and puts it before PREFIX.
install: build ## Install the command, the library, its headers and the licence below PREFIX (/usr/local)
	$(say) 'installing heed below $(DESTDIR)$(PREFIX)'
	@cmake --install build/release --prefix '$(PREFIX)' >/dev/null
	@scripts/say-where '$(DESTDIR)$(PREFIX)/bin/heed'

uninstall: ## Remove what make install installed
	@cmake -D MANIFEST=build/release/install_manifest.txt -P cmake/HeedUninstall.cmake

models: ## Fetch two trained models into build/models: a BERT for sentences and a small Llama that answers; ARGS=gemma: a third
	$(install) python
	@scripts/fetch-models $(ARGS)

gallery: build ## Draw the pictures of docs/gallery anew
	$(say) 'drawing docs/gallery'
	@build/release/heed gallery docs/gallery --light

wheel: ## Build the Python package, a wheel in dist/
	$(install) wheel
	$(say) 'building the wheel'
	@rm -f dist/heed-*.whl
	@python3 -m venv build/wheel-venv
	@CXX=$${CXX:-c++} build/wheel-venv/bin/pip wheel --quiet --no-deps --wheel-dir dist --config-settings=cmake.define.HEED_WARNINGS_AS_ERRORS=ON .
	@scripts/inspect-wheel dist/heed-*.whl

test-wheel: wheel ## Install the wheel where there is NumPy alone, and use every part of it
	@scripts/test-wheel dist/heed-*.whl

# The preset keeps assertions, which check every index into a tensor; the release preset compiles them out.
test: ## Build and run every test, the comparison with PyTorch and those in a browser among them
	$(install) build test mpi python browser
	@scripts/install-python
	@scripts/build-and-test dev

test-asan: ## Run the tests under AddressSanitizer and UndefinedBehaviorSanitizer, compiled by Clang
	$(install) build test fuzz
	@scripts/build-and-test asan $(ARGS)

test-slow: test ## Run the tests that make test leaves out
	@ctest --preset slow

test-clang: ## Build attention with Clang, optimised as for users, and run its tests
	$(install) build test fuzz
	@scripts/build-and-test clang $(ARGS)

test-tsan: ## Run the tests under ThreadSanitizer
	$(install) build test
	@scripts/build-and-test tsan

test-everything: test lint test-asan test-clang test-arm64 test-windows test-slow test-tsan differential fuzz ## All of these, for hours

test-arm64: ## Build for 64-bit ARM and run the tests under qemu
	$(install) arm64
	@scripts/build-and-test arm64

test-windows: ## Build attention and files for Windows and run their tests under wine
	$(install) windows
	@scripts/build-windows-dependencies
	@scripts/build-and-test windows

bench: ## Build heed_measure, and say what the parts of heed cost
	$(install) build
	$(say) 'building the benchmarks'
	@cmake --preset release -DHEED_BUILD_TESTS=OFF -DHEED_BUILD_EXAMPLES=OFF -DHEED_BUILD_BENCHMARKS=ON --log-level=WARNING >/dev/null
	@cmake --build --preset release --target heed_measure
	$(say) 'running the benchmarks'
	@build/release/benchmarks/heed_measure parts

bench-peers: ## Compare the speed with PyTorch, ONNX Runtime, OpenBLAS and oneDNN (ARGS=... for python -m heed.bench)
	$(install) build python peers
	@HEED_PYTHON=required scripts/install-python
	$(say) 'building what is compared'
	@cmake --preset release -DHEED_BUILD_TESTS=OFF -DHEED_BUILD_EXAMPLES=OFF -DHEED_BUILD_BENCHMARKS=ON -DHEED_BUILD_PYTHON=ON --log-level=WARNING >/dev/null
	@cmake --build --preset release --target heed_peers heed_python
	$(say) 'comparing'
	@PYTHONPATH=build/release/python .venv/bin/python -m heed.bench --library build/release/benchmarks/peers/libheed_peers.so $(ARGS)

fuzz: ## Build the fuzz targets with libFuzzer and run each for FUZZ_SECONDS (60)
	$(install) build fuzz
	$(say) 'building the fuzz targets'
	@CXX=clang++-14 cmake --preset asan -B build/fuzz -DHEED_BUILD_FUZZERS=ON -DHEED_BUILD_TESTS=OFF \
		-DHEED_BUILD_EXAMPLES=OFF -DHEED_FUZZ_SECONDS=$(FUZZ_SECONDS) --log-level=WARNING >/dev/null
	@cmake --build build/fuzz
	@cmake --build build/fuzz --target run_fuzzers

fuzz-coverage: ## Say which branches of the parsers the fuzz targets reach (after make fuzz: with what it found)
	$(install) build fuzz
	@scripts/fuzz-coverage

differential: ## Hold CASES (10000) drawn problems, as many of each property and the errors of 1200 to the reference, from SEED (0)
	$(install) build test
	$(say) 'building the tests'
	@cmake --preset release -DHEED_BUILD_TESTS=ON --log-level=WARNING >/dev/null
	@cmake --build --preset release --target heed_tests
	@HEED_DIFFERENTIAL_CASES=$(CASES) HEED_DIFFERENTIAL_SEED=$(SEED) HEED_SWEEP_SEED=$(SEED) \
		RC_PARAMS='seed=$(SEED) max_success=$(CASES)' \
		build/release/tests/heed_tests --gtest_filter='Differential.*:*Properties.*:AccuracySweep.*'

format: ## Lay out every source file as .clang-format says
	$(install) lint
	$(say) 'formatting'
	@scripts/list-sources | xargs -0 clang-format-14 -i

lint: ## Check layout, names and the usual mistakes
	$(install) build test mpi lint
	@scripts/lint $(ARGS)

clean: ## Remove what was built
	$(say) 'removing build'
	@cmake -E rm -rf build
