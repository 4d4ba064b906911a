/* The driver's interface (libcuda), as torch, NVRTC users and Triton call it. */
#define _GNU_SOURCE
#include "accounting/shadows.h"
#include "runtime/streams.h"
#include "vgpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int vgpu_cudaMalloc(void **, size_t), vgpu_cudaFree(void *), vgpu_cudaMemGetInfo(size_t *, size_t *);
int vgpu_cudaMemcpy(void *, const void *, size_t, int);
int vgpu_cudaMemcpyAsync(void *, const void *, size_t, int, void *);
int vgpu_cudaMemsetAsync(void *, int, size_t, void *);
int vgpu_cudaSetDevice(int), vgpu_cudaDeviceSynchronize(void);

static char contexts[MAX_DEVICES]; /* only their addresses matter */

API(int, cuInit)(unsigned flags) {
  (void)flags;
  return ready();
}
API(int, cuDriverGetVersion)(int *version) {
  *version = spec()->cuda;
  return SUCCESS;
}
API(int, cuDeviceGet)(int *device, int ordinal) {
  if (ordinal < 0 || ordinal >= visible_devices()) return INVALID_DEVICE;
  *device = ordinal;
  return SUCCESS;
}
API(int, cuDeviceGetCount)(int *count) {
  *count = visible_devices();
  return ready();
}
API(int, cuDeviceGetName)(char *name, int room, int device) {
  (void)device;
  snprintf(name, (size_t)room, "%s", spec()->name);
  return SUCCESS;
}
API(int, cuDeviceTotalMem_v2)(size_t *bytes, int device) {
  (void)device;
  *bytes = spec()->memory;
  return SUCCESS;
}
API(int, cuDeviceGetUuid_v2)(unsigned char *uuid, int device) {
  memset(uuid, 0, 16);
  uuid[3] = (unsigned char)(physical_device(device) + 1);
  return SUCCESS;
}

API(int, cuDevicePrimaryCtxRetain)(void **handle, int device) {
  int error = ready();
  if (error) return error;
  *handle = &contexts[device];
  return SUCCESS;
}
API(int, cuDevicePrimaryCtxGetState)(int device, unsigned *flags, int *active) {
  if (device < 0 || device >= visible_devices()) return INVALID_DEVICE;
  if (flags) *flags = 0;
  if (active) *active = has_context(device);
  return SUCCESS;
}
API(int, cuCtxGetCurrent)(void **handle) {
  int error = ready();
  *handle = error ? NULL : &contexts[current_device()];
  return error;
}
API(int, cuCtxSetCurrent)(void *handle) {
  if (!handle) return SUCCESS;
  return vgpu_cudaSetDevice((int)((char *)handle - contexts));
}
API(int, cuCtxGetDevice)(int *device) {
  *device = current_device();
  return SUCCESS;
}
API(int, cuCtxSynchronize)(void) { return vgpu_cudaDeviceSynchronize(); }
API(int, cuStreamGetCtx)(void *stream, void **handle) {
  *handle = &contexts[stream_of(stream)->device];
  return SUCCESS;
}

API(int, cuMemAlloc_v2)(void **pointer, size_t bytes) { return vgpu_cudaMalloc(pointer, bytes); }
API(int, cuMemFree_v2)(void *pointer) { return vgpu_cudaFree(pointer); }
API(int, cuMemGetInfo_v2)(size_t *unused, size_t *all) { return vgpu_cudaMemGetInfo(unused, all); }
API(int, cuMemcpyHtoD_v2)(void *to, const void *from, size_t n) { return vgpu_cudaMemcpy(to, from, n, 1); }
API(int, cuMemcpyDtoH_v2)(void *to, const void *from, size_t n) { return vgpu_cudaMemcpy(to, from, n, 2); }
API(int, cuMemcpyHtoDAsync_v2)(void *to, const void *from, size_t n, void *s) { return vgpu_cudaMemcpyAsync(to, from, n, 1, s); }
API(int, cuMemcpyDtoHAsync_v2)(void *to, const void *from, size_t n, void *s) { return vgpu_cudaMemcpyAsync(to, from, n, 2, s); }
API(int, cuMemcpyDtoDAsync_v2)(void *to, const void *from, size_t n, void *s) { return vgpu_cudaMemcpyAsync(to, from, n, 3, s); }
API(int, cuMemsetD8Async)(void *to, unsigned char value, size_t n, void *s) { return vgpu_cudaMemsetAsync(to, value, n, s); }
API(int, cuMemsetD32Async)(void *to, unsigned value, size_t n, void *s) {
  if (!value) return vgpu_cudaMemsetAsync(to, 0, n * 4, s);
  forget(to, n * 4);
  return SUCCESS;
}

API(int, cuMemGetAddressRange_v2)(uintptr_t *start, size_t *bytes, const void *pointer) {
  range_t range;
  if (!find_range(pointer, &range)) return NOT_FOUND;
  if (start) *start = range.start;
  if (bytes) *bytes = range.bytes;
  return SUCCESS;
}

API(int, cuPointerGetAttribute)(void *data, int which, void *pointer) {
  range_t range;
  if (!find_range(pointer, &range)) return INVALID_VALUE;
  switch (which) {
    case 1: *(void **)data = &contexts[range.device]; break;
    case 2: *(unsigned *)data = range.kind == DEVICE_MEMORY || range.kind == RESERVED_ADDRESSES ? 2 : 1; break;
    case 3: case 4: *(void **)data = pointer; break;
    case 7: *(uint64_t *)data = range.id; break;
    case 8: *(unsigned *)data = range.kind == MANAGED; break;
    case 9: *(int *)data = range.device; break;
    case 10: *(unsigned *)data = range.kind == DEVICE_MEMORY; break;
    case 11: *(uintptr_t *)data = range.start; break;
    case 12: *(size_t *)data = range.bytes; break;
    case 13: *(unsigned *)data = 1; break;
    default: *(int *)data = 0;
  }
  return SUCCESS;
}
API(int, cuPointerGetAttributes)(unsigned n, int *which, void **data, void *pointer) {
  for (unsigned i = 0; i < n; ++i)
    if (vgpu_cuPointerGetAttribute(data[i], which[i], pointer)) memset(data[i], 0, 4);
  return SUCCESS;
}

API(int, cuKernelGetFunction)(void **function, void *kernel) {
  *function = kernel;
  return SUCCESS;
}
API(int, cuLinkComplete)(void *state, void **binary, size_t *bytes) {
  *binary = state;
  if (bytes) *bytes = 16;
  return SUCCESS;
}

API(int, cuFuncGetAttribute)(int *value, int which, void *function) {
  (void)function;
  *value = which == 0   ? 1024
           : which == 4 ? 32 /* registers */
           : which == 5 || which == 6 ? capability()
           : which == 8 ? spec()->shared_per_block
                        : 0;
  return SUCCESS;
}

int vgpu_cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *, const void *, int, size_t);
API(int, cuOccupancyMaxActiveBlocksPerMultiprocessor)(int *blocks, void *function, int threads, size_t shared) {
  return vgpu_cudaOccupancyMaxActiveBlocksPerMultiprocessor(blocks, function, threads, shared);
}
API(int, cuOccupancyMaxActiveClusters)(int *clusters) {
  *clusters = spec()->multiprocessors / 2;
  return SUCCESS;
}

