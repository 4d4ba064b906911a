/* Kernels: registered, asked about, launched. A launch does nothing. */
#define _GNU_SOURCE
#include "accounting/shadows.h"
#include "vgpu.h"

#include <stdlib.h>
#include <string.h>

typedef struct {
  unsigned x, y, z;
} size3_t;

static __thread struct {
  size3_t grid, block;
  size_t shared;
  void *stream;
} configuration[8];
static __thread unsigned depth;

API(void **, __cudaRegisterFatBinary)(void *binary) {
  void **handle = malloc(sizeof *handle);
  if (handle) *handle = binary;
  return handle;
}
API(void, __cudaUnregisterFatBinary)(void **handle) { free(handle); }
API(void, __cudaRegisterFatBinaryEnd)(void **handle) { (void)handle; }
API(char, __cudaInitModule)(void **handle) {
  (void)handle;
  return 1;
}
API(void, __cudaRegisterVar)(void) {}

/* torch's kernels whose output has a known place among their arguments; by far
 * most of what reads small tensors. Others may write to any. */
typedef struct {
  const void *kernel;
  writes_t writes;
} known_t;
static known_t *known_kernels; /* a hash table, at most half full */
static size_t n_known, known_room;
static pthread_mutex_t knowing = PTHREAD_MUTEX_INITIALIZER;

static known_t *place_of(known_t *table, size_t room, const void *kernel) {
  size_t at = ((uintptr_t)kernel >> 4) * 0x9e3779b97f4a7c15ULL % room;
  while (table[at].kernel && table[at].kernel != kernel) at = (at + 1) % room;
  return &table[at];
}

static void know(const void *kernel, writes_t writes) {
  pthread_mutex_lock(&knowing);
  if (2 * n_known >= known_room) {
    size_t more = known_room ? 2 * known_room : 1 << 14;
    known_t *wider = calloc(more, sizeof *wider);
    for (size_t i = 0; wider && i < known_room; ++i)
      if (known_kernels[i].kernel) *place_of(wider, more, known_kernels[i].kernel) = known_kernels[i];
    if (wider) free(known_kernels), known_kernels = wider, known_room = more;
  }
  if (2 * n_known < known_room) {
    *place_of(known_kernels, known_room, kernel) = (known_t){kernel, writes};
    ++n_known;
  }
  pthread_mutex_unlock(&knowing);
}

API(void, __cudaRegisterFunction)(void **binary, const void *kernel, char *function, const char *name) {
  (void)binary, (void)function;
  if (strstr(name, "29vectorized_elementwise_kernel") || strstr(name, "27unrolled_elementwise_kernel"))
    know(kernel, THIRD_ARGUMENT);
  else if (strstr(name, "CatArrayBatchedCopy")) know(kernel, FIRST_ARGUMENT);
}

API(unsigned, __cudaPushCallConfiguration)(size3_t grid, size3_t block, size_t shared, void *stream) {
  unsigned at = depth++ % 8;
  configuration[at].grid = grid;
  configuration[at].block = block;
  configuration[at].shared = shared;
  configuration[at].stream = stream;
  return SUCCESS;
}

API(int, __cudaPopCallConfiguration)(size3_t *grid, size3_t *block, size_t *shared, void **stream) {
  if (!depth) return fail(INVALID_VALUE);
  unsigned at = --depth % 8;
  *grid = configuration[at].grid;
  *block = configuration[at].block;
  *shared = configuration[at].shared;
  *stream = configuration[at].stream;
  return SUCCESS;
}

static int launch(const void *kernel, void **arguments, void *stream) {
  int error = ready();
  if (error) return error;
  if (any_shadow()) {
    pthread_mutex_lock(&knowing);
    known_t *known = known_room ? place_of(known_kernels, known_room, kernel) : NULL;
    writes_t writes = known && known->kernel ? known->writes : ANY_ADDRESS;
    pthread_mutex_unlock(&knowing);
    launch_writes(arguments, writes);
  }
  count_node(stream);
  return SUCCESS;
}

