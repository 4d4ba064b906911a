#include "vgpu.h"
#include <stdlib.h>
API(size_t, cudnnGetVersion)(void) { return 8902; }
API(size_t, cudnnGetCudartVersion)(void) { return (size_t)spec()->cuda; }
API(const char *, cudnnGetErrorString)(int s) { return s ? "CUDNN_STATUS_NOT_SUPPORTED" : "CUDNN_STATUS_SUCCESS"; }
API(int, cudnnCreate)(void **h) { *h = calloc(1, 16); return 0; }
