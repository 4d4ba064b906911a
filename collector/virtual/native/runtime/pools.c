/* Memory pools (cudaMallocAsync): blocks in chunks of 32 MiB and more, best fit,
 * neighbours joined. The driver's own rules are not public; reserved and used
 * follow what is documented: free chunks go back at a trim, at a
 * synchronisation above the release threshold, and when memory runs out. */
#define _GNU_SOURCE
#include "accounting/shadows.h"
#include "vgpu.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK ((size_t)32 << 20)
#define UNIT ((size_t)512)
#define BUCKETS 65536

typedef struct block {
  uintptr_t start;
  size_t size, asked;
  bool in_use;
  struct block *before, *after;         /* neighbours in the chunk */
  struct block *next_free, *prior_free; /* free blocks of the pool */
  struct block *next_hashed;
} block_t;

typedef struct pool {
  int device;
  uint64_t threshold, reserved, reserved_high, used, used_high;
  unsigned generation;
  block_t *unused;
} pool_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pool_t defaults[MAX_DEVICES];
static pool_t *current_pools[MAX_DEVICES];
static block_t *by_address[BUCKETS];

static block_t **bucket(uintptr_t start) { return &by_address[start / UNIT % BUCKETS]; }

static void put_free(pool_t *pool, block_t *block) {
  block->in_use = false;
  block->prior_free = NULL;
  block->next_free = pool->unused;
  if (pool->unused) pool->unused->prior_free = block;
  pool->unused = block;
}

static void take_free(pool_t *pool, block_t *block) {
  if (block->prior_free) block->prior_free->next_free = block->next_free;
  else pool->unused = block->next_free;
  if (block->next_free) block->next_free->prior_free = block->prior_free;
}

static pool_t *default_pool(int device) {
  pool_t *pool = &defaults[device];
  pool->device = device;
  return pool;
}

static pool_t *current_pool(int device) {
  return current_pools[device] ? current_pools[device] : default_pool(device);
}

/* Under the lock: whole chunks go back while more than `keep` bytes stay. */
static void trim(pool_t *pool, uint64_t keep) {
  for (block_t *block = pool->unused, *next; block; block = next) {
    next = block->next_free;
    if (block->before || block->after || pool->reserved < keep + block->size) continue;
    range_t range;
    take_free(pool, block);
    if (remove_range((void *)block->start, &range)) {
      munmap((void *)block->start, range.size);
      give(physical_device(pool->device), range.size, range.generation);
    }
    pool->reserved -= block->size;
    free(block);
  }
}

static block_t *new_chunk(pool_t *pool, size_t size) {
  size_t whole = round_up(size, CHUNK);
  if (take(physical_device(pool->device), whole)) {
    trim(pool, 0);
    if (take(physical_device(pool->device), whole)) {
      whole = round_up(size, GRANULE);
      if (take(physical_device(pool->device), whole)) return NULL;
    }
  }
  block_t *block = calloc(1, sizeof *block);
  void *at = address_space(whole, NULL);
  range_t *range = at ? add_range((uintptr_t)at, whole, whole, DEVICE_MEMORY, pool->device) : NULL;
  if (!block || !range) {
    give(physical_device(pool->device), whole, generation());
    free(block);
    return NULL;
  }
  range->pool = pool;
  block->start = (uintptr_t)at;
  block->size = whole;
  pool->reserved += whole;
  if (pool->reserved > pool->reserved_high) pool->reserved_high = pool->reserved;
  put_free(pool, block);
  return block;
}

static block_t *best_fit(pool_t *pool, size_t size) {
  block_t *best = NULL;
  for (block_t *block = pool->unused; block; block = block->next_free)
    if (block->size >= size && (!best || block->size < best->size)) best = block;
  return best ? best : new_chunk(pool, size);
}

static int allocate(void **pointer, size_t bytes, pool_t *pool) {
  int error = context();
  if (error) return error;
  *pointer = NULL;
  if (!bytes) return SUCCESS;
  if (bytes > spec()->memory) return fail(OUT_OF_MEMORY);
  size_t size = round_up(bytes, UNIT);
  pthread_mutex_lock(&lock);
  if (pool->generation != generation()) { /* a forked child's memory is none of its own */
    pool->generation = generation();
    pool->reserved = pool->used = pool->reserved_high = pool->used_high = 0;
    pool->unused = NULL;
  }
  block_t *block = best_fit(pool, size);
  if (block) {
    take_free(pool, block);
    block_t *rest = block->size > size ? calloc(1, sizeof *rest) : NULL;
    if (rest) {
      *rest = (block_t){.start = block->start + size, .size = block->size - size, .before = block, .after = block->after};
      if (rest->after) rest->after->before = rest;
      block->after = rest;
      block->size = size;
      put_free(pool, rest);
    }
    block->in_use = true;
    block->asked = bytes;
    block->next_hashed = *bucket(block->start);
    *bucket(block->start) = block;
    pool->used += block->size;
    if (pool->used > pool->used_high) pool->used_high = pool->used;
    *pointer = (void *)block->start;
  }
  pthread_mutex_unlock(&lock);
  return block ? SUCCESS : fail(OUT_OF_MEMORY);
}

