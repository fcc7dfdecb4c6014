# SPDX-License-Identifier: MIT
# The short way to everything; CMake does the work. `make help` says what there is.
# Variables: BUILD (build directory), PREFIX (where `make install` installs), JOBS, SLOTS.

BUILD  ?= build
PREFIX ?= /usr/local
JOBS   ?= $(shell nproc)
# Tests run at the same time: many wait for a timer or a child rather than compute.
SLOTS  ?= $(shell expr 2 '*' $(JOBS))

CONFIGURE = cmake -S . -B $(BUILD) -G Ninja -Wno-dev
COMPILE   = cmake --build $(BUILD) -j $(JOBS)
VIEWER    = cmake -DWEB=$(CURDIR)/web -DWORK=$(abspath $(BUILD))/web

.DEFAULT_GOAL := all
.PHONY: all deps test-deps test test-clickhouse check analyze nightly test-fresh sweep sweep-deps soak demo install deb deb-aarch64 test-deb test-packages test-image tarball test-tarball lint fmt asan tsan bench bench-scale bench-store bench-web aarch64 test-aarch64 tarball-aarch64 viewer screenshots fuzz-smoke mutate clean help

all: ## build everything; the program is build/bin/cairn
	@$(CONFIGURE) -DBUILD_TESTING=OFF >/dev/null
	@$(COMPILE)

deps: ## install with apt what the build needs, and nothing else
	@tools/packages.sh install build

test-deps: ## install with apt what the tests need beyond that
	@tools/packages.sh install build test

test: deps test-deps ## install what is missing, build, and run every test; some minutes
	@$(CONFIGURE) -DBUILD_TESTING=ON -DCAIRN_BENCH=ON >/dev/null
	@$(COMPILE)
	@tools/run_tests.sh $(BUILD) test $(SLOTS) -LE '^(check|nightly)$$'

check: deps test-deps ## clang-tidy, and most tests again under the sanitizers; a quarter of an hour
	@$(CONFIGURE) -DBUILD_TESTING=ON >/dev/null
	@$(COMPILE)
	@tools/run_tests.sh $(BUILD) check $(JOBS) -L '^check$$'

analyze: deps test-deps ## clang-tidy with its static analyzer on every file; ten minutes
	@$(CONFIGURE) -DBUILD_TESTING=ON >/dev/null
	@$(COMPILE)
	@tools/check_tidy.py --analyze . $(BUILD)

nightly: deps test-deps ## all that continuous integration leaves out: whole suites, soaks, sweeps; hours
	@tools/run_nightly.sh $(BUILD) $(SLOTS)

test-fresh: ## try `make demo` and the viewer on a minimal Debian of its own; minutes, and Debian's archive
	@tools/packages.sh install fresh
	@tools/test_fresh.sh

test-clickhouse: deps test-deps ## test `cairn store` with ClickHouse servers on the loopback; two minutes
	@$(CONFIGURE) -DBUILD_TESTING=ON >/dev/null
	@$(COMPILE)
	@tools/packages.sh install clickhouse
	@CAIRN_BUILD=$(BUILD) /usr/bin/python3 -B -m pytest -q -p no:cacheprovider --rootdir tests tests/store/test_clickhouse.py

sweep: deps ## run every program of /usr/bin bare and recorded, and compare; a quarter of an hour
	@$(CONFIGURE) -DBUILD_TESTING=OFF >/dev/null
	@$(COMPILE)
	@tools/packages.sh install sweep
	@nice tools/sweep.py $(BUILD) --jobs $(JOBS)

soak: deps ## repeat thousands of times what `make test` tries a few times; an hour
	@$(CONFIGURE) -DBUILD_TESTING=ON >/dev/null
	@$(COMPILE)
	@CAIRN_SCRIBBLE_SEEDS=2000 CAIRN_ORDER_RUNS=2000 CAIRN_BOUNDED_TIMES=4,16,64 CAIRN_INJECT_CYCLES=1000 CAIRN_INJECT_KILLS=500 CAIRN_ATTACH_CYCLES=1000 ctest --test-dir $(BUILD) -R '^(e2e\.(bounded|scribbling|order|attach_programs)|inject\.cycles)$$' --timeout 7200 --output-on-failure

sweep-deps: ## install with apt a broad choice of programs for `make sweep`; gigabytes
	@tools/packages.sh install sweep sweep-more

demo: ## install what is missing, build, profile the bundled example and explain its report
	@tools/packages.sh install build demo
	@$(CONFIGURE) -DBUILD_TESTING=OFF >/dev/null
	@$(COMPILE)
	@demo/run.sh $(BUILD)

install: all ## install below PREFIX (DESTDIR is honoured)
	@cmake --install $(BUILD) --prefix $(PREFIX)

deb: ## build a Debian package in the build directory
	@tools/packages.sh install build package
	@$(CONFIGURE) -DBUILD_TESTING=OFF >/dev/null
	@$(COMPILE)
	@rm -f $(BUILD)/cairn_*.deb && cd $(BUILD) && cpack -G DEB

deb-aarch64: aarch64 ## build a Debian package for arm64, in build-aarch64
	@tools/packages.sh install package
	@rm -f $(BUILD)-aarch64/cairn_*.deb && cd $(BUILD)-aarch64 && cpack -G DEB

