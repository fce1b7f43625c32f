# SPDX-License-Identifier: MIT
# One Makefile, non-recursive. `make help` lists the targets.

CC ?= gcc
BUILD ?= build
V ?= 0
SANITIZE ?=
DEVELOPER ?= 1

PKGS := libfyaml jansson libxml-2.0 libsystemd zlib
AGENT_PKGS := libibverbs jansson libsystemd zlib
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

Q := $(if $(filter 1,$(V)),,@)
say = $(if $(filter 1,$(V)),,@printf '  %-7s %s\n' '$(1)' '$(2)')

SRCS := $(filter-out %_test.c %_fuzz.c,$(sort $(wildcard harness/*.c faults/*.c reports/*.c)))
AGENT_SRCS := $(filter-out %_test.c %_fuzz.c,$(sort $(wildcard agents/*.c)))
TESTS := $(sort $(wildcard harness/*_test.c faults/*_test.c reports/*_test.c agents/*_test.c))
MAINS := harness/main.c agents/agent_main.c
LIB_OBJS := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out $(MAINS),$(SRCS)))
AGENT_OBJS := $(patsubst %.c,$(BUILD)/obj/%.o,$(filter-out $(MAINS),$(AGENT_SRCS)))

all: $(BUILD)/qpdrill $(BUILD)/qpdrill-agent

$(BUILD)/obj/%.o: %.c
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
$(BUILD)/qpdrill-agent: $(BUILD)/obj/agents/agent_main.o $(BUILD)/libqdagent.a $(BUILD)/libqd.a
	$(call say,LD,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(AGENT_LIBS)

$(BUILD)/test/%_test: $(BUILD)/obj/%_test.o $(BUILD)/libqdagent.a $(BUILD)/libqd.a
	$(call say,LD,$@)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LIBS) $(AGENT_LIBS) -lcunit

TEST_BINS := $(patsubst %.c,$(BUILD)/test/%,$(TESTS))

-include $(shell find $(BUILD)/obj -name '*.d' 2>/dev/null)
.PHONY: all
.SECONDARY:
