/* Devices as the environment describes them: selection, errors, capability. */
#define _GNU_SOURCE
#include "vgpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static spec_t the_spec;
static int visible[MAX_DEVICES], n_visible;
static __thread int current;
static __thread int last_error;
static unsigned char contexts[MAX_DEVICES];
static unsigned contexts_of; /* the generation that made them */

static long number(const char *text, const char *key, long otherwise) {
  size_t n = strlen(key);
  for (const char *at = text; at; at = strchr(at, ';'), at = at ? at + 1 : at)
    if (!strncmp(at, key, n) && at[n] == '=') return strtol(at + n + 1, NULL, 10);
  return otherwise;
}

static void read_name(const char *text) {
  const char *at = strstr(text, "name=");
  size_t n = at ? strcspn(at + 5, ";") : 0;
  if (n >= sizeof the_spec.name) n = sizeof the_spec.name - 1;
  if (at) memcpy(the_spec.name, at + 5, n);
}

/* Numbers in CUDA_VISIBLE_DEVICES end at the first that is no device. */
static void read_visible(void) {
  const char *at = getenv("CUDA_VISIBLE_DEVICES");
  if (!at) {
    for (int i = 0; i < the_spec.count; ++i) visible[n_visible++] = i;
    return;
  }
  while (*at && n_visible < MAX_DEVICES) {
    char *end;
    unsigned first;
    long device;
    while (*at == ' ') ++at;
    if (sscanf(at, "GPU-%8x", &first) == 1) { /* driver/nvml.c has the words */
      device = (long)first - 1;
      end = (char *)at + strcspn(at, ",");
    } else {
      device = strtol(at, &end, 10);
    }
    if (end == at || device < 0 || device >= the_spec.count) return;
    visible[n_visible++] = (int)device;
    at = end + strspn(end, " ");
    if (*at++ != ',') return;
  }
}

static void read_environment(void) {
  const char *text = getenv("MEMBOARD_VIRTUAL_GPU");
  if (!text) text = "";
  read_name(text);
  if (!the_spec.name[0]) strcpy(the_spec.name, "Virtual GPU");
  the_spec.memory = (size_t)number(text, "memory", 80L << 30);
  the_spec.context = (size_t)number(text, "context", 0);
  the_spec.count = (int)number(text, "devices", 1);
  if (the_spec.count > MAX_DEVICES) the_spec.count = MAX_DEVICES;
  the_spec.major = (int)number(text, "major", 9);
  the_spec.minor = (int)number(text, "minor", 0);
  the_spec.multiprocessors = (int)number(text, "sms", 132);
  the_spec.threads_per_sm = (int)number(text, "threads_per_sm", 2048);
  the_spec.blocks_per_sm = (int)number(text, "blocks_per_sm", 32);
  the_spec.shared_per_sm = (int)number(text, "shared_per_sm", 233472);
  the_spec.shared_per_block = (int)number(text, "shared_per_block", 232448);
  the_spec.l2_bytes = (int)number(text, "l2", 50 << 20);
  the_spec.bus_bits = (int)number(text, "bus", 5120);
  the_spec.clock_khz = (int)number(text, "clock", 1980000);
  the_spec.memory_clock_khz = (int)number(text, "memory_clock", 2619000);
  the_spec.cuda = (int)number(text, "cuda", 13000);
  the_spec.cudnn = (int)number(text, "cudnn", 91000);
  the_spec.nccl = (int)number(text, "nccl", 22703);
  const char *events = getenv("MEMBOARD_VIRTUAL_EVENTS");
  the_spec.events_wait = events && !strcmp(events, "at-sync");
  read_visible();
}

const spec_t *spec(void) {
  pthread_once(&once, read_environment);
  return &the_spec;
}

int visible_devices(void) { return spec(), n_visible; }
int physical_device(int device) { return spec(), visible[device]; }
int current_device(void) { return current; }
int capability(void) { return spec()->major * 10 + spec()->minor; }

int fail(int error) {
  if (error && error != NOT_READY) last_error = error;
  return error;
}

int ready(void) {
  if (forked_after_use()) return fail(NOT_INITIALIZED);
  return visible_devices() ? SUCCESS : fail(NO_DEVICE);
}

