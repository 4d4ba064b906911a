/* Which address belongs to what: a treap over the ranges, one for the process. */
#define _GNU_SOURCE
#include "vgpu.h"

#include <stdlib.h>
#include <sys/mman.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static range_t *root;
static uint64_t last_id;

/* Address space that costs no memory and that nothing can read or write. */
void *address_space(size_t bytes, void *wanted) {
  size_t whole = bytes + GRANULE;
  char *at = mmap(wanted, whole, PROT_NONE,
                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return NULL;
  size_t before = (GRANULE - (uintptr_t)at % GRANULE) % GRANULE;
  if (before) munmap(at, before);
  if (GRANULE - before) munmap(at + before + bytes, GRANULE - before);
  return at + before;
}

static uint64_t mixed(uint64_t x) {
  x ^= x >> 33, x *= 0xff51afd7ed558ccdULL, x ^= x >> 33;
  return x * 0xc4ceb9fe1a85ec53ULL;
}

/* All of `tree` below `start` to `low`, the rest to `high`. */
static void split(range_t *tree, uintptr_t start, range_t **low, range_t **high) {
  while (tree) {
    if (tree->start < start) {
      *low = tree, low = &tree->right, tree = tree->right;
    } else {
      *high = tree, high = &tree->left, tree = tree->left;
    }
  }
  *low = *high = NULL;
}

static range_t *joined(range_t *low, range_t *high) {
  range_t *top = NULL, **at = &top;
  while (low && high) {
    if (low->priority > high->priority) {
      *at = low, at = &low->right, low = low->right;
    } else {
      *at = high, at = &high->left, high = high->left;
    }
  }
  *at = low ? low : high;
  return top;
}

range_t *add_range(uintptr_t start, size_t bytes, size_t size, kind_t kind, int device) {
  range_t *range = calloc(1, sizeof *range);
  if (!range) return NULL;
  *range = (range_t){.start = start, .bytes = bytes, .size = size, .kind = kind,
                     .device = device, .generation = generation(),
                     .priority = mixed(start)};
  pthread_mutex_lock(&lock);
  range->id = ++last_id;
  range_t **at = &root;
  while (*at && (*at)->priority >= range->priority)
    at = start < (*at)->start ? &(*at)->left : &(*at)->right;
  split(*at, start, &range->left, &range->right);
  *at = range;
  pthread_mutex_unlock(&lock);
  return range;
}

static range_t *holder(uintptr_t address) {
  range_t *best = NULL;
  for (range_t *at = root; at;) {
    if (at->start <= address) best = at, at = at->right;
    else at = at->left;
  }
  return best && address < best->start + best->size ? best : NULL;
}

bool find_range(const void *address, range_t *copy) {
  pthread_mutex_lock(&lock);
  range_t *range = holder((uintptr_t)address);
  if (range && copy) *copy = *range;
  pthread_mutex_unlock(&lock);
  return range != NULL;
}

/* Takes out the range that starts at `start`. */
bool remove_range(const void *start, range_t *copy) {
  pthread_mutex_lock(&lock);
  range_t **at = &root;
  while (*at && (*at)->start != (uintptr_t)start)
    at = (uintptr_t)start < (*at)->start ? &(*at)->left : &(*at)->right;
  range_t *range = *at;
  if (range) {
    *at = joined(range->left, range->right);
    *copy = *range;
    free(range);
  }
  pthread_mutex_unlock(&lock);
  return range != NULL;
}

bool on_device(const void *address) {
  range_t range;
  return find_range(address, &range) &&
         (range.kind == DEVICE_MEMORY || range.kind == RESERVED_ADDRESSES);
}

/* A child may be forked while another thread holds the lock. */
static void hold(void) { pthread_mutex_lock(&lock); }
static void release(void) { pthread_mutex_unlock(&lock); }
__attribute__((constructor)) static void across_forks(void) {
  pthread_atfork(hold, release, release);
}
