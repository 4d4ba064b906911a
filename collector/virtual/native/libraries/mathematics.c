/* NVIDIA's mathematical libraries: what tables/answers.txt cannot say. */
#define _GNU_SOURCE
#include "vgpu.h"

#include <string.h>

API(int, cublasGetVersion_v2)(void *handle, int *version) {
  (void)handle;
  *version = spec()->cuda * 10;
  return SUCCESS;
}
API(size_t, cublasLtGetVersion)(void) { return (size_t)spec()->cuda * 10; }
API(const char *, cublasGetStatusString)(int status) {
  return status ? "CUBLAS_STATUS_INTERNAL_ERROR" : "CUBLAS_STATUS_SUCCESS";
}

#define TELLS_STREAM(name)                   \
  API(int, name)(void *handle, void *stream) { \
    (void)handle;                            \
    works_on(stream);                        \
    return SUCCESS;                          \
  }
TELLS_STREAM(cublasSetStream_v2)
TELLS_STREAM(cudnnSetStream)
TELLS_STREAM(cusolverDnSetStream)
TELLS_STREAM(cusparseSetStream)
TELLS_STREAM(cufftSetStream)
TELLS_STREAM(curandSetStream)

API(int, cublasLtMatmul)(void *handle, void *operation, const void *alpha, const void *a, void *a_how,
                         const void *b, void *b_how, const void *beta, const void *c, void *c_how,
                         void *d, void *d_how, const void *algorithm, void *workspace, size_t bytes,
                         void *stream) {
  (void)handle, (void)operation, (void)alpha, (void)a, (void)a_how, (void)b, (void)b_how, (void)beta;
  (void)c, (void)c_how, (void)d, (void)d_how, (void)algorithm, (void)workspace, (void)bytes;
  count_node(stream);
  return ready();
}

typedef struct {
  uint64_t algorithm[8];
  size_t workspace;
  int state;
  float waves;
  int reserved[4];
} heuristic_t;
API(int, cublasLtMatmulAlgoGetHeuristic)(void *handle, void *operation, void *a, void *b, void *c,
                                         void *d, void *preference, int wanted,
                                         heuristic_t *results, int *found) {
  (void)handle, (void)operation, (void)a, (void)b, (void)c, (void)d, (void)preference;
  *found = wanted > 0;
  if (*found) memset(results, 0, sizeof *results);
  return SUCCESS;
}

API(const char *, cusparseGetErrorString)(int status) {
  return status ? "CUSPARSE_STATUS_INTERNAL_ERROR" : "CUSPARSE_STATUS_SUCCESS";
}

API(int, nvrtcVersion)(int *major, int *minor) {
  *major = spec()->cuda / 1000;
  *minor = spec()->cuda % 1000 / 10;
  return SUCCESS;
}
API(int, nvrtcGetLoweredName)(void *program, const char *name, const char **lowered) {
  (void)program;
  *lowered = name;
  return SUCCESS;
}
API(int, nvrtcGetProgramLog)(void *program, char *text) {
  (void)program;
  *text = 0;
  return SUCCESS;
}
API(const char *, nvrtcGetErrorString)(int status) {
  return status ? "NVRTC_ERROR_INTERNAL_ERROR" : "NVRTC_SUCCESS";
}

API(int, cuptiGetResultString)(int status, const char **text) {
  *text = status ? "CUPTI_ERROR_UNKNOWN" : "CUPTI_SUCCESS";
  return SUCCESS;
}
API(int, cuptiGetCallbackName)(int domain, uint32_t id, const char **name) {
  (void)domain, (void)id;
  *name = "unknown";
  return SUCCESS;
}
/* CUPTI_ERROR_MAX_LIMIT_REACHED: the buffer holds no further record. */
API(int, cuptiActivityGetNextRecord)(uint8_t *buffer, size_t size, void **record) {
  (void)buffer, (void)size;
  *record = NULL;
  return 12;
}
