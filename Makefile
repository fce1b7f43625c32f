# SPDX-License-Identifier: MIT
# One Makefile, non-recursive: `make help` lists the targets. It calls itself only so that pkg-config is asked
# again after `setup` has installed something.

ifeq ($(origin CC),default)
CC := gcc
endif
BUILD ?= build
V ?= 0
SANITIZE ?=
DEVELOPER ?= 1
PREFIX ?= /usr/local
DESTDIR ?=
# What `make run` runs, and further options for it: make run RUN=scenarios/verbs ARGS='--lab guest --keep'
RUN ?= scenarios --select core
ARGS ?=
# What `make kernels` runs, and on which: make kernels KERNELS='6.1 6.12 6.17 7.2 newest' KERNELS_RUN='scenarios --select core'. AGAIN=1
# runs again what did not end well.
KERNELS ?= 6.1 6.12 newest
KERNELS_RUN ?= scenarios
FUZZ_SECONDS ?= 20
JOBS ?= $(shell nproc)

PKGS := libfyaml jansson libxml-2.0 libsystemd libdeflate
AGENT_PKGS := libibverbs librdmacm jansson libsystemd libdeflate
WIRE_PKGS := jansson libsystemd libdeflate
override CPPFLAGS += -D_GNU_SOURCE -I. $(shell pkg-config --cflags $(PKGS) 2>/dev/null)
override CFLAGS += -std=gnu11 -O2 -g -pthread -Wall -Wextra -Wmissing-prototypes -Wstrict-prototypes -Wshadow -Wformat=2 -Wvla \
	-Wwrite-strings -Wundef -Wpointer-arith -Wold-style-definition
ifeq ($(DEVELOPER),1)
override CFLAGS += -Werror
endif
ifneq ($(SANITIZE),)
override CFLAGS += -fsanitize=$(SANITIZE) -fno-omit-frame-pointer
override LDFLAGS += -fsanitize=$(SANITIZE)
endif
LIBS := $(shell pkg-config --libs $(PKGS) 2>/dev/null)
AGENT_LIBS := $(shell pkg-config --libs $(AGENT_PKGS) 2>/dev/null)
WIRE_LIBS := $(shell pkg-config --libs $(WIRE_PKGS) 2>/dev/null)

Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' '$(1)' '$(2)')

