/* NCCL with one rank that is there: nothing moves but small known data, for
 * which all ranks are taken to hold the same. */
#define _GNU_SOURCE
#include "accounting/shadows.h"
#include "vgpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { NCCL_INVALID_ARGUMENT = 4 };

typedef struct {
  char text[128];
} unique_id_t;

typedef struct {
  int ranks, rank, device;
  bool size_known; /* of a group split off only its upper bound is */
} communicator_t;

API(int, ncclGetVersion)(int *version) {
  *version = spec()->nccl;
  return SUCCESS;
}
API(const char *, ncclGetErrorString)(int error) {
  return error ? "unhandled cuda error" : "no error";
}
API(const char *, ncclGetLastError)(void *communicator) {
  (void)communicator;
  return "";
}
API(int, ncclGetUniqueId)(unique_id_t *id) {
  memset(id, 0, sizeof *id);
  snprintf(id->text, sizeof id->text, "virtual %d", getpid());
  return SUCCESS;
}

static int new_communicator(communicator_t **out, int ranks, int rank, bool size_known) {
  *out = NULL;
  if (ranks < 1 || rank < 0 || rank >= ranks) return NCCL_INVALID_ARGUMENT;
  if (context()) return 1; /* unhandled CUDA error */
  communicator_t *made = malloc(sizeof *made);
  if (!made) return 2;
  *made = (communicator_t){ranks, rank, current_device(), size_known};
  *out = made;
  return SUCCESS;
}
API(int, ncclCommInitRank)(communicator_t **out, int ranks, unique_id_t id, int rank) {
  (void)id;
  return new_communicator(out, ranks, rank, true);
}
API(int, ncclCommInitRankConfig)(communicator_t **out, int ranks, unique_id_t id, int rank, void *how) {
  (void)id, (void)how;
  return new_communicator(out, ranks, rank, true);
}
API(int, ncclCommInitRankScalable)(communicator_t **out, int ranks, int rank, int n_ids, void *ids, void *how) {
  (void)n_ids, (void)ids, (void)how;
  return new_communicator(out, ranks, rank, true);
}
API(int, ncclCommInitAll)(communicator_t **out, int devices, const int *list) {
  for (int i = 0; i < devices; ++i) {
    int error = new_communicator(&out[i], devices, i, true);
    if (error) return error;
    out[i]->device = list ? list[i] : i;
  }
  return SUCCESS;
}
/* Of groups that are split off now, where who splits them has told; 0: not known. */
static int split_ranks;
__attribute__((visibility("default"))) void memboard_vgpu_split_ranks(int ranks) { split_ranks = ranks; }

/* Who else has the colour is not known here; a negative one leaves this rank out. */
API(int, ncclCommSplit)(const communicator_t *from, int color, int key, communicator_t **out, void *how) {
  (void)how;
  *out = NULL;
  if (color < 0) return SUCCESS;
  if (split_ranks > 0 && key < split_ranks) return new_communicator(out, split_ranks, key, true);
  return new_communicator(out, from->ranks, key >= 0 && key < from->ranks ? key : 0, false);
}
API(int, ncclCommShrink)(const communicator_t *from, const int *excluded, int n, communicator_t **out, void *how) {
  (void)excluded, (void)how;
  return new_communicator(out, from->ranks - n, from->rank < from->ranks - n ? from->rank : 0, true);
}
API(int, ncclCommDestroy)(communicator_t *communicator) {
  free(communicator);
  return SUCCESS;
}
API(int, ncclCommAbort)(communicator_t *communicator) {
  free(communicator);
  return SUCCESS;
}
API(int, ncclCommCount)(const communicator_t *communicator, int *count) {
  *count = communicator->ranks;
  return SUCCESS;
}
API(int, ncclCommUserRank)(const communicator_t *communicator, int *rank) {
  *rank = communicator->rank;
  return SUCCESS;
}
API(int, ncclCommCuDevice)(const communicator_t *communicator, int *device) {
  *device = communicator->device;
  return SUCCESS;
}

