/* Device and host memory: taken, given back, copied, asked about. */
#define _GNU_SOURCE
#include "accounting/shadows.h"
#include "vgpu.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

API(int, cudaMalloc)(void **pointer, size_t bytes) {
  int error = context();
  if (error) return error;
  *pointer = NULL;
  if (!bytes) return SUCCESS;
  if (bytes > spec()->memory) return fail(OUT_OF_MEMORY);
  size_t size = round_up(bytes, GRANULE);
  int device = current_device();
  if (take(physical_device(device), size)) return fail(OUT_OF_MEMORY);
  void *at = address_space(size, NULL);
  if (!at || !add_range((uintptr_t)at, bytes, size, DEVICE_MEMORY, device)) {
    give(physical_device(device), size, generation());
    return fail(OUT_OF_MEMORY);
  }
  *pointer = at;
  return SUCCESS;
}

API(int, cudaFree)(void *pointer) {
  range_t range;
  if (!pointer) return context(); /* the usual way to make one */
  if (!find_range(pointer, &range)) return fail(INVALID_VALUE);
  if (range.pool) return vgpu_cudaFreeAsync(pointer, NULL);
  if (range.start != (uintptr_t)pointer || !remove_range(pointer, &range)) return fail(INVALID_VALUE);
  finish_device(range.device);
  forget(pointer, range.size);
  munmap(pointer, range.size);
  if (range.kind == DEVICE_MEMORY)
    give(physical_device(range.device), range.size, range.generation);
  return SUCCESS;
}

API(int, cudaMallocPitch)(void **pointer, size_t *pitch, size_t width, size_t height) {
  *pitch = round_up(width, 512);
  return vgpu_cudaMalloc(pointer, *pitch * height);
}

API(int, cudaMemGetInfo)(size_t *unused, size_t *all) {
  int error = context();
  if (error) return error;
  size_t used = used_by_all(physical_device(current_device()));
  *all = spec()->memory;
  *unused = used < *all ? *all - used : 0;
  return SUCCESS;
}

static int host_memory(void **pointer, size_t bytes, kind_t kind) {
  int error = context();
  if (error) return error;
  *pointer = NULL;
  if (!bytes) return SUCCESS;
  size_t size = round_up(bytes, 4096);
  void *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return fail(OUT_OF_MEMORY);
  add_range((uintptr_t)at, bytes, size, kind, current_device());
  *pointer = at;
  return SUCCESS;
}

API(int, cudaHostAlloc)(void **pointer, size_t bytes, unsigned flags) {
  (void)flags;
  return host_memory(pointer, bytes, PINNED_HOST);
}
API(int, cudaMallocHost)(void **pointer, size_t bytes) {
  return host_memory(pointer, bytes, PINNED_HOST);
}
API(int, cudaMallocManaged)(void **pointer, size_t bytes, unsigned flags) {
  (void)flags;
  return host_memory(pointer, bytes, MANAGED);
}

API(int, cudaFreeHost)(void *pointer) {
  range_t range;
  if (!pointer) return SUCCESS;
  if (!remove_range(pointer, &range)) return fail(INVALID_VALUE);
  munmap(pointer, range.size);
  return SUCCESS;
}

API(int, cudaHostRegister)(void *pointer, size_t bytes, unsigned flags) {
  (void)flags;
  int error = context();
  if (error) return error;
  if (!pointer || !bytes) return fail(INVALID_VALUE);
  add_range((uintptr_t)pointer, bytes, bytes, REGISTERED_HOST, current_device());
  return SUCCESS;
}

API(int, cudaHostUnregister)(void *pointer) {
  range_t range;
  if (!find_range(pointer, &range) || range.kind != REGISTERED_HOST ||
      !remove_range(pointer, &range))
    return fail(HOST_NOT_REGISTERED);
  return SUCCESS;
}

API(int, cudaHostGetDevicePointer)(void **device, void *host, unsigned flags) {
  (void)flags;
  *device = host;
  return SUCCESS;
}
API(int, cudaHostGetFlags)(unsigned *flags, void *host) {
  range_t range;
  if (!find_range(host, &range)) return fail(INVALID_VALUE);
  *flags = 0;
  return SUCCESS;
}

