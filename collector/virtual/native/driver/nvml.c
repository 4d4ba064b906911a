/* NVML: which devices there are, their memory, and who uses it. Whatever else
 * is asked is "not supported". Devices are counted as the machine has them:
 * CUDA_VISIBLE_DEVICES is no matter of NVML's. */
#define _GNU_SOURCE
#include "vgpu.h"

#include <stdio.h>
#include <string.h>

enum { NVML_SUCCESS, NVML_UNINITIALIZED, NVML_INVALID, NVML_NOT_SUPPORTED, NVML_NOT_FOUND = 6, NVML_TOO_SMALL = 7 };

static int users_here;
static char handles[MAX_DEVICES]; /* only their addresses matter */

static int number(const void *handle) {
  long at = (const char *)handle - handles;
  return at >= 0 && at < spec()->count ? (int)at : -1;
}

API(int, nvmlInit_v2)(void) {
  __atomic_fetch_add(&users_here, 1, __ATOMIC_RELAXED);
  return NVML_SUCCESS;
}
API(int, nvmlInit)(void) { return vgpu_nvmlInit_v2(); }
API(int, nvmlInitWithFlags)(unsigned flags) {
  (void)flags;
  return vgpu_nvmlInit_v2();
}
API(int, nvmlShutdown)(void) {
  if (users_here <= 0) return NVML_UNINITIALIZED;
  __atomic_fetch_sub(&users_here, 1, __ATOMIC_RELAXED);
  return NVML_SUCCESS;
}
API(const char *, nvmlErrorString)(int error) {
  static const char *const words[] = {"Success", "Uninitialized", "Invalid Argument", "Not Supported", "Insufficient Permissions",
                                      "Already Initialized", "Not Found", "Insufficient Size"};
  return error >= 0 && error < 8 ? words[error] : "Unknown Error";
}

static int text(char *out, unsigned room, const char *words) {
  if (strlen(words) >= room) return NVML_TOO_SMALL;
  strcpy(out, words);
  return NVML_SUCCESS;
}
API(int, nvmlSystemGetDriverVersion)(char *out, unsigned room) { return text(out, room, "580.0"); }
API(int, nvmlSystemGetNVMLVersion)(char *out, unsigned room) { return text(out, room, "13.580.0"); }
API(int, nvmlSystemGetCudaDriverVersion)(int *version) {
  *version = spec()->cuda;
  return NVML_SUCCESS;
}
API(int, nvmlSystemGetCudaDriverVersion_v2)(int *version) {
  *version = spec()->cuda;
  return NVML_SUCCESS;
}

API(int, nvmlDeviceGetCount_v2)(unsigned *count) {
  *count = (unsigned)spec()->count;
  return users_here > 0 ? NVML_SUCCESS : NVML_UNINITIALIZED;
}
API(int, nvmlDeviceGetCount)(unsigned *count) { return vgpu_nvmlDeviceGetCount_v2(count); }

API(int, nvmlDeviceGetHandleByIndex_v2)(unsigned index, void **handle) {
  if (users_here <= 0) return NVML_UNINITIALIZED;
  if (index >= (unsigned)spec()->count) return NVML_INVALID;
  *handle = &handles[index];
  return NVML_SUCCESS;
}
API(int, nvmlDeviceGetHandleByIndex)(unsigned index, void **handle) { return vgpu_nvmlDeviceGetHandleByIndex_v2(index, handle); }
API(int, nvmlDeviceGetHandleByUUID)(const char *uuid, void **handle) {
  unsigned first;
  if (sscanf(uuid, "GPU-%8x", &first) != 1 || !first) return NVML_NOT_FOUND;
  return vgpu_nvmlDeviceGetHandleByIndex_v2(first - 1, handle) ? NVML_NOT_FOUND : NVML_SUCCESS;
}
API(int, nvmlDeviceGetHandleByPciBusId_v2)(const char *id, void **handle) {
  unsigned domain, bus;
  if (sscanf(id, "%x:%x", &domain, &bus) != 2 || !bus) return NVML_NOT_FOUND;
  return vgpu_nvmlDeviceGetHandleByIndex_v2(bus - 1, handle) ? NVML_NOT_FOUND : NVML_SUCCESS;
}
API(int, nvmlDeviceGetHandleByPciBusId)(const char *id, void **handle) { return vgpu_nvmlDeviceGetHandleByPciBusId_v2(id, handle); }

