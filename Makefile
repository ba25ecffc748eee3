# acflow: one short Makefile. Sources are found by wildcard, dependencies are tracked, every variant has its own folder.
#
#   make              build/acflow, libacflow.a, libacflow.so, and libacflow_plot.so, loaded when a picture is asked for
#   make demo         the main job on a made-up table, a report
#   make test         every test, float and double
#   make test-long    also a static build, a trained image model, the paper's commands, planted mistakes
#   make test-san     ASan+UBSan (gcc) and TSan (clang)
#   make lint         warnings of gcc 12 and clang 14
#   make bench        speed, as ratios inside one run
#   make deps         installs the Debian packages
#   make install      PREFIX=/usr/local DESTDIR=
#   make man          build/man: a page for each command, and the completion for bash
#   make cuda         build/libacflow_cuda.so: the GPU's part, loaded where there is one (needs nvcc 13)
#   make gpu-test     build/gpu: programs, tests, benchmarks, plugin, libraries, for a machine with a GPU (docs/cuda.md)
#   make static       build/static: an acflow that needs glibc alone; with nvcc also the plugin, which needs CUDA's
#                     libraries
#
# ARCH=native is for the machine that builds; ARCH=x86-64-v3 makes a binary for any CPU since about 2015.

VERSION := $(shell sed -n 's/^.define ACF_VERSION "\(.*\)"/\1/p' include/acflow.h)
# Before 1.0 a minor version may change the interface.
SOVERSION := $(if $(filter 0.%,$(VERSION)),$(basename $(VERSION)),$(firstword $(subst ., ,$(VERSION))))
PREFIX ?= /usr/local
ARCH ?= native
CC := gcc
CLANG ?= clang
B := build

PACKAGES := gcc make pkg-config libjansson-dev zlib1g-dev libcairo2-dev libpng-dev libjpeg62-turbo-dev \
            librandom123-dev libcmocka-dev
SAN_PACKAGES := clang libomp-dev libclang-rt-14-dev

WARN := -Wall -Wextra -Wshadow -Wconversion -Wvla -Wstrict-prototypes -Wmissing-prototypes \
        -Wno-missing-field-initializers -Werror
# Not -ffast-math: it deletes NaN checks. These two only say that nobody reads errno or the FP exception flags.
FLAGS := -std=gnu11 -O3 -march=$(ARCH) -fno-math-errno -fno-trapping-math -fopenmp -fvisibility=hidden -g \
         -Iinclude -Isrc $(WARN)
LIBS = $(shell pkg-config --libs jansson zlib libpng libjpeg) -lm
PKG_CFLAGS := $(shell pkg-config --cflags jansson zlib libpng libjpeg)
# What draws pictures, and the tests, which look at them, need cairo; nothing else does.
PLOT_LIBS = $(shell pkg-config --libs cairo)
PLOT_CFLAGS := $(shell pkg-config --cflags cairo)