API(int, cudaLaunchKernel)(const void *kernel, size3_t grid, size3_t block, void **arguments,
                           size_t shared, void *stream) {
  (void)grid, (void)block, (void)shared;
  return launch(kernel, arguments, stream);
}
API(int, __cudaLaunchKernel)(const void *kernel, size3_t grid, size3_t block, void **arguments,
                             size_t shared, void *stream) {
  (void)grid, (void)block, (void)shared;
  return launch(kernel, arguments, stream);
}
API(int, cudaLaunchCooperativeKernel)(const void *kernel, size3_t grid, size3_t block,
                                      void **arguments, size_t shared, void *stream) {
  (void)grid, (void)block, (void)shared;
  return launch(kernel, arguments, stream);
}

typedef struct {
  size3_t grid, block;
  size_t shared;
  void *stream, *attributes;
  unsigned n_attributes;
} launch_t;
API(int, cudaLaunchKernelExC)(const launch_t *how, const void *kernel, void **arguments) {
  return launch(kernel, arguments, how->stream);
}

API(int, __cudaGetKernel)(void **kernel, const void *function) {
  *kernel = (void *)function;
  return SUCCESS;
}

typedef struct {
  size_t shared, constants, local;
  int threads, registers, ptx, binary, cache_all, dynamic_shared, carveout, rest[23];
} function_attributes_t;

/* The newest architecture that torch builds for and that this device can run. */
static int built_for(void) {
  static const int known[] = {120, 103, 100, 90, 86, 80, 75, 70, 60, 50};
  for (size_t i = 0; i < sizeof known / sizeof *known; ++i)
    if (known[i] <= capability() && known[i] / 10 == capability() / 10) return known[i];
  return capability();
}

API(int, cudaFuncGetAttributes)(function_attributes_t *attributes, const void *kernel) {
  (void)kernel;
  int error = context();
  if (error) return error;
  memset(attributes, 0, sizeof *attributes);
  attributes->threads = 1024;
  attributes->registers = 32;
  attributes->ptx = attributes->binary = built_for();
  attributes->dynamic_shared = spec()->shared_per_block;
  return SUCCESS;
}

static int least(int a, int b) { return a < b ? a : b; }

/* For a kernel of 32 registers. */
static int blocks_at_once(int threads, size_t shared) {
  if (threads <= 0) return 0;
  const spec_t *s = spec();
  int whole = (int)round_up((size_t)threads, 32);
  int blocks = least(s->blocks_per_sm, s->threads_per_sm / whole);
  blocks = least(blocks, 65536 / (32 * whole));
  return shared ? least(blocks, (int)((size_t)s->shared_per_sm / (shared + 1024))) : blocks;
}

API(int, cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags)(int *blocks, const void *kernel, int threads, size_t shared, unsigned flags) {
  (void)kernel, (void)flags;
  *blocks = blocks_at_once(threads, shared);
  return SUCCESS;
}
API(int, cudaOccupancyMaxActiveBlocksPerMultiprocessor)(int *blocks, const void *kernel, int threads, size_t shared) {
  (void)kernel;
  *blocks = blocks_at_once(threads, shared);
  return SUCCESS;
}
API(int, cudaOccupancyMaxActiveClusters)(int *clusters, const void *kernel, const launch_t *how) {
  (void)kernel, (void)how;
  *clusters = spec()->multiprocessors / 2;
  return SUCCESS;
}
API(int, cudaOccupancyAvailableDynamicSMemPerBlock)(size_t *bytes, const void *kernel, int blocks, int threads) {
  (void)kernel, (void)threads;
  *bytes = (size_t)(spec()->shared_per_sm / (blocks > 0 ? blocks : 1));
  return SUCCESS;
}

/* Variables of a module: an address of their own, which nothing is behind. */
API(int, cudaGetSymbolAddress)(void **address, const void *symbol) {
  *address = (void *)symbol;
  return context();
}
API(int, cudaMemcpyToSymbol)(void) { return context(); }

API(int, cudaLibraryLoadData)(void **library) {
  *library = calloc(1, 1);
  return context();
}
API(int, cudaLibraryUnload)(void *library) {
  free(library);
  return SUCCESS;
}
API(int, cudaLibraryGetKernel)(void **kernel, void *library, const char *name) {
  (void)name;
  *kernel = library;
  return SUCCESS;
}