API(int, nvmlDeviceGetName)(void *handle, char *out, unsigned room) {
  return number(handle) < 0 ? NVML_INVALID : text(out, room, spec()->name);
}
API(int, nvmlDeviceGetUUID)(void *handle, char *out, unsigned room) {
  char words[48];
  int device = number(handle);
  snprintf(words, sizeof words, "GPU-%08x-0000-0000-0000-000000000000", device + 1);
  return device < 0 ? NVML_INVALID : text(out, room, words);
}
API(int, nvmlDeviceGetIndex)(void *handle, unsigned *index) {
  *index = (unsigned)number(handle);
  return number(handle) < 0 ? NVML_INVALID : NVML_SUCCESS;
}
API(int, nvmlDeviceGetMinorNumber)(void *handle, unsigned *index) { return vgpu_nvmlDeviceGetIndex(handle, index); }
API(int, nvmlDeviceGetCudaComputeCapability)(void *handle, int *major, int *minor) {
  *major = spec()->major;
  *minor = spec()->minor;
  return number(handle) < 0 ? NVML_INVALID : NVML_SUCCESS;
}

typedef struct {
  char legacy[16];
  unsigned domain, bus, device, device_id, subsystem;
  char id[32];
} pci_t;
API(int, nvmlDeviceGetPciInfo_v3)(void *handle, pci_t *pci) {
  int device = number(handle);
  if (device < 0) return NVML_INVALID;
  memset(pci, 0, sizeof *pci);
  pci->bus = (unsigned)device + 1;
  snprintf(pci->legacy, sizeof pci->legacy, "0000:%02X:00.0", (unsigned char)(device + 1));
  snprintf(pci->id, sizeof pci->id, "00000000:%02X:00.0", (unsigned char)(device + 1));
  return NVML_SUCCESS;
}

typedef struct {
  unsigned long long all, unused, used;
} memory_t;
typedef struct {
  unsigned version;
  unsigned long long all, reserved, unused, used;
} memory_v2_t;
API(int, nvmlDeviceGetMemoryInfo)(void *handle, memory_t *memory) {
  int device = number(handle);
  if (device < 0) return NVML_INVALID;
  memory->all = spec()->memory;
  memory->used = used_by_all(device);
  memory->unused = memory->used < memory->all ? memory->all - memory->used : 0;
  return NVML_SUCCESS;
}
API(int, nvmlDeviceGetMemoryInfo_v2)(void *handle, memory_v2_t *memory) {
  memory_t plain;
  int error = vgpu_nvmlDeviceGetMemoryInfo(handle, &plain);
  if (error) return error;
  memory->all = plain.all;
  memory->reserved = 0;
  memory->used = plain.used;
  memory->unused = plain.unused;
  return NVML_SUCCESS;
}

typedef struct {
  unsigned pid;
  unsigned long long bytes;
} process_v1_t;
typedef struct {
  unsigned pid;
  unsigned long long bytes;
  unsigned gpu_instance, compute_instance;
} process_t;

/* With room for fewer than there are it says how many, as NVML does. */
static int processes(void *handle, unsigned *count, void *out, size_t size) {
  user_t users[256];
  int device = number(handle), n = device < 0 ? 0 : users_of(device, users, 256);
  if (device < 0) return NVML_INVALID;
  unsigned room = *count;
  *count = (unsigned)n;
  if (room < (unsigned)n) return NVML_TOO_SMALL;
  for (int i = 0; i < n; ++i) {
    process_t one = {(unsigned)users[i].pid, users[i].bytes, ~0U, ~0U};
    memcpy((char *)out + (size_t)i * size, &one, size);
  }
  return NVML_SUCCESS;
}
API(int, nvmlDeviceGetComputeRunningProcesses)(void *handle, unsigned *count, void *out) {
  return processes(handle, count, out, sizeof(process_v1_t));
}
API(int, nvmlDeviceGetComputeRunningProcesses_v2)(void *handle, unsigned *count, void *out) {
  return processes(handle, count, out, sizeof(process_t));
}
API(int, nvmlDeviceGetComputeRunningProcesses_v3)(void *handle, unsigned *count, void *out) {
  return processes(handle, count, out, sizeof(process_t));
}
API(int, nvmlDeviceGetGraphicsRunningProcesses_v3)(void *handle, unsigned *count) {
  *count = 0;
  return number(handle) < 0 ? NVML_INVALID : NVML_SUCCESS;
}

/* No fabric: torch asks before it uses expandable segments. */
typedef struct {
  unsigned version;
  unsigned char cluster[16];
  int status;
  unsigned clique;
  unsigned char state;
} fabric_t;
API(int, nvmlDeviceGetGpuFabricInfoV)(void *handle, fabric_t *fabric) {
  if (number(handle) < 0) return NVML_INVALID;
  memset(fabric->cluster, 0, sizeof fabric->cluster);
  fabric->status = 0;
  fabric->clique = 0;
  fabric->state = 0;
  return NVML_SUCCESS;
}