/* Joins a free block with the free one that follows it. */
static void join(pool_t *pool, block_t *block) {
  block_t *after = block->after;
  if (!after || after->in_use) return;
  take_free(pool, after);
  block->size += after->size;
  block->after = after->after;
  if (block->after) block->after->before = block;
  free(after);
}

API(int, cudaFreeAsync)(void *pointer, void *stream) {
  (void)stream;
  range_t range;
  if (!pointer) return SUCCESS;
  if (!find_range(pointer, &range) || !range.pool) return fail(INVALID_VALUE);
  pool_t *pool = range.pool;
  pthread_mutex_lock(&lock);
  block_t **at = bucket((uintptr_t)pointer);
  while (*at && (*at)->start != (uintptr_t)pointer) at = &(*at)->next_hashed;
  block_t *block = *at;
  if (block) {
    *at = block->next_hashed;
    forget(pointer, block->size);
    pool->used -= block->size;
    put_free(pool, block);
    join(pool, block);
    if (block->before && !block->before->in_use) join(pool, block->before);
  }
  pthread_mutex_unlock(&lock);
  return block ? SUCCESS : fail(INVALID_VALUE);
}

/* The documented moment at which memory above the threshold goes back. */
void trim_at_synchronisation(int device) {
  pool_t *pool = current_pool(device);
  if (pool->reserved <= pool->threshold) return;
  pthread_mutex_lock(&lock);
  trim(pool, pool->threshold);
  pthread_mutex_unlock(&lock);
}

API(int, cudaMallocAsync)(void **pointer, size_t bytes, void *stream) {
  (void)stream;
  int error = ready();
  return error ? error : allocate(pointer, bytes, current_pool(current_device()));
}
API(int, cudaMallocFromPoolAsync)(void **pointer, size_t bytes, pool_t *pool, void *stream) {
  (void)stream;
  return allocate(pointer, bytes, pool);
}
API(int, cudaDeviceGetDefaultMemPool)(pool_t **pool, int device) {
  if (device < 0 || device >= visible_devices()) return fail(INVALID_DEVICE);
  *pool = default_pool(device);
  return SUCCESS;
}
API(int, cudaDeviceGetMemPool)(pool_t **pool, int device) {
  if (device < 0 || device >= visible_devices()) return fail(INVALID_DEVICE);
  *pool = current_pool(device);
  return SUCCESS;
}
API(int, cudaDeviceSetMemPool)(int device, pool_t *pool) {
  if (device < 0 || device >= visible_devices()) return fail(INVALID_DEVICE);
  current_pools[device] = pool;
  return SUCCESS;
}
API(int, cudaMemPoolCreate)(pool_t **pool, const int *properties) {
  (void)properties;
  *pool = calloc(1, sizeof **pool);
  if (!*pool) return fail(OUT_OF_MEMORY);
  (*pool)->device = current_device();
  return SUCCESS;
}
API(int, cudaMemPoolDestroy)(pool_t *pool) {
  pthread_mutex_lock(&lock);
  trim(pool, 0);
  pthread_mutex_unlock(&lock);
  return SUCCESS; /* blocks in use may still point to it */
}
API(int, cudaMemPoolTrimTo)(pool_t *pool, size_t keep) {
  pthread_mutex_lock(&lock);
  trim(pool, keep);
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}

enum { RELEASE_THRESHOLD = 4, RESERVED, RESERVED_HIGH, USED, USED_HIGH };
API(int, cudaMemPoolGetAttribute)(pool_t *pool, int which, void *value) {
  switch (which) {
    case RELEASE_THRESHOLD: *(uint64_t *)value = pool->threshold; break;
    case RESERVED: *(uint64_t *)value = pool->reserved; break;
    case RESERVED_HIGH: *(uint64_t *)value = pool->reserved_high; break;
    case USED: *(uint64_t *)value = pool->used; break;
    case USED_HIGH: *(uint64_t *)value = pool->used_high; break;
    default: *(int *)value = 1; /* reuse is allowed */
  }
  return SUCCESS;
}
API(int, cudaMemPoolSetAttribute)(pool_t *pool, int which, const void *value) {
  if (which == RELEASE_THRESHOLD) pool->threshold = *(const uint64_t *)value;
  else if (which == RESERVED_HIGH) pool->reserved_high = pool->reserved; /* resets it */
  else if (which == USED_HIGH) pool->used_high = pool->used;
  return SUCCESS;
}
API(int, cudaMemPoolSetAccess)(pool_t *pool, const void *access, size_t n) {
  (void)pool, (void)access, (void)n;
  return SUCCESS;
}

API(int, cuMemAllocAsync)(void **pointer, size_t bytes, void *stream) { return vgpu_cudaMallocAsync(pointer, bytes, stream); }
API(int, cuMemFreeAsync)(void *pointer, void *stream) { return vgpu_cudaFreeAsync(pointer, stream); }
API(int, cuDeviceGetDefaultMemPool)(pool_t **pool, int device) { return vgpu_cudaDeviceGetDefaultMemPool(pool, device); }
API(int, cuMemPoolGetAttribute)(pool_t *pool, int which, void *value) { return vgpu_cudaMemPoolGetAttribute(pool, which, value); }
API(int, cuMemPoolSetAttribute)(pool_t *pool, int which, const void *value) { return vgpu_cudaMemPoolSetAttribute(pool, which, value); }