SRCS := $(filter-out %_test.c %_fuzz.c,$(sort $(wildcard harness/*.c faults/*.c reports/*.c)))
AGENT_SRCS := $(filter-out %_test.c %_fuzz.c,$(sort $(wildcard agents/*.c)))
TESTS := $(sort $(wildcard harness/*_test.c faults/*_test.c reports/*_test.c agents/*_test.c))
FUZZERS := $(sort $(wildcard harness/*_fuzz.c faults/*_fuzz.c reports/*_fuzz.c agents/*_fuzz.c))
SCRIPTS := $(sort $(wildcard harness/*.sh harness/ci/*.sh harness/*.bash faults/*.sh reports/*.sh agents/*.sh scenarios/*.sh)) .ci/run
MAINS := harness/main.c harness/inner_main.c harness/guest_init.c agents/agent_main.c agents/wire_main.c agents/wire_bench.c agents/agent_bench.c agents/scale_bench.c agents/liar.c harness/short_bench.c
LIB_OBJS := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out $(MAINS),$(SRCS)))
AGENT_OBJS := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out $(MAINS),$(AGENT_SRCS)))
TEST_BINS := $(patsubst %.c,$(BUILD)/test/%,$(TESTS))
FUZZ_BINS := $(patsubst %.c,$(BUILD)/fuzz/%,$(FUZZERS))

##all: build qpdrill and the programs beside it in build/
PROGRAMS := $(BUILD)/qpdrill $(BUILD)/qpdrill-agent $(BUILD)/qpdrill-wire $(BUILD)/qpdrill-inner $(BUILD)/qpdrill-init
PAGES := $(addprefix $(BUILD)/man/,qpdrill.1 qpdrill-scenario.5 qpdrill-agent.1 qpdrill-wire.1)
all: $(PROGRAMS) $(PAGES)

##man: manual pages into build/man, made by the programs themselves
man: $(PAGES)

# Objects made with other flags are not mixed with these: the file changes only when the flags do.
FLAGS := $(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS)
$(BUILD)/flags: always
	@mkdir -p $(BUILD)
	@printf '%s\n' '$(FLAGS)' | cmp -s - $@ || printf '%s\n' '$(FLAGS)' >$@
$(BUILD)/places: always
	@mkdir -p $(BUILD)
	@printf '%s\n' "$(CURDIR)" '$(PREFIX)' | cmp -s - $@ || printf '%s\n' "$(CURDIR)" '$(PREFIX)' >$@

$(BUILD)/packages: Makefile
	@mkdir -p $(BUILD)
	@pkg-config --print-errors --exists $(PKGS) $(AGENT_PKGS) || { echo "Libraries are missing: \`make setup\` installs them." >&2; exit 1; }
	@touch $@

# The one object that knows where the sources lie: data.c finds scripts and scenarios beside the program first.
$(BUILD)/obj/harness/data.o: $(BUILD)/places
$(BUILD)/obj/harness/data.o: private override CPPFLAGS += -DQD_SOURCE_DIR='"$(CURDIR)"' -DQD_DATA_DIR='"$(PREFIX)/share/qpdrill"'

# What a program says of itself: the commit it was built from. Made anew only when that changes.
QD_BUILD := $(shell git describe --always --dirty --abbrev=12 2>/dev/null || echo 0.1.0)
BUILD_USERS := $(BUILD)/obj/agents/agent.o $(BUILD)/obj/agents/wire_serve.o $(BUILD)/obj/harness/run_describe.o
$(BUILD_USERS): private override CPPFLAGS += -DQD_BUILD='"$(QD_BUILD)"'
$(BUILD_USERS): $(BUILD)/commit
ifneq ($(QD_BUILD),$(shell cat $(BUILD)/commit 2>/dev/null))
.PHONY: $(BUILD)/commit
endif
$(BUILD)/commit:
	@mkdir -p $(@D)
	@echo '$(QD_BUILD)' >$@

# How links are made, in short: a saved guest has them in its memory, and belongs to one way of making them.
QD_LINKS := $(shell cat $(filter-out %_test.c,$(sort $(wildcard harness/lab*.[ch]))) harness/inner_main.c | sha256sum | cut -c1-16)
$(BUILD)/obj/harness/guest_saved.o: private override CPPFLAGS += -DQD_LINKS='"$(QD_LINKS)"'
$(BUILD)/obj/harness/guest_saved.o: $(BUILD)/links
ifneq ($(QD_LINKS),$(shell cat $(BUILD)/links 2>/dev/null))
.PHONY: $(BUILD)/links
endif
$(BUILD)/links:
	@mkdir -p $(@D)
	@echo '$(QD_LINKS)' >$@

# A test runs once, for a moment: it takes longer to optimize than to run.
$(BUILD)/obj/%_test.o: private override CFLAGS += -O0 -U_FORTIFY_SOURCE

$(BUILD)/obj/%.o: %.c $(BUILD)/flags | $(BUILD)/packages
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<

$(BUILD)/libqd.a: $(LIB_OBJS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^
$(BUILD)/libqdagent.a: $(AGENT_OBJS)
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^

$(BUILD)/qpdrill: $(BUILD)/obj/harness/main.o $(BUILD)/libqd.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS)
# Without what only loading and reporting need: it starts cold in every boot of a guest.
$(BUILD)/qpdrill-inner: $(BUILD)/obj/harness/inner_main.o $(BUILD)/libqd.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(LIBS)
$(BUILD)/qpdrill-agent: $(BUILD)/obj/agents/agent_main.o $(BUILD)/libqdagent.a $(BUILD)/libqd.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(AGENT_LIBS)
$(BUILD)/qpdrill-wire: $(BUILD)/obj/agents/wire_main.o $(BUILD)/libqdagent.a $(BUILD)/libqd.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(WIRE_LIBS)
$(BUILD)/wire_bench: $(BUILD)/obj/agents/wire_bench.o $(BUILD)/libqdagent.a $(BUILD)/libqd.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(WIRE_LIBS)

# They are made from the tables that the programs work by.
$(BUILD)/man/qpdrill.1 $(BUILD)/man/qpdrill-scenario.5: $(BUILD)/qpdrill
	$(call say,MAN,$@)
	@mkdir -p $(@D)
	$(Q)$(BUILD)/qpdrill man $(@F) >$@.new && mv $@.new $@
$(BUILD)/man/qpdrill-agent.1 $(BUILD)/man/qpdrill-wire.1: $(BUILD)/man/%.1: $(BUILD)/%
	$(call say,MAN,$@)
	@mkdir -p $(@D)
	$(Q)$(BUILD)/$* --man >$@.new && mv $@.new $@

# Lies for an agent, in tests.
$(BUILD)/liar: $(BUILD)/obj/agents/liar.o $(BUILD)/libqd.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(LIBS)

$(BUILD)/agent_bench: $(BUILD)/obj/agents/agent_bench.o $(BUILD)/libqdagent.a $(BUILD)/libqd.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--as-needed -o $@ $^ $(AGENT_LIBS)

$(BUILD)/scale_bench: $(BUILD)/obj/agents/scale_bench.o $(BUILD)/libqdagent.a $(BUILD)/libqd.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) $(AGENT_LIBS)

# Names alone: valgrind 3.19 cannot read what clang says for debuggers.
$(BUILD)/short_bench: $(BUILD)/obj/harness/short_bench.o $(BUILD)/libqdagent.a $(BUILD)/libqd.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -Wl,--strip-debug -o $@ $^ $(LIBS) $(AGENT_LIBS)

# Alone in its initramfs: static, and plain whatever the others are built with.
$(BUILD)/qpdrill-init: harness/guest_init.c harness/guest_boot.h $(BUILD)/flags
	$(call say,LD,$@)
	$(Q)$(CC) $(CPPFLAGS) $(filter-out -fsanitize=%,$(CFLAGS)) -static -s -o $@ $<

$(BUILD)/test/%_test: $(BUILD)/obj/%_test.o $(BUILD)/libqdagent.a $(BUILD)/libqd.a
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) $(AGENT_LIBS) -lcunit

# Fuzz targets have a library of their own, so that all of it is instrumented.
FUZZ_CC := clang $(CPPFLAGS) -std=gnu11 -g -O1 -pthread
$(BUILD)/fuzz/obj/%.o: %.c | $(BUILD)/packages
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer-no-link,address,undefined -MMD -MP -c -o $@ $<
$(BUILD)/fuzz/libqd.a: $(patsubst $(BUILD)/obj/%,$(BUILD)/fuzz/obj/%,$(LIB_OBJS))
	$(call say,AR,$@)
	$(Q)rm -f $@ && ar rcs $@ $^
$(BUILD)/fuzz/%_fuzz: %_fuzz.c $(BUILD)/fuzz/libqd.a
	$(call say,FUZZ,$@)
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) -fsanitize=fuzzer,address,undefined -o $@ $^ $(LIBS)

##setup: install what is missing (apt) and put the guest's kernel into the cache
setup:
	@harness/setup.sh
	@harness/fetch_kernel.sh >/dev/null

##run: set up, build, boot the guest (or run here where the kernel has rxe) and run the core scenarios
run: setup
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@$(BUILD)/qpdrill run $(RUN) $(ARGS)

##test: set up, build and run everything: unit tests, golden tests, all scenarios
test: setup
	@$(MAKE) --no-print-directory -j$(JOBS) all tests
	@harness/test_all.sh $(BUILD)

##unit: build and run the unit tests alone (no guest)
unit: all tests
	@harness/test_all.sh --unit $(BUILD)

tests: $(TEST_BINS) $(BUILD)/short_bench $(BUILD)/liar

##kernels: run KERNELS_RUN (all scenarios) on each of KERNELS (series of Debian's kernels, fetched once) and print where they differ; goes on where it was interrupted
kernels: setup
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@harness/kernels.sh $(if $(AGAIN),--again) $(BUILD) $(KERNELS) -- $(KERNELS_RUN) $(ARGS)

##kernels-table: judge those runs with today's profiles and put their table into scenarios/profiles/README.md
kernels-table: all
	@harness/kernels.sh --table $(BUILD) scenarios/profiles/README.md

##bench: everything that is measured, one table of ratios with their spread; kept as BUILD/bench.json
bench: setup
	@harness/setup.sh perftest
	@$(MAKE) --no-print-directory all $(BUILD)/wire_bench $(BUILD)/agent_bench $(BUILD)/scale_bench
	@$(BUILD)/qpdrill bench --json $(BUILD)/bench.json $(ARGS)

##lint: clang-tidy, cppcheck, shellcheck, forbidden functions, file lengths
lint:
	@harness/lint.sh '$(CPPFLAGS)' $(SRCS) $(AGENT_SRCS) $(TESTS) $(FUZZERS) -- $(wildcard $(SCRIPTS))

##format: clang-format on every source file
format:
	clang-format -i $(wildcard harness/*.[ch] faults/*.[ch] reports/*.[ch] agents/*.[ch])

##fuzz: build the fuzz targets and run each for FUZZ_SECONDS (20)
fuzz: $(FUZZ_BINS)
	@for f in $(FUZZ_BINS); do echo "fuzz: $$f, $(FUZZ_SECONDS) s"; mkdir -p $$f.corpus; \
		$$f -max_total_time=$(FUZZ_SECONDS) -timeout=10 -print_final_stats=0 $$f.corpus \
		$$(ls -d harness/testdata/$${f##*/} 2>/dev/null) >$$f.log 2>&1 || \
		{ tail -40 $$f.log >&2; exit 1; }; tail -1 $$f.log; done

##install: programs, scenarios, manual pages and documents below PREFIX (/usr/local), into DESTDIR if given
SHARE := $(DESTDIR)$(PREFIX)/share
install: all
	install -d $(DESTDIR)$(PREFIX)/bin $(SHARE)/qpdrill/harness $(SHARE)/doc/qpdrill
	install -m 755 $(PROGRAMS) $(DESTDIR)$(PREFIX)/bin/
	install -m 755 harness/setup.sh harness/fetch_kernel.sh harness/kernels.sh $(SHARE)/qpdrill/harness/
	install -m 644 harness/packages.txt $(SHARE)/qpdrill/harness/
	cd scenarios && find . -type f \( -name '*.yaml' -o -name '*.md' \) -exec install -D -m 644 {} $(abspath $(SHARE))/qpdrill/scenarios/{} \;
	install -m 644 $(wildcard README.md LICENSE harness/formats.md harness/running.md harness/ci.md) $(SHARE)/doc/qpdrill/
	install -d $(SHARE)/man/man1 $(SHARE)/man/man5
	install -m 644 $(filter %.1,$(PAGES)) $(SHARE)/man/man1/
	install -m 644 $(filter %.5,$(PAGES)) $(SHARE)/man/man5/

##clean: remove what was built
clean:
	rm -rf $(BUILD)

##help: this list
help:
	@sed -n 's/^##\([a-z]*\): /\1|/p' $(firstword $(MAKEFILE_LIST)) | awk -F'|' '{ printf "  make %-8s %s\n", $$1, $$2 }'
	@echo "  variables: CC=gcc|clang BUILD=build SANITIZE=address,undefined DEVELOPER=1 (-Werror) V=1 RUN='scenarios --select core' ARGS= PREFIX= DESTDIR="

-include $(shell find $(BUILD)/obj $(BUILD)/fuzz/obj -name '*.d' 2>/dev/null)
.PHONY: all always man setup run test unit tests kernels kernels-table bench lint format fuzz install clean help
.SECONDARY:
