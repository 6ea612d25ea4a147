# bloomfilter: Bloom and cuckoo filters for PostgreSQL
#
#   make, make install, make installcheck   as with any extension
#   make unit                               the tests of the core, without a server
#   make lint                               static checks
#   make dist                               the archive for PGXN, from the last commit
#
# `./script/test` installs missing packages, builds, and runs the tests on a throwaway cluster.

EXTENSION = bloomfilter
# The version is defined in the control file.
BF_VERSION := $(shell sed -n "s/^default_version *= *'\(.*\)'.*/\1/p" $(dir $(firstword $(MAKEFILE_LIST)))bloomfilter.control)
DATA = bloomfilter--$(BF_VERSION).sql
MODULE_big = bloomfilter
PGFILEDESC = "bloomfilter - Bloom and cuckoo filters"

CORE = src/core/geometry.o src/core/growth.o src/core/lines.o src/core/table.o src/core/hashlist.o \
       src/core/accumulator.o src/core/base64.o src/core/format.o src/core/query.o src/core/bloom.o \
       src/core/bloom_layers.o src/core/bloom_sets.o src/core/bloom_write.o src/core/cuckoo.o src/core/cuckoo_sets.o src/core/mutable.o
OBJS = bloomfilter.o $(CORE) src/server.o \
       src/key.o src/key_class.o src/key_scalar.o src/key_nested.o src/key_argument.o src/key_array.o \
       src/value.o src/builder.o src/contains.o src/change.o src/aggregate.o src/sets.o src/stats.o \
       src/io.o src/planner.o \
       src/index/index_key.o src/index/handler.o src/index/page.o src/index/layers.o src/index/build.o src/index/insert.o \
       src/index/index_probe.o src/index/index_scan.o src/index/cost.o \
       src/index/trust.o src/index/table_lookup.o src/index/find.o src/index/inspected.o src/index/inspect.o src/index/monitor.o \
       src/fingerprint/fp_handler.o src/fingerprint/fp_address.o src/fingerprint/fp_page.o src/fingerprint/fp_bucket.o \
       src/fingerprint/fp_grow.o src/fingerprint/fp_build.o src/fingerprint/fp_scan.o src/fingerprint/fp_vacuum.o \
       src/fingerprint/fp_inspect.o \
       src/joinfilter/plan.o src/joinfilter/trace.o src/joinfilter/nodes.o src/joinfilter/join_key.o src/joinfilter/filter.o \
       src/joinfilter/key_range.o src/joinfilter/partition_bounds.o src/joinfilter/page_ranges.o \
       src/joinfilter/collect_node.o src/joinfilter/scan_node.o src/joinfilter/probe_node.o \
       src/joinfilter/probe_list.o src/joinfilter/pass_through.o src/joinfilter/heap.o \
       src/lookup/lookup_match.o src/lookup/lookup_sample.o src/lookup/lookup_path.o src/lookup/lookup_plan.o \
       src/lookup/lookup_node.o \
       src/filterset/filterset_table.o src/filterset/filterset_slot.o src/filterset/filterset_create.o src/filterset/filterset.o

# All files in sql/ except large.
REGRESS = keys class fpp canonical input nulls aggregates states bounds sets growth stored missing unchanged planner plpgsql travel \
          cuckoo cuckoo_bytes cuckoo_growth cuckoo_model encodings index index_keys index_functions index_plans fingerprint joins joins_skip joins_modify \
          lookups filter_sets calls monitoring catalog
REGRESS_OPTS = --load-extension=bloomfilter --load-extension=citext

# Isolation tests (specs/).  They are left out if REGRESS is set on the command line.
ifneq ($(origin REGRESS), command line)
ISOLATION = new_keys filter_set_skew filter_set_names filter_set_changes index_skew index_snapshot index_move index_locks index_change index_names index_temporary \
            index_monitoring \
            joins_hot joins_recheck lookup_skew lookup_recheck lookup_change lookup_snapshot \
            fingerprint_skew fingerprint_vacuum fingerprint_concurrently fingerprint_snapshot \
            recipe_nickname recipe_coupons recipe_changes recipe_small_filters recipe_crawler recipe_events
