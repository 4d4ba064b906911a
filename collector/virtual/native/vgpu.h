/* The virtual GPU: what its files share.
 *
 * Every function of NVIDIA's libraries that is written by hand is exported as
 * `vgpu_<name>`; the stubs, built for one torch, jump to them. The figures of a
 * device come from the environment, what is used of it is accounted for in a file.
 *
 * runtime/    libcudart: the device, memory, streams, graphs, launches
 * driver/     what NVIDIA's driver brings: libcuda and NVML
 * libraries/  cuBLAS and the like, cuDNN, NCCL
 * accounting/ what is kept: bytes taken, addresses, small data, calls
 * tables/     names: what unwritten functions answer, all functions of a library
 */
#ifndef VGPU_H
#define VGPU_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define API(type, name) __attribute__((visibility("default"))) type vgpu_##name

/* cudaError_t and CUresult agree in the numbers used here. */
enum {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  NO_DEVICE = 100,
  INVALID_DEVICE = 101,
  NOT_FOUND = 500,
  NOT_READY = 600,
  PEER_ALREADY_ENABLED = 704,
  PEER_NOT_ENABLED = 705,
  HOST_NOT_REGISTERED = 713,
  NOT_SUPPORTED = 801,
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_INVALIDATED = 901,
  CAPTURED_EVENT = 907,
};

#define MAX_DEVICES 64
#define GRANULE ((size_t)2 << 20)

static inline size_t round_up(size_t n, size_t unit) {
  return (n + unit - 1) / unit * unit;
}

/* runtime/device.c: what the environment says of the devices. */
typedef struct {
  char name[128];
  size_t memory;  /* bytes, as torch reports them */
  size_t context; /* bytes that a process's context takes */
  int count, major, minor, multiprocessors;
  int threads_per_sm, blocks_per_sm, shared_per_sm, shared_per_block, l2_bytes;
  int bus_bits, clock_khz, memory_clock_khz;
  int cuda; /* version of the runtime that torch was built for: 12040 */
  int cudnn, nccl;
  bool events_wait; /* events of side streams complete at a synchronisation */
} spec_t;

const spec_t *spec(void);
int visible_devices(void);
int physical_device(int device);
int fail(int error); /* remembers it as the thread's last error */
int ready(void);     /* an error where CUDA cannot be used (after a fork) */
int context(void);   /* the same, and the current device has a context */
bool has_context(int device);
int current_device(void);
int capability(void); /* 90 for 9.0 */

/* accounting/accounting.c: what is used, shared by all processes on the same devices. */
int take(int device, size_t bytes);
void give(int device, size_t bytes, unsigned generation);
unsigned generation(void); /* rises in a forked child: memory before is not its own */
size_t used_by_all(int device);
void context_made(int device);
bool forked_after_use(void);
typedef struct {
  int pid;
  size_t bytes;
} user_t;
int users_of(int device, user_t *users, int room);

/* accounting/ranges.c: which address belongs to what. */
typedef enum { DEVICE_MEMORY, RESERVED_ADDRESSES, PINNED_HOST, REGISTERED_HOST, MANAGED } kind_t;
typedef struct range {
  uintptr_t start;
  size_t bytes; /* as requested */
  size_t size;  /* as taken */
  kind_t kind;
  int device;
  unsigned generation;
  uint64_t id;
  void *pool;
  struct range *left, *right;
  uint64_t priority;
} range_t;
void *address_space(size_t bytes, void *wanted);
range_t *add_range(uintptr_t start, size_t bytes, size_t size, kind_t kind, int device);
bool find_range(const void *address, range_t *copy);
bool remove_range(const void *start, range_t *copy);
bool on_device(const void *address);

/* runtime/streams.c and graphs.c */
typedef struct stream stream_t;
bool any_capture(void);
int capture_forbids(void *stream);
void count_node(void *stream);
void finish_device(int device);
void works_on(void *stream);
void count_work(void);

/* accounting/calls.c */
typedef struct {
  const char *library, *name;
  uint64_t *slot;
  long answer;
  long works; /* not only sets, asks for, makes or ends something */
} call_t;
long count_call(call_t *call);

/* runtime/pools.c */
int vgpu_cudaFreeAsync(void *pointer, void *stream);
void trim_at_synchronisation(int device);

/* driver/driver.c */
void *driver_entry(const char *name);

#endif
