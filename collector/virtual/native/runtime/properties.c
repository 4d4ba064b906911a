/* What a device says of itself. cudaDeviceProp lost eleven members in CUDA 13;
 * both layouts come from one list. */
#define _GNU_SOURCE
#include "vgpu.h"

#include <stdio.h>
#include <string.h>

#define PROPERTIES                                                                     \
  {                                                                                    \
    char name[256];                                                                    \
    unsigned char uuid[16];                                                            \
    char luid[8];                                                                      \
    unsigned luid_mask;                                                                \
    size_t memory, shared_per_block;                                                   \
    int registers_per_block, warp;                                                     \
    size_t pitch;                                                                      \
    int threads_per_block, threads[3], grid[3];                                        \
    OLD(int clock_khz;)                                                                \
    size_t constants;                                                                  \
    int major, minor;                                                                  \
    size_t texture_alignment, texture_pitch;                                           \
    OLD(int overlap;)                                                                  \
    int multiprocessors;                                                               \
    OLD(int timeout;)                                                                  \
    int integrated, maps_host;                                                         \
    OLD(int compute_mode;)                                                             \
    int texture_1d, mipmap_1d;                                                         \
    OLD(int linear_1d;)                                                                \
    int texture_2d[2], mipmap_2d[2], linear_2d[3], gather_2d[2], texture_3d[3],        \
        alternative_3d[3], cubemap, layered_1d[2], layered_2d[3], layered_cubemap[2],  \
        surface_1d, surface_2d[2], surface_3d[3], surface_layered_1d[2],               \
        surface_layered_2d[3], surface_cubemap, surface_layered_cubemap[2];            \
    size_t surface_alignment;                                                          \
    int concurrent_kernels, ecc, pci_bus, pci_device, pci_domain, tcc, copy_engines,   \
        unified_addressing;                                                            \
    OLD(int memory_clock_khz;)                                                         \
    int bus_bits, l2_bytes, persisting_l2_bytes, threads_per_sm, stream_priorities,    \
        global_l1, local_l1;                                                           \
    size_t shared_per_sm;                                                              \
    int registers_per_sm, managed, multi_gpu_board, board_group, host_atomics;         \
    OLD(int double_ratio;)                                                             \
    int pageable, concurrent_managed, preemption, host_pointer_for_registered,         \
        cooperative;                                                                   \
    OLD(int cooperative_multi_device;)                                                 \
    size_t shared_per_block_optin;                                                     \
    int pageable_through_host, direct_managed, blocks_per_sm, window_bytes;            \
    size_t reserved_shared;                                                            \
    int host_register, sparse, host_register_read_only, semaphores, pools, rdma;       \
    unsigned rdma_flush;                                                               \
    int rdma_order;                                                                    \
    unsigned pool_handles;                                                             \
    int deferred_arrays, ipc_events, cluster_launch, unified_functions;                \
    int rest[64];                                                                      \
  }

#define OLD(member) member
typedef struct PROPERTIES until_12_t;
#undef OLD
#define OLD(member)
typedef struct PROPERTIES since_13_t;
#undef OLD

/* The same assignments for both. */
#define FILL(p, device)                                                                \
  do {                                                                                 \
    const spec_t *s = spec();                                                          \
    snprintf((p)->name, sizeof (p)->name, "%s", s->name);                              \
    (p)->uuid[3] = (unsigned char)(physical_device(device) + 1);                       \
    (p)->memory = s->memory;                                                           \
    (p)->shared_per_block = 49152;                                                     \
    (p)->registers_per_block = (p)->registers_per_sm = 65536;                          \
    (p)->warp = 32;                                                                    \
    (p)->pitch = 2147483647;                                                           \
    (p)->threads_per_block = (p)->threads[0] = (p)->threads[1] = 1024;                 \
    (p)->threads[2] = 64;                                                              \
    (p)->grid[0] = 2147483647;                                                         \
    (p)->grid[1] = (p)->grid[2] = 65535;                                               \
    (p)->constants = 65536;                                                            \
    (p)->major = s->major;                                                             \
    (p)->minor = s->minor;                                                             \
    (p)->texture_alignment = (p)->surface_alignment = 512;                             \
    (p)->texture_pitch = 32;                                                           \
    (p)->multiprocessors = s->multiprocessors;                                         \
    (p)->maps_host = (p)->concurrent_kernels = (p)->unified_addressing = 1;            \
    (p)->pci_bus = physical_device(device) + 1;                                        \
    (p)->copy_engines = 3;                                                             \
    (p)->bus_bits = s->bus_bits;                                                       \
    (p)->l2_bytes = s->l2_bytes;                                                       \
    (p)->threads_per_sm = s->threads_per_sm;                                           \
    (p)->stream_priorities = (p)->global_l1 = (p)->local_l1 = (p)->managed = 1;        \
    (p)->shared_per_sm = (size_t)s->shared_per_sm;                                     \
    (p)->concurrent_managed = (p)->preemption = (p)->cooperative = 1;                  \
    (p)->shared_per_block_optin = (size_t)s->shared_per_block;                         \
    (p)->blocks_per_sm = s->blocks_per_sm;                                             \
    (p)->reserved_shared = 1024;                                                       \
    (p)->host_register = (p)->pools = (p)->ipc_events = (p)->unified_functions = 1;    \
    (p)->pool_handles = 1;                                                             \
    (p)->cluster_launch = s->major >= 9;                                               \
  } while (0)