int context(void) {
  int error = ready();
  if (error) return error;
  if (contexts_of != generation()) {
    memset(contexts, 0, sizeof contexts);
    contexts_of = generation();
  }
  if (!__atomic_exchange_n(&contexts[current], 1, __ATOMIC_ACQ_REL))
    context_made(physical_device(current));
  return SUCCESS;
}

bool has_context(int device) {
  return contexts_of == generation() && __atomic_load_n(&contexts[device], __ATOMIC_ACQUIRE);
}

API(int, cudaGetDeviceCount)(int *count) {
  *count = 0;
  int error = ready();
  if (!error) *count = visible_devices();
  return error;
}

API(int, cudaGetDevice)(int *device) {
  *device = current;
  return SUCCESS;
}

API(int, cudaSetDevice)(int device) {
  int error = ready();
  if (error) return error;
  if (device < 0 || device >= visible_devices()) return fail(INVALID_DEVICE);
  current = device;
  return spec()->cuda >= 12000 ? context() : SUCCESS;
}

API(int, cudaDeviceReset)(void) { return ready(); }
API(int, cudaDriverGetVersion)(int *version) {
  *version = spec()->cuda;
  return SUCCESS;
}
API(int, cudaRuntimeGetVersion)(int *version) {
  *version = spec()->cuda;
  return SUCCESS;
}

API(int, cudaGetLastError)(void) {
  int error = last_error;
  last_error = SUCCESS;
  return error;
}
API(int, cudaPeekAtLastError)(void) { return last_error; }

static const struct {
  int error;
  const char *runtime, *driver, *words;
} errors[] = {
    {SUCCESS, "cudaSuccess", "CUDA_SUCCESS", "no error"},
    {INVALID_VALUE, "cudaErrorInvalidValue", "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {OUT_OF_MEMORY, "cudaErrorMemoryAllocation", "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {NOT_INITIALIZED, "cudaErrorInitializationError", "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {NO_DEVICE, "cudaErrorNoDevice", "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {INVALID_DEVICE, "cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {NOT_FOUND, "cudaErrorSymbolNotFound", "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {NOT_READY, "cudaErrorNotReady", "CUDA_ERROR_NOT_READY", "device not ready"},
    {PEER_ALREADY_ENABLED, "cudaErrorPeerAccessAlreadyEnabled", "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED", "peer access is already enabled"},
    {PEER_NOT_ENABLED, "cudaErrorPeerAccessNotEnabled", "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED", "peer access has not been enabled"},
    {HOST_NOT_REGISTERED, "cudaErrorHostMemoryNotRegistered", "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED", "pointer does not correspond to a registered memory region"},
    {NOT_SUPPORTED, "cudaErrorNotSupported", "CUDA_ERROR_NOT_SUPPORTED", "operation not supported"},
    {CAPTURE_UNSUPPORTED, "cudaErrorStreamCaptureUnsupported", "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED", "operation not permitted when stream is capturing"},
    {CAPTURE_INVALIDATED, "cudaErrorStreamCaptureInvalidated", "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED", "operation failed due to a previous error during capture"},
    {CAPTURED_EVENT, "cudaErrorCapturedEvent", "CUDA_ERROR_CAPTURED_EVENT", "operation not permitted on an event last recorded in a capturing stream"},
};
enum { N_ERRORS = sizeof errors / sizeof *errors };

API(const char *, cudaGetErrorString)(int error) {
  for (int i = 0; i < N_ERRORS; ++i)
    if (errors[i].error == error) return errors[i].words;
  return "unrecognized error code";
}

API(const char *, cudaGetErrorName)(int error) {
  for (int i = 0; i < N_ERRORS; ++i)
    if (errors[i].error == error) return errors[i].runtime;
  return "unrecognized error code";
}

API(int, cuGetErrorString)(int error, const char **words) {
  *words = vgpu_cudaGetErrorString(error);
  return SUCCESS;
}

API(int, cuGetErrorName)(int error, const char **name) {
  *name = "CUDA_ERROR_UNKNOWN";
  for (int i = 0; i < N_ERRORS; ++i)
    if (errors[i].error == error) *name = errors[i].driver;
  return SUCCESS;
}
