/* Calls of functions that are not written by hand: counted by name, answered 0. */
#include "vgpu.h"

uint64_t *counter(const char *library, const char *name);

API(long, count_call)(call_t *call) {
  static uint64_t elsewhere;
  if (call->works) count_work();
  uint64_t *slot = __atomic_load_n(&call->slot, __ATOMIC_ACQUIRE);
  if (!slot) {
    slot = counter(call->library, call->name);
    if (!slot) slot = &elsewhere;
    __atomic_store_n(&call->slot, slot, __ATOMIC_RELEASE);
  }
  __atomic_fetch_add(slot, 1, __ATOMIC_RELAXED);
  return call->answer;
}