typedef struct {
  int type; /* 0 not CUDA's, 1 host, 2 device, 3 managed */
  int device;
  void *device_pointer, *host_pointer;
  long reserved[8]; /* CUDA 13 has them */
} pointer_attributes_t;

API(int, cudaPointerGetAttributes)(pointer_attributes_t *attributes, const void *pointer) {
  range_t range;
  memset(attributes, 0, spec()->cuda >= 13000 ? sizeof *attributes : 24);
  attributes->device = -2;
  if (!find_range(pointer, &range)) return SUCCESS;
  attributes->device = range.device;
  attributes->device_pointer = (void *)pointer;
  bool host = range.kind != DEVICE_MEMORY && range.kind != RESERVED_ADDRESSES;
  if (host) attributes->host_pointer = (void *)pointer;
  attributes->type = range.kind == MANAGED ? 3 : host ? 1 : 2;
  return SUCCESS;
}

/* Who is told of reads whose values are not real; on the reading thread. */
typedef void reading_t(const void *from, size_t bytes);
static reading_t *told;
__attribute__((visibility("default"))) void memboard_vgpu_on_read(reading_t *callback) {
  __atomic_store_n(&told, callback, __ATOMIC_RELEASE);
}

static void read_back(void *to, const void *from, size_t bytes) {
  reading_t *callback = __atomic_load_n(&told, __ATOMIC_ACQUIRE);
  if (!read_shadow(to, from, bytes) && callback) callback(from, bytes);
}

/* Copies and fills. What was uploaded and is still known comes back, the rest
 * of device memory reads as zeros. */
static int copy(void *to, const void *from, size_t bytes, void *stream) {
  if (!bytes) return SUCCESS;
  if (!to || !from) return fail(INVALID_VALUE);
  bool to_device = on_device(to), from_device = on_device(from);
  count_node(stream);
  if (to_device && from_device) move_shadow(to, from, bytes);
  else if (to_device) keep_shadow(to, from, bytes);
  else if (from_device) read_back(to, from, bytes);
  else memmove(to, from, bytes);
  return SUCCESS;
}

API(int, cudaMemcpy)(void *to, const void *from, size_t bytes, int kind) {
  (void)kind;
  int error = ready();
  if (!error) error = capture_forbids(NULL);
  return error ? error : copy(to, from, bytes, NULL);
}
API(int, cudaMemcpyAsync)(void *to, const void *from, size_t bytes, int kind, void *stream) {
  (void)kind;
  int error = ready();
  return error ? error : copy(to, from, bytes, stream);
}
API(int, cudaMemcpyPeerAsync)(void *to, int to_device, const void *from, int from_device,
                              size_t bytes, void *stream) {
  (void)to_device, (void)from_device;
  return copy(to, from, bytes, stream);
}
API(int, cudaMemcpyPeer)(void *to, int to_device, const void *from, int from_device, size_t bytes) {
  (void)to_device, (void)from_device;
  return copy(to, from, bytes, NULL);
}

API(int, cudaMemcpy2DAsync)(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                            size_t width, size_t height, int kind, void *stream) {
  (void)kind;
  for (size_t row = 0; row < height; ++row) {
    int error = copy((char *)to + row * to_pitch, (const char *)from + row * from_pitch, width, stream);
    if (error) return error;
  }
  return SUCCESS;
}
API(int, cudaMemcpy2D)(void *to, size_t to_pitch, const void *from, size_t from_pitch,
                       size_t width, size_t height, int kind) {
  return vgpu_cudaMemcpy2DAsync(to, to_pitch, from, from_pitch, width, height, kind, NULL);
}

API(int, cudaMemsetAsync)(void *to, int value, size_t bytes, void *stream) {
  if (!bytes) return SUCCESS;
  count_node(stream);
  if (on_device(to)) fill_shadow(to, value, bytes);
  else memset(to, value, bytes);
  return SUCCESS;
}
API(int, cudaMemset)(void *to, int value, size_t bytes) {
  return vgpu_cudaMemsetAsync(to, value, bytes, NULL);
}
API(int, cudaMemset2DAsync)(void *to, size_t pitch, int value, size_t width, size_t height, void *stream) {
  for (size_t row = 0; row < height; ++row)
    vgpu_cudaMemsetAsync((char *)to + row * pitch, value, width, stream);
  return SUCCESS;
}