SRC := $(filter-out %_test.c src/cli/% src/plot/%,$(wildcard src/*/*.c))
PLOT := $(filter-out %_test.c,$(wildcard src/plot/*.c))
CLI := $(filter-out %_test.c,$(wildcard src/cli/*.c))
CLI_PARTS := $(filter-out %/main.c,$(CLI)) # what tests can link
TESTS := $(wildcard src/*/*_test.c tests/harness/*.c)
BENCH := $(wildcard bench/*.c)
LABS := $(wildcard bench/lab/*.c)
EXAMPLES := $(wildcard examples/*.c experiments/*.c)
CUDA := $(wildcard src/*/*.cu)

.PHONY: all cuda gpu-test static test test-long print-f64 test-san bench demo man install deps need lint clean
all: $(B)/acflow $(B)/libacflow.a $(B)/libacflow.so $(B)/libacflow_plot.so

# One set of rules per variant: $(1) folder, $(2) compiler, $(3) extra flags.
define variant
$(B)/$(1)/%.o: %.c Makefile
	@mkdir -p $$(@D)
	$(2) $(FLAGS) $$(PKG_CFLAGS) $(3) -MMD -MP -c $$< -o $$@
$(B)/$(1)/src/plot/%.o $(B)/$(1)/%_test.o: PKG_CFLAGS += $$(PLOT_CFLAGS)
$(B)/$(1)/acflow-test: $$(patsubst %.c,$(B)/$(1)/%.o,$(SRC) $(PLOT) $(CLI_PARTS) $(TESTS))
	$(2) -fopenmp $(3) $$^ $$(LIBS) $$(PLOT_LIBS) -lcmocka -o $$@
-include $$(patsubst %.c,$(B)/$(1)/%.d,$(SRC) $(PLOT) $(CLI) $(TESTS) $(BENCH) $(LABS) $(EXAMPLES))
endef
DEBUG := -DACF_DEBUG -Itests
$(eval $(call variant,lib,$(CC),-fPIC))
$(eval $(call variant,f32,$(CC),$(DEBUG)))
$(eval $(call variant,f64,$(CC),$(DEBUG) -DACF_DOUBLE))
SAN := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -O1
$(eval $(call variant,asan32,$(CC),$(DEBUG) $(SAN)))
$(eval $(call variant,asan64,$(CC),$(DEBUG) $(SAN) -DACF_DOUBLE))
$(eval $(call variant,tsan,$(CLANG),$(DEBUG) -fsanitize=thread -O1))
$(eval $(call variant,clang32,$(CLANG),$(DEBUG)))
$(eval $(call variant,clang64,$(CLANG),$(DEBUG) -DACF_DOUBLE))

LIB_OBJ := $(patsubst %.c,$(B)/lib/%.o,$(SRC))
$(B)/libacflow.a: $(LIB_OBJ)
	rm -f $@ && ar rcs $@ $^
$(B)/libacflow.so.$(VERSION): $(LIB_OBJ)
	$(CC) -shared -fopenmp -Wl,-soname,libacflow.so.$(SOVERSION) -Wl,--no-undefined $^ $(LIBS) -o $@
$(B)/libacflow.so: $(B)/libacflow.so.$(VERSION)
	ln -sf libacflow.so.$(VERSION) $(B)/libacflow.so.$(SOVERSION) && ln -sf libacflow.so.$(VERSION) $@
# The library that draws: src/plot and, from the archive, what it uses of src/base. It exports one symbol.
$(B)/libacflow_plot.so: $(patsubst %.c,$(B)/lib/%.o,$(PLOT)) $(B)/libacflow.a
	$(CC) -shared -Wl,--no-undefined,--exclude-libs,ALL $^ $(PLOT_LIBS) -lm -o $@
# The command line uses the public header (and jansson, for config files) only; linking it with the shared library keeps
# it honest.
$(B)/acflow: $(patsubst %.c,$(B)/lib/%.o,$(CLI)) $(B)/libacflow.so
	$(CC) $(filter %.o,$^) -L$(B) -lacflow $(shell pkg-config --libs jansson) -lm -Wl,-rpath,'$$ORIGIN:$$ORIGIN/../lib' -o $@

$(B)/bench-%: $(B)/lib/bench/%.o $(B)/libacflow.a
	$(CC) -fopenmp $^ $(LIBS) -o $@

# The kernel lab: variants of one kernel, checked, then timed.
$(B)/lab-%: $(B)/lib/bench/lab/%.o $(B)/libacflow.a
	$(CC) -fopenmp $^ $(LIBS) -o $@
# Programs that use the public header only.
PUBLIC = $(CC) $< -L$(B) -lacflow -lm -Wl,-rpath,'$$ORIGIN' -o $@
# The page that the demo ends with.
$(B)/demo-report: $(B)/lib/examples/demo_report.o
	$(CC) $< $(shell pkg-config --libs jansson) -lm -o $@
$(B)/experiment-%: $(B)/lib/experiments/%.o $(B)/libacflow.so
	$(PUBLIC)

# The plugin with the CUDA kernels: machine code for Ampere and Hopper, and PTX that a driver compiles for what comes
# after. Its only
# needs on the target are the driver and cuBLASLt; it exports one symbol.
CUDA_HOME ?= /usr/local/cuda
NVCC ?= $(CUDA_HOME)/bin/nvcc
# --compress-mode=size: code for two architectures, PTX and line numbers take 8 MB and not 51; any driver for CUDA 13
# reads it.
NVCC_FLAGS := -std=c++17 -O3 -g -lineinfo --compress-mode=size -gencode=arch=compute_90a,code=sm_90a -gencode=arch=compute_80,code=[sm_80,compute_80] \
              --Werror all-warnings -Xcompiler=-fPIC,-fvisibility=hidden,-Wall,-Wextra,-Wno-missing-field-initializers,-Werror -Iinclude -Isrc
cuda:
	@command -v $(NVCC) >/dev/null || { echo 'make cuda needs the CUDA toolkit 13 and finds no $(NVCC); say CUDA_HOME=FOLDER if it is elsewhere'; exit 1; }
	@$(MAKE) --no-print-directory $(B)/libacflow_cuda.so
$(B)/cuda/%.o: %.cu Makefile
	@mkdir -p $(@D)
	$(NVCC) $(NVCC_FLAGS) -MMD -MP -MF $(@:.o=.d) -c $< -o $@
$(B)/libacflow_cuda.so: $(patsubst %.cu,$(B)/cuda/%.o,$(CUDA))
	$(NVCC) -shared -cudart static -Xcompiler=-static-libstdc++,-static-libgcc $^ -lcublasLt -Xlinker=--no-undefined,--exclude-libs,ALL,-rpath,'$$ORIGIN:$(CUDA_HOME)/lib64' -o $@
-include $(patsubst %.cu,$(B)/cuda/%.d,$(CUDA))
# Of the target only glibc, a driver and cuBLASLt are expected; other libraries travel along, in lib/. RPATH and not
# RUNPATH, as it also
# serves the libraries of libraries.
GPU := $(B)/gpu
GPU_LINK = @mkdir -p $(@D) && $(CC) -fopenmp $^ $(LIBS) $(1) -s -Wl,--disable-new-dtags,-rpath,'$$ORIGIN/lib' -o $@
gpu-test: cuda $(GPU)/acflow-test $(GPU)/acflow $(GPU)/acflow-bench $(GPU)/acflow-bench-images
	rm -rf $(GPU)/lib && mkdir $(GPU)/lib
	ldd $(GPU)/acflow-test | awk '$$3 ~ /^\// && $$1 !~ /^lib(c|m|dl|rt|pthread)\.so/ { print $$3 }' | xargs cp -Lt $(GPU)/lib
	strip -o $(GPU)/libacflow_cuda.so $(B)/libacflow_cuda.so
$(GPU)/acflow-test: $(patsubst %.c,$(B)/f32/%.o,$(SRC) $(PLOT) $(CLI_PARTS) $(TESTS))
	$(call GPU_LINK,$(PLOT_LIBS) -lcmocka)
$(GPU)/acflow: $(patsubst %.c,$(B)/lib/%.o,$(SRC) $(PLOT) $(CLI))
	$(call GPU_LINK,$(PLOT_LIBS))
$(GPU)/acflow-bench: $(patsubst %.c,$(B)/lib/%.o,$(SRC) bench/gpu.c)
	$(call GPU_LINK)
$(GPU)/acflow-bench-images: $(patsubst %.c,$(B)/lib/%.o,$(SRC) bench/gpu_images.c)
	$(call GPU_LINK)

# One file that needs glibc and nothing else, to be copied to any machine (ARCH=x86-64-v3), with the plugin beside it.
# Debian's -dev packages
# have an archive of every library in the tree under cairo. glibc itself stays shared: a plugin can only be loaded so.
STATIC_LIBS := jansson cairo pixman-1 fontconfig freetype png16 jpeg expat brotlidec brotlicommon Xext Xrender X11 \
               xcb-shm xcb-render xcb Xau Xdmcp z gomp
static:
	@tests/need.sh $(PACKAGES)
	$(AGAIN) $(B)/static/acflow
	@if command -v $(NVCC) >/dev/null; then $(MAKE) --no-print-directory $(B)/libacflow_cuda.so && strip -o $(B)/static/libacflow_cuda.so $(B)/libacflow_cuda.so; \
	 else echo '$(B)/static/acflow is without its plugin: there is no $(NVCC)'; fi
$(B)/static/acflow: $(patsubst %.c,$(B)/lib/%.o,$(SRC) $(PLOT) $(CLI))
	@mkdir -p $(@D)
	$(CC) -static-libgcc $^ -Wl,-Bstatic $(addprefix -l,$(STATIC_LIBS)) -Wl,-Bdynamic -lm -s -o $@

# What a user asks for first makes sure of the packages; the build is then a make of its own, which sees them.
AGAIN = @$(MAKE) --no-print-directory -s $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))
demo: need
	$(AGAIN) all $(B)/demo-report
	@B=$(B) examples/demo.sh