static int launch(void *stream, void **arguments) {
  int error = ready();
  if (error) return error;
  launch_writes(arguments, ANY_ADDRESS);
  count_node(stream);
  return SUCCESS;
}
API(int, cuLaunchKernel)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                         unsigned shared, void *stream, void **arguments, void **extra) {
  (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared, (void)extra;
  return launch(stream, arguments);
}
API(int, cuLaunchCooperativeKernel)(void *function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                                    unsigned bz, unsigned shared, void *stream, void **arguments) {
  (void)function, (void)gx, (void)gy, (void)gz, (void)bx, (void)by, (void)bz, (void)shared;
  return launch(stream, arguments);
}
typedef struct {
  unsigned grid[3], block[3], shared;
  void *stream;
} launch_t;
API(int, cuLaunchKernelEx)(const launch_t *how, void *function, void **arguments, void **extra) {
  (void)function, (void)extra;
  return launch(how->stream, arguments);
}

/* Streams and events are the runtime's. */
int vgpu_cudaStreamCreateWithPriority(void **, unsigned, int), vgpu_cudaStreamSynchronize(void *);
int vgpu_cudaStreamQuery(void *), vgpu_cudaStreamWaitEvent(void *, event_t *, unsigned);
int vgpu_cudaEventCreateWithFlags(void **, unsigned), vgpu_cudaEventDestroy(void *);
int vgpu_cudaEventRecord(event_t *, void *), vgpu_cudaEventSynchronize(event_t *), vgpu_cudaEventQuery(event_t *);
int vgpu_cudaEventElapsedTime(float *, event_t *, event_t *), vgpu_cudaStreamIsCapturing(void *, int *);
API(int, cuStreamCreate)(void **s, unsigned flags) { return vgpu_cudaStreamCreateWithPriority(s, flags, 0); }
API(int, cuStreamCreateWithPriority)(void **s, unsigned flags, int priority) { return vgpu_cudaStreamCreateWithPriority(s, flags, priority); }
API(int, cuStreamSynchronize)(void *s) { return vgpu_cudaStreamSynchronize(s); }
API(int, cuStreamQuery)(void *s) { return vgpu_cudaStreamQuery(s); }
API(int, cuStreamIsCapturing)(void *s, int *answer) { return vgpu_cudaStreamIsCapturing(s, answer); }
API(int, cuStreamWaitEvent)(void *s, event_t *e, unsigned flags) { return vgpu_cudaStreamWaitEvent(s, e, flags); }
API(int, cuEventCreate)(void **e, unsigned flags) { return vgpu_cudaEventCreateWithFlags(e, flags); }
API(int, cuEventDestroy_v2)(void *e) { return vgpu_cudaEventDestroy(e); }
API(int, cuEventRecord)(event_t *e, void *s) { return vgpu_cudaEventRecord(e, s); }
API(int, cuEventSynchronize)(event_t *e) { return vgpu_cudaEventSynchronize(e); }
API(int, cuEventQuery)(event_t *e) { return vgpu_cudaEventQuery(e); }
API(int, cuEventElapsedTime)(float *ms, event_t *a, event_t *b) { return vgpu_cudaEventElapsedTime(ms, a, b); }

/* A function of the driver by name. The headers rename some to their second
 * version, so that one is looked for where the first is not written. */
void *driver_entry(const char *name) {
  static void *self;
  Dl_info here;
  char longer[128];
  if (!self && dladdr((void *)driver_entry, &here)) self = dlopen(here.dli_fname, RTLD_LAZY | RTLD_NOLOAD);
  static const char *const endings[] = {"", "_v2"};
  for (int i = 0; self && i < 2; ++i) {
    snprintf(longer, sizeof longer, "vgpu_%s%s", name, endings[i]);
    void *written = dlsym(self, longer);
    if (written) return written;
  }
  void *driver = dlopen("libcuda.so.1", RTLD_LAZY);
  return driver ? dlsym(driver, name) : NULL;
}

static int entry(const char *name, void **function, int *found) {
  *function = driver_entry(name);
  if (found) *found = *function ? 0 : 1;
  return *function ? SUCCESS : found ? SUCCESS : NOT_FOUND;
}
API(int, cudaGetDriverEntryPoint)(const char *name, void **function, unsigned long long flags, int *found) {
  (void)flags;
  return entry(name, function, found);
}
API(int, cudaGetDriverEntryPointByVersion)(const char *name, void **function, unsigned version, unsigned long long flags, int *found) {
  (void)version, (void)flags;
  return entry(name, function, found);
}
API(int, cuGetProcAddress_v2)(const char *name, void **function, int version, uint64_t flags, int *found) {
  (void)version, (void)flags;
  return entry(name, function, found);
}
API(int, cuGetProcAddress)(const char *name, void **function, int version, uint64_t flags) {
  (void)version, (void)flags;
  return entry(name, function, NULL);
}

/* Asked for by a CUDA runtime that is built into a library: it calls the driver
 * in ways of its own, which are not public. */
API(int, cuGetExportTable)(const void **table, const void *id) {
  static bool said;
  Dl_info caller;
  (void)id;
  *table = NULL;
  if (!__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) {
    bool known = dladdr(__builtin_return_address(0), &caller) && caller.dli_fname;
    fprintf(stderr,
            "virtual GPU: %s has the CUDA runtime built in (libcudart_static) and cannot run "
            "here: use a build of it that links libcudart.so\n",
            known ? caller.dli_fname : "a library");
  }
  return NOT_SUPPORTED;
}