endif
ISOLATION_OPTS = --load-extension=bloomfilter

# Symbols are hidden, except for functions that SQL calls.
#
# Floating-point operations are neither fused nor computed with excess precision, so
# that the geometry of a filter is the same on every machine.
SAME_FLOATS = -ffp-contract=off $(shell echo | $(CC) -Werror -fexcess-precision=standard \
	-x c -c -o /dev/null - 2>/dev/null && echo -fexcess-precision=standard)
PG_CFLAGS = -fvisibility=hidden -std=gnu11 $(SAME_FLOATS) $(EXTRA_CFLAGS)
PG_CPPFLAGS = -DBF_VERSION='"$(BF_VERSION)"'
SHLIB_LINK = -lm $(EXTRA_LDFLAGS)

# No LLVM bitcode: it requires the clang that the server was built with, and the
# functions do not benefit from inlining by JIT.
override with_llvm := no

EXTRA_CLEAN = test/unit/core_test test/unit/fingerprint_test

# In a VPATH build (as by pg_buildext, for each major), objects need the same folders.
ifdef VPATH
$(shell mkdir -p $(sort $(dir $(OBJS))))
endif

PG_CONFIG ?= pg_config
PGXS := $(shell $(PG_CONFIG) --pgxs 2>/dev/null)
NO_SERVER = PostgreSQL's development files are missing: install postgresql-server-dev-NN (Debian) or \
	postgresqlNN-devel (Red Hat) for your major version NN, or run make PG_CONFIG=/path/to/pg_config
ifeq ($(wildcard $(PGXS)),)
$(error $(NO_SERVER))
endif
include $(PGXS)

HEADERS_ALL = $(wildcard src/*.h src/core/*.h src/index/*.h src/fingerprint/*.h src/joinfilter/*.h src/lookup/*.h src/filterset/*.h)
$(OBJS): $(HEADERS_ALL)
bloomfilter.o: bloomfilter.control

# pgxs.mk can be present without the headers of the server: Debian 13 has it in the package of the
# client programs.
$(OBJS): | headers
.PHONY: headers
headers:
	@[ -e "$(includedir_server)/postgres.h" ] || { echo "$(NO_SERVER)"; exit 1; }
	@echo '#include <xxhash.h>' | $(CC) $(CPPFLAGS) $(CFLAGS) -E -x c - >/dev/null 2>&1 || \
		{ echo "xxhash.h is missing: install libxxhash-dev (Debian) or xxhash-devel (Red Hat); only the header is used"; exit 1; }

UNIT_CFLAGS = -std=gnu11 -O2 -g -DUSE_ASSERT_CHECKING $(SAME_FLOATS) -Wall -Wextra -Werror

test/unit/core_test: test/unit/core_test.c test/unit/host.h test/unit/operations.h $(CORE:.o=.c) $(HEADERS_ALL)
	$(CC) $(UNIT_CFLAGS) $(EXTRA_CFLAGS) -o $@ $< $(CORE:.o=.c) -lm $(EXTRA_LDFLAGS)

# What of the fingerprint index can be tested without a server: the linker drops the rest.
test/unit/fingerprint_test: test/unit/fingerprint_test.c src/fingerprint/fp_address.c src/fingerprint/fp_page.c $(HEADERS_ALL)
	$(CC) $(UNIT_CFLAGS) $(CPPFLAGS) $(EXTRA_CFLAGS) -o $@ $< -ffunction-sections -Wl,--gc-sections -lm $(EXTRA_LDFLAGS)

.PHONY: unit lint dist
lint:
	./script/lint

unit: test/unit/core_test test/unit/fingerprint_test
	./test/unit/core_test
	./test/unit/fingerprint_test

# PGXN requires versions of three numbers, in the names of the file and of its folder.
DIST_DIR = .
dist:
	git archive --format=zip --prefix=$(EXTENSION)-$(BF_VERSION).0/ -o $(DIST_DIR)/$(EXTENSION)-$(BF_VERSION).0.zip HEAD
