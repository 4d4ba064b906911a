/* NVIDIA's mathematical libraries: handles of their own, questions with an
 * answer, and work that does nothing. */
#define _GNU_SOURCE
#include "vgpu.h"

#include <stdlib.h>
#include <string.h>

/* torch keeps workspaces by handle, so each must be distinct. */
static int handle(void **out) {
  int error = context();
  *out = error ? NULL : calloc(1, 16);
  return error;
}
static int let_go(void *handle) {
  free(handle);
  return SUCCESS;
}

API(int, cublasCreate_v2)(void **out) { return handle(out); }
API(int, cublasDestroy_v2)(void *out) { return let_go(out); }
API(int, cublasGetPointerMode_v2)(void *h, int *mode) { (void)h; *mode = 0; return SUCCESS; }
API(int, cublasGetMathMode)(void *h, int *mode) { (void)h; *mode = 0; return SUCCESS; }
API(int, cublasGetVersion_v2)(void *h, int *version) { (void)h; *version = spec()->cuda * 10; return SUCCESS; }
API(size_t, cublasLtGetVersion)(void) { return (size_t)spec()->cuda * 10; }
API(const char *, cublasGetStatusString)(int status) { return status ? "CUBLAS_STATUS_INTERNAL_ERROR" : "CUBLAS_STATUS_SUCCESS"; }
API(int, cublasLtCreate)(void **out) { return handle(out); }
API(int, cublasLtDestroy)(void *out) { return let_go(out); }
API(int, cublasLtMatmulDescCreate)(void **out) { return handle(out); }
API(int, cublasLtMatmulDescDestroy)(void *out) { return let_go(out); }
API(int, cublasLtMatmulPreferenceCreate)(void **out) { return handle(out); }
API(int, cublasLtMatmulPreferenceDestroy)(void *out) { return let_go(out); }
API(int, cublasLtMatrixLayoutCreate)(void **out) { return handle(out); }
API(int, cublasLtMatrixLayoutDestroy)(void *out) { return let_go(out); }

typedef struct {
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} heuristic_t;
API(int, cublasLtMatmulAlgoGetHeuristic)(void *h, void *operation, void *a, void *b, void *c, void *d, void *preference,
                                         int wanted, heuristic_t *results, int *found) {
  (void)h, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference;
  *found = wanted > 0;
  if (*found) memset(results, 0, sizeof *results);
  return SUCCESS;
}

API(int, cusolverDnCreate)(void **out) { return handle(out); }
API(int, cusolverDnDestroy)(void *out) { return let_go(out); }
API(int, cusolverDnCreateParams)(void **out) { return handle(out); }
API(int, cusolverDnCreateGesvdjInfo)(void **out) { return handle(out); }
API(int, cusolverDnCreateSyevjInfo)(void **out) { return handle(out); }
API(int, cusparseCreate)(void **out) { return handle(out); }
API(int, cusparseDestroy)(void *out) { return let_go(out); }
API(const char *, cusparseGetErrorString)(int status) { return status ? "cusparse error" : "success"; }
API(int, curandCreateGenerator)(void **out) { return handle(out); }
API(int, cufftCreate)(int *plan) {
  static int last;
  *plan = __atomic_add_fetch(&last, 1, __ATOMIC_RELAXED);
  return SUCCESS;
}
API(int, cufftXtMakePlanMany)(int plan, int rank, void *n, void *a, long b, long c, int d, void *e, long f, long g, int h,
                              long batch, size_t *workspace, int type) {
  (void)plan, (void)rank, (void)n, (void)a, (void)b, (void)c, (void)d, (void)e, (void)f, (void)g, (void)h, (void)batch, (void)type;
  *workspace = 0;
  return SUCCESS;
}

API(int, nvrtcVersion)(int *major, int *minor) {
  *major = spec()->cuda / 1000;
  *minor = spec()->cuda % 1000 / 10;
  return SUCCESS;
}
API(int, nvrtcCreateProgram)(void **out) { return handle(out); }
API(int, nvrtcDestroyProgram)(void **program) {
  free(*program);
  *program = NULL;
  return SUCCESS;
}
API(int, nvrtcGetCUBINSize)(void *p, size_t *bytes) { (void)p; *bytes = 16; return SUCCESS; }
API(int, nvrtcGetPTXSize)(void *p, size_t *bytes) { (void)p; *bytes = 16; return SUCCESS; }
API(int, nvrtcGetCUBIN)(void *p, char *text) { (void)p; memset(text, 0, 16); return SUCCESS; }
API(int, nvrtcGetPTX)(void *p, char *text) { (void)p; memset(text, 0, 16); return SUCCESS; }
API(int, nvrtcGetLoweredName)(void *p, const char *name, const char **lowered) { (void)p; *lowered = name; return SUCCESS; }
API(int, nvrtcGetProgramLogSize)(void *p, size_t *bytes) { (void)p; *bytes = 1; return SUCCESS; }
API(int, nvrtcGetProgramLog)(void *p, char *text) { (void)p; *text = 0; return SUCCESS; }
API(const char *, nvrtcGetErrorString)(int status) { return status ? "NVRTC_ERROR_INTERNAL_ERROR" : "NVRTC_SUCCESS"; }

API(int, cuptiGetVersion)(uint32_t *version) { *version = 26; return SUCCESS; }
API(int, cuptiGetResultString)(int status, const char **text) {
  *text = status ? "CUPTI_ERROR_UNKNOWN" : "CUPTI_SUCCESS";
  return SUCCESS;
}
API(int, cuptiSubscribe)(void **out) { return handle(out); }
API(int, cuptiUnsubscribe)(void *out) { return let_go(out); }
API(int, cuptiActivityGetNumDroppedRecords)(void *c, uint32_t stream, size_t *dropped) {
  (void)c, (void)stream;
  if (dropped) *dropped = 0;
  return SUCCESS;
}
/* CUPTI_ERROR_MAX_LIMIT_REACHED: the buffer holds no further record. */
API(int, cuptiActivityGetNextRecord)(uint8_t *buffer, size_t size, void **record) {
  (void)buffer, (void)size;
  *record = NULL;
  return 12;
}
