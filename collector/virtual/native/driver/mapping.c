/* Addresses reserved and memory mapped into them: expandable segments.
 * Memory counts from cuMemCreate until it is released and nowhere mapped. */
#define _GNU_SOURCE
#include "accounting/shadows.h"
#include "vgpu.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct {
  size_t bytes;
  int device;
  unsigned generation;
  int holders; /* the handle and each mapping */
} physical_t;

typedef struct mapped {
  uintptr_t start;
  size_t bytes;
  physical_t *physical;
  struct mapped *next;
} mapped_t;

#define BUCKETS 4096
static mapped_t *mappings[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static mapped_t **bucket(uintptr_t start) { return &mappings[start / GRANULE % BUCKETS]; }

/* Under the lock. */
static void let_go(physical_t *physical) {
  if (--physical->holders) return;
  give(physical_device(physical->device), physical->bytes, physical->generation);
  free(physical);
}

API(int, cuMemGetAllocationGranularity)(size_t *bytes, const void *properties, int which) {
  (void)properties, (void)which;
  *bytes = GRANULE;
  return SUCCESS;
}

API(int, cuMemAddressReserve)(uintptr_t *start, size_t bytes, size_t alignment, uintptr_t wanted,
                              unsigned long long flags) {
  (void)alignment, (void)flags;
  int error = context();
  if (error) return error;
  size_t size = round_up(bytes, GRANULE);
  void *at = address_space(size, (void *)wanted);
  if (!at) return OUT_OF_MEMORY;
  add_range((uintptr_t)at, bytes, size, RESERVED_ADDRESSES, current_device());
  *start = (uintptr_t)at;
  return SUCCESS;
}

API(int, cuMemAddressFree)(uintptr_t start, size_t bytes) {
  range_t range;
  (void)bytes;
  if (!remove_range((void *)start, &range)) return INVALID_VALUE;
  munmap((void *)start, range.size);
  return SUCCESS;
}

/* The location stands after two ints: its kind (1: a device) and its number. */
API(int, cuMemCreate)(physical_t **handle, size_t bytes, const int *properties,
                      unsigned long long flags) {
  (void)flags;
  int error = context();
  if (error) return error;
  int device = properties[2] == 1 ? properties[3] : current_device();
  if (device < 0 || device >= visible_devices()) return INVALID_DEVICE;
  if (bytes % GRANULE) return INVALID_VALUE;
  if (take(physical_device(device), bytes)) return OUT_OF_MEMORY;
  physical_t *physical = malloc(sizeof *physical);
  if (!physical) return OUT_OF_MEMORY;
  *physical = (physical_t){bytes, device, generation(), 1};
  *handle = physical;
  return SUCCESS;
}

API(int, cuMemRelease)(physical_t *handle) {
  pthread_mutex_lock(&lock);
  let_go(handle);
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}

API(int, cuMemMap)(uintptr_t start, size_t bytes, size_t offset, physical_t *handle,
                   unsigned long long flags) {
  (void)offset, (void)flags;
  range_t range;
  if (!find_range((void *)start, &range) || range.kind != RESERVED_ADDRESSES) return INVALID_VALUE;
  mapped_t *mapping = malloc(sizeof *mapping);
  if (!mapping) return OUT_OF_MEMORY;
  pthread_mutex_lock(&lock);
  *mapping = (mapped_t){start, bytes, handle, *bucket(start)};
  *bucket(start) = mapping;
  handle->holders += 1;
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}

/* Takes all mappings that start in the range, as torch unmaps them. */
API(int, cuMemUnmap)(uintptr_t start, size_t bytes) {
  forget((void *)start, bytes);
  pthread_mutex_lock(&lock);
  for (uintptr_t page = start; page < start + bytes; page += GRANULE)
    for (mapped_t **at = bucket(page); *at;) {
      mapped_t *mapping = *at;
      if (mapping->start != page) {
        at = &mapping->next;
        continue;
      }
      *at = mapping->next;
      let_go(mapping->physical);
      free(mapping);
    }
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}

API(int, cuMemSetAccess)(uintptr_t start, size_t bytes, const void *access, size_t n) {
  (void)bytes, (void)access, (void)n;
  return find_range((void *)start, NULL) ? SUCCESS : INVALID_VALUE;
}

/* Sharing between processes: the other one gets addresses that count nothing. */
API(int, cuMemExportToShareableHandle)(int *file, physical_t *handle, int kind, unsigned long long flags) {
  (void)kind, (void)flags;
  *file = memfd_create("virtual-gpu-memory", MFD_CLOEXEC);
  if (*file < 0 || write(*file, &handle->bytes, sizeof handle->bytes) < 0) return NOT_SUPPORTED;
  return SUCCESS;
}
API(int, cuMemImportFromShareableHandle)(physical_t **handle, void *file, int kind) {
  (void)kind;
  physical_t *physical = malloc(sizeof *physical);
  if (!physical) return OUT_OF_MEMORY;
  *physical = (physical_t){0, current_device(), generation(), 1};
  if (pread((int)(intptr_t)file, &physical->bytes, sizeof physical->bytes, 0) < 0) {
    free(physical);
    return INVALID_VALUE;
  }
  physical->generation = generation() - 1; /* counted where it was created */
  *handle = physical;
  return SUCCESS;
}
