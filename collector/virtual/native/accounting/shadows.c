/* Small data of the host that survives on the device.
 *
 * Programs send counts, shapes and pickled objects through the device and read
 * them back. What was uploaded (1 MiB at most a piece, 64 MiB in all, oldest
 * dropped first) stays known until its memory is given back, written again, or
 * a launched kernel is given an address inside it: whether it writes there cannot
 * be seen, but for torch's kernels for contiguous elements and cat, whose output has a
 * known place (runtime/launch.c). A kernel that reaches a piece from an
 * address before it is not noticed. What is not known reads as zeros. */
#define _GNU_SOURCE
#include "accounting/shadows.h"
#include "vgpu.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define ALL_BYTES ((size_t)64 << 20)
#define MOST_ARGUMENTS 64
#define MOST_BYTES_OF_ARGUMENT 4096

typedef struct {
  uintptr_t start;
  size_t bytes;
  uint64_t age;
  unsigned char *data;
} shadow_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static shadow_t *shadows; /* by address, none overlaps another */
static size_t n_shadows, room;
static size_t all_bytes;
static uint64_t age;
static uintptr_t lowest, highest; /* of all; a quick no for most addresses */

/* The first that ends after `start`. */
static size_t first_after(uintptr_t start) {
  size_t low = 0, high = n_shadows;
  while (low < high) {
    size_t middle = (low + high) / 2;
    if (shadows[middle].start + shadows[middle].bytes > start) high = middle;
    else low = middle + 1;
  }
  return low;
}

static void bounds(void) {
  uintptr_t low = n_shadows ? shadows[0].start : 0;
  uintptr_t high = n_shadows ? shadows[n_shadows - 1].start + shadows[n_shadows - 1].bytes : 0;
  __atomic_store_n(&lowest, low, __ATOMIC_RELEASE);
  __atomic_store_n(&highest, high, __ATOMIC_RELEASE);
}

static void take_out(size_t at) {
  all_bytes -= shadows[at].bytes;
  free(shadows[at].data);
  memmove(&shadows[at], &shadows[at + 1], (--n_shadows - at) * sizeof *shadows);
}

static void drop_oldest(void) {
  size_t oldest = 0;
  for (size_t i = 1; i < n_shadows; ++i)
    if (shadows[i].age < shadows[oldest].age) oldest = i;
  take_out(oldest);
}

static void put_in(uintptr_t start, const void *data, size_t bytes) {
  if (!bytes) return;
  while (n_shadows && all_bytes + bytes > ALL_BYTES) drop_oldest();
  if (n_shadows == room) {
    size_t more = room ? room * 2 : 64;
    shadow_t *moved = realloc(shadows, more * sizeof *moved);
    if (!moved) return;
    shadows = moved;
    room = more;
  }
  unsigned char *copy = malloc(bytes);
  if (!copy) return;
  memcpy(copy, data, bytes);
  size_t at = first_after(start);
  memmove(&shadows[at + 1], &shadows[at], (n_shadows++ - at) * sizeof *shadows);
  shadows[at] = (shadow_t){start, bytes, ++age, copy};
  all_bytes += bytes;
}

/* Under the lock: what lies in the interval goes; pieces beyond it stay. */
static void clear(uintptr_t start, size_t bytes) {
  uintptr_t end = start + bytes;
  size_t at = first_after(start);
  while (at < n_shadows && shadows[at].start < end) {
    shadow_t old = shadows[at];
    uintptr_t old_end = old.start + old.bytes;
    shadows[at].data = NULL;
    take_out(at);
    if (old.start < start) put_in(old.start, old.data, start - old.start);
    if (old_end > end) put_in(end, old.data + (end - old.start), old_end - end);
    free(old.data);
    at = first_after(start);
  }
}

static bool read_known(unsigned char *to, uintptr_t start, size_t bytes) {
  uintptr_t end = start + bytes, known = start;
  for (size_t at = first_after(start); at < n_shadows && shadows[at].start < end; ++at) {
    const shadow_t *one = &shadows[at];
    uintptr_t from = one->start > start ? one->start : start;
    uintptr_t until = one->start + one->bytes < end ? one->start + one->bytes : end;
    if (from == known) known = until;
    memcpy(to + (from - start), one->data + (from - one->start), until - from);
  }
  return known == end;
}

static bool none(uintptr_t start, size_t bytes) {
  return start >= __atomic_load_n(&highest, __ATOMIC_ACQUIRE) ||
         start + bytes <= __atomic_load_n(&lowest, __ATOMIC_ACQUIRE);
}

bool any_shadow(void) { return __atomic_load_n(&highest, __ATOMIC_ACQUIRE) != 0; }

void forget(const void *device, size_t bytes) {
  if (none((uintptr_t)device, bytes)) return;
  pthread_mutex_lock(&lock);
  clear((uintptr_t)device, bytes);
  bounds();
  pthread_mutex_unlock(&lock);
}