test-deb: deb ## check the package with lintian, and try it on a minimal Debian 12; needs Debian's archive
	@tools/packages.sh install fresh test-deb
	@tools/test_deb.sh $(BUILD)

test-packages: deps test-deps ## check contrib/packages by the tools of RPM, Arch, Nix and Ruby, and build the RPM; minutes
	@$(CONFIGURE) -DBUILD_TESTING=ON >/dev/null
	@$(COMPILE)
	@tools/packages.sh install packages
	@CAIRN_BUILD=$(BUILD) /usr/bin/python3 -B -m pytest -q -p no:cacheprovider --rootdir tests tests/tools/test_foreign_packages.py

test-image: ## carry out the Dockerfile in minimal systems of Debian 12; minutes, and Debian's archive
	@tools/packages.sh install fresh
	@tools/test_image.sh

tarball: ## build an archive for any x86-64 Linux with glibc 2.31 or newer; needs Debian's archive
	@tools/packages.sh install build package tarball
	@tools/build_tarball.sh $(BUILD)

tarball-aarch64: deps ## build the archive for any AArch64 Linux with glibc 2.31 or newer, in build-aarch64-tarball
	@tools/packages.sh install build aarch64 tarball
	@tools/build_tarball.sh $(BUILD)-aarch64-tarball aarch64

aarch64: ## build for AArch64 with Debian's cross compiler, into build-aarch64; needs Debian's archive
	@tools/packages.sh install build aarch64
	@tools/aarch64/build.sh $(BUILD)-aarch64 $(JOBS) build

test-aarch64: ## run tests on emulated AArch64 machines with Debian's kernels; 15 minutes. LONG=1: what takes longer; CYCLES=200: attach so often; hours. ENTRIES=^x$$: these alone
	@tools/packages.sh install build aarch64 machine
	@tools/aarch64/build.sh $(BUILD)-machine $(JOBS) "build machine-libraries" -DBUILD_TESTING=ON \
	  -DCAIRN_TESTS='^unit\.$(if $(LONG),,(base|session|producer|unwind|agent|preload|inject|attach))'
	@tools/aarch64/test_machine.sh $(BUILD)-machine $(CYCLES)

test-tarball: tarball ## try it on a minimal Debian 11, 12 and 13; minutes, and Debian's archive
	@tools/packages.sh install fresh
	@tools/test_tarball.sh $(BUILD)

lint: ## clang-tidy, layers, sizes, style and the subjects of commits
	@$(CONFIGURE) -DBUILD_TESTING=ON >/dev/null
	@tools/check_layers.py . && tools/check_sizes.py . && tools/check_style.py . && tools/check_commits.py .
	@tools/check_tidy.py . $(BUILD)

fmt: ## format every C and C++ file with clang-format
	@git ls-files '*.c' '*.h' '*.cpp' | xargs clang-format -i

asan: ## run the tests of our own processes under the address and undefined sanitizers
	@tools/run_sanitized.sh address,undefined $(BUILD)-asan

tsan: ## run them under the thread sanitizer
	@tools/run_sanitized.sh thread $(BUILD)-tsan

bench: ## measure cairn and its peers, and bring docs/performance.md and README.md up to date; takes long
	@bench/run.py --build $(BUILD) --markdown docs/performance.md README.md

bench-scale: ## measure 1 to 16 threads on as many processors, as far as this machine has them
	@$(CONFIGURE) -DCAIRN_BENCH=ON >/dev/null
	@$(COMPILE)
	@bench/run.py --build $(BUILD) --scaling --markdown docs/performance.md

bench-store: ## measure `cairn store` with 2,000 recordings of 500 stacks; two minutes
	@$(CONFIGURE) -DBUILD_TESTING=ON >/dev/null
	@$(COMPILE)
	@bench/store.py $(BUILD)

bench-web: ## measure the viewer in a browser, and bring docs/performance.md up to date
	@$(CONFIGURE) -DCAIRN_BENCH=ON >/dev/null
	@$(COMPILE)
	@$(VIEWER) -DDO=tools -P cmake/build_viewer.cmake
	@node bench/web.mjs $(BUILD) docs/performance.md

viewer: ## rebuild web/dist after a change to web/; needs node, npm and a network
	@$(VIEWER) -DDO=update -P cmake/build_viewer.cmake

screenshots: all ## make the pictures of docs/user from the bundled example
	@tools/packages.sh install build demo pictures
	@$(VIEWER) -DDO=tools -P cmake/build_viewer.cmake
	@CAIRN_WEB=$(BUILD)/web node web/scripts/screenshots.mjs $(BUILD)/bin/cairn demo/shop.cpp

fuzz-smoke: ## run each fuzz target for a few seconds
	@tools/run_fuzzers.sh $(BUILD)-fuzz 10

mutate: deps test-deps ## plant 100 faults, one at a time, and list those that no test notices; takes hours
	@tools/mutate.py

clean: ## remove every build directory
	@rm -rf $(BUILD) $(BUILD)-aarch64 $(BUILD)-aarch64-tarball $(BUILD)-machine $(BUILD)-asan $(BUILD)-tsan $(BUILD)-fuzz

help: ## list the targets
	@sed -n 's/^\([a-z0-9-]*\):[^#]*## /\1|/p' Makefile | while IFS='|' read -r goal text; do \
	  printf 'make %-15s %s\n' "$$goal" "$$text"; done