int vgpu_cudaMalloc(void **, size_t), vgpu_cudaFree(void *);
API(int, ncclMemAlloc)(void **pointer, size_t bytes) { return vgpu_cudaMalloc(pointer, bytes) ? 1 : 0; }
API(int, ncclMemFree)(void *pointer) { return vgpu_cudaFree(pointer) ? 1 : 0; }

static size_t bytes_of(int type) {
  static const unsigned char sizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < (int)sizeof sizes ? sizes[type] : 1;
}

/* What so many equal values give. */
enum { SUM, PRODUCT, MAXIMUM, MINIMUM, AVERAGE };
static double combined(double value, int operation, int ranks) {
  double all = 1;
  if (operation == SUM) return value * ranks;
  if (operation != PRODUCT) return value;
  for (int i = 0; i < ranks; ++i) all *= value;
  return all;
}
static int64_t combined_integers(int64_t value, int operation, int ranks) {
  uint64_t all = 1;
  if (operation == SUM) return (int64_t)((uint64_t)value * (uint64_t)ranks);
  if (operation != PRODUCT) return value;
  for (int i = 0; i < ranks; ++i) all *= (uint64_t)value;
  return (int64_t)all;
}

#define EACH(type, function) \
  for (size_t i = 0; i < count; ++i) ((type *)data)[i] = (type)function(((type *)data)[i], operation, ranks)
static bool reduce(void *data, size_t count, int type, int operation, int ranks) {
  if (operation == MAXIMUM || operation == MINIMUM || operation == AVERAGE) return true;
  if (operation > AVERAGE) return false; /* ncclRedOpCreatePreMulSum's, see tables/answers.txt */
  switch (type) {
    case 0: EACH(int8_t, combined_integers); return true;
    case 1: EACH(uint8_t, combined_integers); return true;
    case 2: EACH(int32_t, combined_integers); return true;
    case 3: EACH(uint32_t, combined_integers); return true;
    case 4: EACH(int64_t, combined_integers); return true;
    case 5: EACH(uint64_t, combined_integers); return true;
    case 7: EACH(float, combined); return true;
    case 8: EACH(double, combined); return true;
    default: return false; /* half and narrower: no control data */
  }
}

static int reduced(const void *from, void *to, size_t count, int type, int operation, const communicator_t *communicator) {
  size_t bytes = count * bytes_of(type);
  void *data = bytes <= SHADOW_BYTES ? malloc(bytes ? bytes : 1) : NULL;
  bool known = data && read_shadow(data, from, bytes);
  if (known && reduce(data, count, type, operation, communicator->ranks)) keep_shadow(to, data, bytes);
  else forget(to, bytes);
  free(data);
  return SUCCESS;
}

API(int, ncclAllReduce)(const void *from, void *to, size_t count, int type, int operation, communicator_t *communicator, void *stream) {
  count_node(stream);
  return reduced(from, to, count, type, operation, communicator);
}
API(int, ncclReduce)(const void *from, void *to, size_t count, int type, int operation, int root, communicator_t *communicator, void *stream) {
  count_node(stream);
  return communicator->rank == root ? reduced(from, to, count, type, operation, communicator) : SUCCESS;
}
API(int, ncclReduceScatter)(const void *from, void *to, size_t count, int type, int operation, communicator_t *communicator, void *stream) {
  count_node(stream);
  const char *own = (const char *)from + (size_t)communicator->rank * count * bytes_of(type);
  return reduced(own, to, count, type, operation, communicator);
}

/* A group of unknown size may have as many slots as the one it was split off. */
API(int, ncclAllGather)(const void *from, void *to, size_t count, int type, communicator_t *communicator, void *stream) {
  count_node(stream);
  size_t bytes = count * bytes_of(type);
  void *data = bytes <= SHADOW_BYTES ? malloc(bytes ? bytes : 1) : NULL;
  bool known = data && read_shadow(data, from, bytes);
  if (!known && communicator->size_known) forget(to, bytes * (size_t)communicator->ranks);
  for (int slot = 0; known && slot < communicator->ranks; ++slot) {
    char *at = (char *)to + (size_t)slot * bytes;
    if (!communicator->size_known && slot > communicator->rank && !on_device(at + bytes - 1)) break;
    keep_shadow(at, data, bytes);
  }
  free(data);
  return SUCCESS;
}

