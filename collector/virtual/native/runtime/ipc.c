/* Memory and events shared between processes: the other one gets addresses of
 * its own, which count nothing. Nothing that is written passes over. */
#define _GNU_SOURCE
#include "accounting/shadows.h"
#include "vgpu.h"

#include <string.h>
#include <sys/mman.h>

typedef struct {
  uint64_t id;
  uintptr_t start;
  size_t size;
  int device;
} shared_t;

typedef struct {
  union {
    shared_t shared;
    char room[64];
  };
} handle_t;

int vgpu_cudaEventCreateWithFlags(void **event, unsigned flags);

API(int, cudaIpcGetMemHandle)(handle_t *handle, void *pointer) {
  range_t range;
  if (!find_range(pointer, &range) || range.kind != DEVICE_MEMORY) return fail(INVALID_VALUE);
  memset(handle, 0, sizeof *handle);
  handle->shared = (shared_t){range.id, range.start, range.size, range.device};
  return SUCCESS;
}

API(int, cudaIpcOpenMemHandle)(void **pointer, handle_t handle, unsigned flags) {
  (void)flags;
  int error = context();
  if (error) return error;
  size_t size = handle.shared.size;
  void *at = size ? address_space(size, NULL) : NULL;
  if (!at || !add_range((uintptr_t)at, size, size, RESERVED_ADDRESSES, current_device()))
    return fail(INVALID_VALUE);
  *pointer = at;
  return SUCCESS;
}

API(int, cudaIpcCloseMemHandle)(void *pointer) {
  range_t range;
  if (!remove_range(pointer, &range)) return fail(INVALID_VALUE);
  forget(pointer, range.size);
  munmap(pointer, range.size);
  return SUCCESS;
}

API(int, cudaIpcGetEventHandle)(handle_t *handle, void *event) {
  (void)event;
  memset(handle, 0, sizeof *handle);
  return ready();
}
API(int, cudaIpcOpenEventHandle)(void **event, handle_t handle) {
  (void)handle;
  return vgpu_cudaEventCreateWithFlags(event, 0);
}