static int properties(void *out, int device) {
  int error = ready();
  if (error) return error;
  if (device < 0 || device >= visible_devices()) return fail(INVALID_DEVICE);
  if (spec()->cuda >= 13000) {
    since_13_t *p = memset(out, 0, 1008);
    FILL(p, device);
  } else {
    until_12_t *p = memset(out, 0, 1032);
    FILL(p, device);
    p->clock_khz = spec()->clock_khz;
    p->memory_clock_khz = spec()->memory_clock_khz;
    p->overlap = p->cooperative_multi_device = 1;
    p->double_ratio = 2;
  }
  return SUCCESS;
}

API(int, cudaGetDeviceProperties)(void *out, int device) { return properties(out, device); }
API(int, cudaGetDeviceProperties_v2)(void *out, int device) { return properties(out, device); }

static int attribute(int which, int device) {
  const spec_t *s = spec();
  switch (which) {
    case 1: case 2: case 3: return 1024;        /* threads */
    case 4: return 64;
    case 5: return 2147483647;                  /* grid */
    case 6: case 7: return 65535;
    case 8: return 49152;                       /* shared bytes of a block */
    case 9: return 65536;                       /* constants */
    case 10: return 32;                         /* warp */
    case 11: return 2147483647;
    case 12: case 82: return 65536;             /* registers */
    case 13: return s->clock_khz;
    case 14: return 512;
    case 16: return s->multiprocessors;
    case 17: case 18: case 20: case 32: case 35: return 0;
    case 33: return physical_device(device) + 1; /* PCI */
    case 34: case 50: return 0;
    case 36: return s->memory_clock_khz;
    case 37: return s->bus_bits;
    case 38: return s->l2_bytes;
    case 39: return s->threads_per_sm;
    case 40: return 3;                          /* copy engines */
    case 75: return s->major;
    case 76: return s->minor;
    case 81: return s->shared_per_sm;
    case 84: case 85: case 86: case 88: case 91: return 0;
    case 97: return s->shared_per_block;
    case 100: case 101: return 0;
    case 102: return 1;                         /* driver: virtual addresses */
    case 106: return s->blocks_per_sm;
    case 108: case 109: return 0;
    case 111: return 1024;
    case 116: case 117: case 118: return 0;     /* GPUDirect RDMA */
    case 110: return 0;                         /* driver: RDMA with virtual addresses */
    case 120: return s->major >= 9;             /* clusters */
    case 128: return 0;                         /* driver: fabric handles */
    case 130: case 133: return 0;
    case 131: case 134: return -1;              /* NUMA */
    case 132: return 0;                         /* driver: multicast */
    default: return 1;
  }
}

API(int, cudaDeviceGetAttribute)(int *value, int which, int device) {
  int error = ready();
  if (error) return error;
  if (device < 0 || device >= visible_devices()) return fail(INVALID_DEVICE);
  *value = attribute(which, device);
  return SUCCESS;
}
API(int, cuDeviceGetAttribute)(int *value, int which, int device) {
  return vgpu_cudaDeviceGetAttribute(value, which, device);
}

API(int, cudaDeviceGetPCIBusId)(char *text, int room, int device) {
  snprintf(text, (size_t)room, "0000:%02X:00.0", physical_device(device) + 1);
  return SUCCESS;
}
API(int, cudaDeviceGetByPCIBusId)(int *device, const char *text) {
  unsigned domain, bus;
  if (sscanf(text, "%x:%x", &domain, &bus) == 2)
    for (*device = 0; *device < visible_devices(); ++*device)
      if (physical_device(*device) + 1 == (int)bus) return SUCCESS;
  return fail(INVALID_VALUE);
}
API(int, cudaDeviceGetLimit)(size_t *value, int limit) {
  static const size_t limits[] = {1024, 1 << 20, 8 << 20, 2, 2048};
  *value = limit >= 0 && limit < 5 ? limits[limit] : 0;
  return SUCCESS;
}

/* Peers see each other, as over NVLink. */
static bool peers[MAX_DEVICES][MAX_DEVICES];
API(int, cudaDeviceCanAccessPeer)(int *answer, int device, int peer) {
  *answer = device != peer;
  return SUCCESS;
}
API(int, cudaDeviceEnablePeerAccess)(int peer, unsigned flags) {
  (void)flags;
  if (peer < 0 || peer >= visible_devices()) return fail(INVALID_DEVICE);
  bool *enabled = &peers[current_device()][peer];
  if (*enabled) return fail(PEER_ALREADY_ENABLED);
  *enabled = true;
  return SUCCESS;
}
API(int, cudaDeviceDisablePeerAccess)(int peer) {
  if (peer < 0 || peer >= visible_devices()) return fail(INVALID_DEVICE);
  bool *enabled = &peers[current_device()][peer];
  if (!*enabled) return fail(PEER_NOT_ENABLED);
  *enabled = false;
  return SUCCESS;
}
