#include "vgpu.h"
int vgpu_cudaMalloc(void **, size_t); int vgpu_cudaFree(void *);
API(int, cudaMallocAsync)(void **p, size_t n, void *s) { return vgpu_cudaMalloc(p, n); }
API(int, cudaFreeAsync)(void *p, void *s) { return vgpu_cudaFree(p); }