void keep_shadow(void *device, const void *host, size_t bytes) {
  forget(device, bytes);
  if (bytes > SHADOW_BYTES) return;
  pthread_mutex_lock(&lock);
  clear((uintptr_t)device, bytes);
  put_in((uintptr_t)device, host, bytes);
  bounds();
  pthread_mutex_unlock(&lock);
}

void fill_shadow(void *device, int value, size_t bytes) {
  forget(device, bytes);
  if (!value || bytes > SHADOW_BYTES) return; /* unknown reads as zeros anyway */
  void *filled = malloc(bytes);
  if (!filled) return;
  memset(filled, value, bytes);
  keep_shadow(device, filled, bytes);
  free(filled);
}

bool read_shadow(void *host, const void *device, size_t bytes) {
  memset(host, 0, bytes);
  if (none((uintptr_t)device, bytes)) return false;
  pthread_mutex_lock(&lock);
  bool whole = read_known(host, (uintptr_t)device, bytes);
  pthread_mutex_unlock(&lock);
  return whole;
}

/* The pieces of the source go to the same places of the target. */
void move_shadow(void *to, const void *from, size_t bytes) {
  uintptr_t start = (uintptr_t)from, end = start + bytes;
  if (none(start, bytes)) {
    forget(to, bytes);
    return;
  }
  pthread_mutex_lock(&lock);
  size_t n = 0, first = first_after(start);
  while (first + n < n_shadows && shadows[first + n].start < end) ++n;
  shadow_t *pieces = calloc(n ? n : 1, sizeof *pieces);
  for (size_t i = 0; pieces && i < n; ++i) {
    const shadow_t *one = &shadows[first + i];
    uintptr_t low = one->start > start ? one->start : start;
    uintptr_t high = one->start + one->bytes < end ? one->start + one->bytes : end;
    pieces[i].data = malloc(high - low);
    if (!pieces[i].data) continue;
    memcpy(pieces[i].data, one->data + (low - one->start), high - low);
    pieces[i].start = (uintptr_t)to + (low - start);
    pieces[i].bytes = high - low;
  }
  clear((uintptr_t)to, bytes);
  for (size_t i = 0; pieces && i < n; ++i) {
    put_in(pieces[i].start, pieces[i].data, pieces[i].bytes);
    free(pieces[i].data);
  }
  free(pieces);
  bounds();
  pthread_mutex_unlock(&lock);
}

/* Where the thread's stack ends: arguments lie on it, and nothing is read beyond. */
static uintptr_t stack_end(void) {
  static __thread uintptr_t known;
  pthread_attr_t attributes;
  void *start;
  size_t bytes;
  if (!known && !pthread_getattr_np(pthread_self(), &attributes)) {
    if (!pthread_attr_getstack(&attributes, &start, &bytes)) known = (uintptr_t)start + bytes;
    pthread_attr_destroy(&attributes);
  }
  return known;
}

static void drop_at(uintptr_t address) {
  pthread_mutex_lock(&lock);
  size_t hit = first_after(address);
  if (hit < n_shadows && shadows[hit].start <= address) take_out(hit);
  bounds();
  pthread_mutex_unlock(&lock);
}

/* Where an argument ends: at the next one, as far as can be seen. */
static uintptr_t end_of(void **arguments, uintptr_t start, uintptr_t here, uintptr_t end) {
  uintptr_t list = (uintptr_t)arguments, until = start + MOST_BYTES_OF_ARGUMENT;
  if (until > end) until = end;
  for (int i = 0; i < MOST_ARGUMENTS && list + (size_t)(i + 1) * 8 <= end; ++i) {
    uintptr_t other = (uintptr_t)arguments[i];
    if (other < here || other >= end) break;
    if (other > start && other < until) until = other;
  }
  return until;
}

/* How many arguments a kernel has and how large they are is not told: addresses
 * of the stack count as arguments, each as far as the next one. */
void launch_writes(void **arguments, writes_t writes) {
  if (!any_shadow() || !arguments) return;
  uintptr_t here = (uintptr_t)__builtin_frame_address(0), end = stack_end();
  uintptr_t list = (uintptr_t)arguments;
  if (list < here || list >= end) return;
  if (writes == FIRST_ARGUMENT || writes == THIRD_ARGUMENT) {
    uintptr_t at = (uintptr_t)arguments[writes == FIRST_ARGUMENT ? 0 : 2];
    if (at >= here && at + 8 <= end) drop_at(*(uintptr_t *)at);
    return;
  }
  for (int i = 0; i < MOST_ARGUMENTS && list + (size_t)(i + 1) * 8 <= end; ++i) {
    uintptr_t start = (uintptr_t)arguments[i];
    if (start < here || start + 8 > end) return;
    uintptr_t until = end_of(arguments, start, here, end);
    for (uintptr_t at = (start + 7) & ~(uintptr_t)7; at + 8 <= until; at += 8) {
      uintptr_t word = *(uintptr_t *)at;
      if (!none(word, 1)) drop_at(word);
    }
  }
}