test: need
	$(AGAIN) all $(B)/demo-report $(patsubst bench/%.c,$(B)/bench-%,$(BENCH)) $(patsubst bench/lab/%.c,$(B)/lab-%,$(LABS)) \
	  $(patsubst experiments/%.c,$(B)/experiment-%,$(wildcard experiments/*.c)) $(B)/f32/acflow-test $(B)/f64/acflow-test
	@B=$(B) tests/run.sh
# For mutate.sh: how the f64 variant is compiled and linked.
print-f64:
	@echo '$(CC) $(FLAGS) $(PKG_CFLAGS) $(PLOT_CFLAGS) $(DEBUG) -DACF_DOUBLE'
	@echo '$(LIBS) $(PLOT_LIBS) -lcmocka'
test-long: test
	@B=$(B) tests/static.sh
	@B=$(B) tests/tiny.sh
	@experiments/paper.sh all --quick --lib $(B)/libacflow.so
	@B=$(B) tests/mutate.sh
test-san:
	@tests/need.sh --clang $(PACKAGES) $(SAN_PACKAGES)
	$(AGAIN) $(B)/asan32/acflow-test $(B)/asan64/acflow-test $(B)/tsan/acflow-test
	@B=$(B) tests/sanitize.sh
bench: need
	$(AGAIN) $(B)/bench-engine
	@B=$(B) bench/run.sh
# Compiles everything with both compilers; -Werror makes any warning fatal.
lint: all $(patsubst %.c,$(B)/clang32/%.o,$(CLI) $(BENCH) $(LABS) $(EXAMPLES)) $(B)/clang32/acflow-test $(B)/clang64/acflow-test $(B)/f32/acflow-test $(B)/f64/acflow-test

# The program prints its pages and its completion from the tables that --help and the parser use. acflow.1 comes last:
# with it all are there.
man: $(B)/man/acflow.1
$(B)/man/acflow.1: $(B)/acflow
	@mkdir -p $(@D) && rm -f $(@D)/*
	for c in $$($< help --commands); do $< help --man $$c > $(@D)/acflow-$$c.1 || exit 1; done
	$< help --completion > $(@D)/acflow.bash
	$< help --man > $@.part && mv $@.part $@

SHARE = $(DESTDIR)$(PREFIX)/share
install: all man
	install -d $(DESTDIR)$(PREFIX)/bin $(DESTDIR)$(PREFIX)/include $(DESTDIR)$(PREFIX)/lib/pkgconfig
	install -d $(SHARE)/man/man1 $(SHARE)/bash-completion/completions
	install -m 644 $(B)/man/*.1 $(SHARE)/man/man1
	install -m 644 $(B)/man/acflow.bash $(SHARE)/bash-completion/completions/acflow
	install -m 755 $(B)/acflow $(DESTDIR)$(PREFIX)/bin/acflow
	install -m 644 include/acflow.h $(DESTDIR)$(PREFIX)/include/acflow.h
	install -m 644 $(B)/libacflow.a $(DESTDIR)$(PREFIX)/lib/libacflow.a
	install -m 755 $(B)/libacflow.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/libacflow.so.$(VERSION)
	install -m 755 $(B)/libacflow_plot.so $(DESTDIR)$(PREFIX)/lib/libacflow_plot.so
	[ ! -e $(B)/libacflow_cuda.so ] || install -m 755 $(B)/libacflow_cuda.so $(DESTDIR)$(PREFIX)/lib/libacflow_cuda.so
	ln -sf libacflow.so.$(VERSION) $(DESTDIR)$(PREFIX)/lib/libacflow.so.$(SOVERSION)
	ln -sf libacflow.so.$(SOVERSION) $(DESTDIR)$(PREFIX)/lib/libacflow.so
	printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include' '' 'Name: acflow' \
	  'Description: arbitrary conditional density estimation and imputation for tables' 'Version: $(VERSION)' \
	  'Libs: -L$${libdir} -lacflow' 'Libs.private: $(LIBS) -fopenmp' 'Cflags: -I$${includedir}' \
	  > $(DESTDIR)$(PREFIX)/lib/pkgconfig/acflow.pc

deps:
	apt-get update && apt-get install -y --no-install-recommends $(PACKAGES)
# Installs what is missing where that is allowed, and otherwise says the one command to run.
need:
	@tests/need.sh $(PACKAGES)

clean:
	rm -rf $(B)