/* Each slot receives what its rank sends to this one: what this one sends to itself. */
API(int, ncclAlltoAll)(const void *from, void *to, size_t count, int type, communicator_t *communicator, void *stream) {
  count_node(stream);
  size_t bytes = count * bytes_of(type);
  const char *own = (const char *)from + (size_t)communicator->rank * bytes;
  for (int slot = 0; slot < communicator->ranks; ++slot)
    move_shadow((char *)to + (size_t)slot * bytes, own, bytes);
  return SUCCESS;
}

/* Sends and receives of one group: a peer sends what this rank sends to itself
 * or, where it does not, to that peer. Broadcasts of one group, each from another
 * root, gather: others' slots get what this rank, as a root, gives as much of. */
typedef enum { SENDS, RECEIVES, GIVES, IS_GIVEN } way_t;
typedef struct {
  const void *data;
  size_t bytes;
  int peer;
  way_t way;
} transfer_t;
static __thread struct {
  int depth, n, room;
  transfer_t *transfers;
  int rank;
} group;

static int run_group(void) {
  for (int i = 0; i < group.n; ++i) {
    const transfer_t *to = &group.transfers[i], *from = NULL;
    if (to->way != RECEIVES && to->way != IS_GIVEN) continue;
    way_t wanted = to->way == RECEIVES ? SENDS : GIVES;
    for (int j = 0; j < group.n; ++j) {
      const transfer_t *one = &group.transfers[j];
      bool fits = one->way == wanted && one->bytes == to->bytes;
      if (fits && (one->peer == group.rank || (!from && one->peer == to->peer))) from = one;
    }
    if (from && from->data != to->data) move_shadow((void *)to->data, from->data, to->bytes);
    else if (!from && to->way == RECEIVES) forget(to->data, to->bytes);
  }
  group.n = 0;
  return SUCCESS;
}

static int transfer(const void *data, size_t bytes, int peer, way_t way, int rank) {
  if (group.n == group.room) {
    int more = group.room ? group.room * 2 : 32;
    transfer_t *moved = realloc(group.transfers, (size_t)more * sizeof *moved);
    if (!moved) return 2;
    group.transfers = moved;
    group.room = more;
  }
  group.transfers[group.n++] = (transfer_t){data, bytes, peer, way};
  group.rank = rank;
  return group.depth ? SUCCESS : run_group();
}

API(int, ncclGroupStart)(void) {
  ++group.depth;
  return SUCCESS;
}
API(int, ncclGroupEnd)(void) {
  if (group.depth <= 0) return NCCL_INVALID_ARGUMENT;
  return --group.depth ? SUCCESS : run_group();
}
API(int, ncclSend)(const void *data, size_t count, int type, int peer, communicator_t *communicator, void *stream) {
  count_node(stream);
  return transfer(data, count * bytes_of(type), peer, SENDS, communicator->rank);
}
API(int, ncclRecv)(void *data, size_t count, int type, int peer, communicator_t *communicator, void *stream) {
  count_node(stream);
  return transfer(data, count * bytes_of(type), peer, RECEIVES, communicator->rank);
}
/* The root's data; whoever is not the root keeps what it has: they agree. */
API(int, ncclBroadcast)(const void *from, void *to, size_t count, int type, int root, communicator_t *communicator, void *stream) {
  count_node(stream);
  bool gives = communicator->rank == root;
  if (gives && from != to) move_shadow(to, from, count * bytes_of(type));
  return transfer(to, count * bytes_of(type), root, gives ? GIVES : IS_GIVEN, communicator->rank);
}
API(int, ncclBcast)(void *data, size_t count, int type, int root, communicator_t *communicator, void *stream) {
  return vgpu_ncclBroadcast(data, data, count, type, root, communicator, stream);
}
