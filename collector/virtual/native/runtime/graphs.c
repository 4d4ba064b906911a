/* Captures and graphs: a graph is the number of its nodes. */
#define _GNU_SOURCE
#include "runtime/streams.h"
#include "vgpu.h"

#include <stdlib.h>

static int n_active;
static capture_t *newest; /* and then its older ones */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static __thread void *library_stream; /* that a library was given last */
static unsigned long long last_id;
static __thread int thread_mode; /* torch relaxes it around cudaMalloc */

bool any_capture(void) { return __atomic_load_n(&n_active, __ATOMIC_ACQUIRE) > 0; }

/* Synchronising with a stream that captures fails and spoils the capture. */
int capture_forbids(void *handle) {
  if (!any_capture()) return SUCCESS;
  stream_t *stream = stream_of(handle);
  if (!capturing(stream)) return SUCCESS;
  stream->capture->invalid = true;
  return fail(CAPTURE_UNSUPPORTED);
}

void count_node(void *handle) {
  if (!any_capture()) return;
  stream_t *stream = stream_of(handle);
  if (capturing(stream)) __atomic_fetch_add(&stream->capture->graph->nodes, 1, __ATOMIC_RELAXED);
}

/* torch tells a library the stream before each work, on the thread that calls it. */
void works_on(void *handle) { library_stream = handle; }

/* Work of a library: on the stream it was given or, where another thread did,
 * in the newest capture. */
void count_work(void) {
  if (!any_capture()) return;
  if (capturing(stream_of(library_stream))) return count_node(library_stream);
  pthread_mutex_lock(&lock);
  while (newest && !newest->active) newest = newest->older;
  if (newest) __atomic_fetch_add(&newest->graph->nodes, 1, __ATOMIC_RELAXED);
  pthread_mutex_unlock(&lock);
}

static int begin(void *handle, graph_t *graph, int mode) {
  int error = ready();
  if (error) return error;
  stream_t *stream = stream_of(handle);
  if (!stream->side) return fail(CAPTURE_UNSUPPORTED);
  if (capturing(stream)) return fail(INVALID_VALUE);
  capture_t *capture = calloc(1, sizeof *capture);
  if (capture && !graph) graph = calloc(1, sizeof *graph);
  if (!capture || !graph) return fail(OUT_OF_MEMORY);
  capture->id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED);
  capture->mode = mode;
  capture->origin = stream;
  capture->graph = graph;
  capture->active = true;
  stream->capture = capture;
  pthread_mutex_lock(&lock);
  capture->older = newest;
  newest = capture;
  pthread_mutex_unlock(&lock);
  __atomic_fetch_add(&n_active, 1, __ATOMIC_RELEASE);
  return SUCCESS;
}

API(int, cudaStreamBeginCapture)(void *handle, int mode) { return begin(handle, NULL, mode); }
API(int, cudaStreamBeginCaptureToGraph)(void *handle, graph_t *graph, const void *dependencies,
                                        const void *edges, size_t n, int mode) {
  (void)dependencies, (void)edges, (void)n;
  return begin(handle, graph, mode);
}

API(int, cudaStreamEndCapture)(void *handle, graph_t **graph) {
  stream_t *stream = stream_of(handle);
  capture_t *capture = stream->capture;
  *graph = NULL;
  if (!capturing(stream) || capture->origin != stream) return fail(INVALID_VALUE);
  capture->active = false;
  stream->capture = NULL;
  __atomic_fetch_sub(&n_active, 1, __ATOMIC_RELEASE);
  if (capture->invalid) return fail(CAPTURE_INVALIDATED);
  *graph = capture->graph;
  return SUCCESS;
}

static int status(const stream_t *stream) {
  return !capturing(stream) ? 0 : stream->capture->invalid ? 2 : 1;
}

API(int, cudaStreamIsCapturing)(void *handle, int *answer) {
  *answer = status(stream_of(handle));
  return SUCCESS;
}

static int capture_info(void *handle, int *answer, unsigned long long *id, graph_t **graph,
                        const void ***dependencies, size_t *n) {
  stream_t *stream = stream_of(handle);
  *answer = status(stream);
  if (n) *n = 0;
  if (dependencies) *dependencies = NULL;
  if (!*answer) return SUCCESS;
  if (id) *id = stream->capture->id;
  if (graph) *graph = stream->capture->graph;
  if (dependencies) *dependencies = (const void **)stream->capture->nodes;
  return SUCCESS;
}

API(int, cudaStreamGetCaptureInfo_v2)(void *handle, int *answer, unsigned long long *id,
                                      graph_t **graph, const void ***dependencies, size_t *n) {
  return capture_info(handle, answer, id, graph, dependencies, n);
}
API(int, cudaStreamGetCaptureInfo_v3)(void *handle, int *answer, unsigned long long *id,
                                      graph_t **graph, const void ***dependencies,
                                      const void **edges, size_t *n) {
  if (edges) *edges = NULL;
  return capture_info(handle, answer, id, graph, dependencies, n);
}
/* Named so since CUDA 13; before, the function without a version took three. */
API(int, cudaStreamGetCaptureInfo)(void *handle, int *answer, unsigned long long *id,
                                   graph_t **graph, const void ***dependencies,
                                   const void **edges, size_t *n) {
  if (spec()->cuda < 13000) return capture_info(handle, answer, id, NULL, NULL, NULL);
  return vgpu_cudaStreamGetCaptureInfo_v3(handle, answer, id, graph, dependencies, edges, n);
}

API(int, cudaThreadExchangeStreamCaptureMode)(int *mode) {
  int before = thread_mode;
  thread_mode = *mode;
  *mode = before;
  return SUCCESS;
}

API(int, cudaGraphCreate)(graph_t **graph, unsigned flags) {
  (void)flags;
  *graph = calloc(1, sizeof **graph);
  return *graph ? SUCCESS : fail(OUT_OF_MEMORY);
}
API(int, cudaGraphDestroy)(graph_t *graph) {
  free(graph);
  return SUCCESS;
}
API(int, cudaGraphClone)(graph_t **copy, const graph_t *graph) {
  int error = vgpu_cudaGraphCreate(copy, 0);
  if (!error) **copy = *graph;
  return error;
}
/* The nodes have no handles to give: torch reads only their number. */
API(int, cudaGraphGetNodes)(const graph_t *graph, void **nodes, size_t *n) {
  if (nodes)
    for (size_t i = 0; i < *n; ++i) nodes[i] = NULL;
  *n = graph->nodes;
  return SUCCESS;
}
API(int, cudaGraphAddNode)(void **node, graph_t *graph) {
  *node = graph;
  graph->nodes += 1;
  return SUCCESS;
}
API(int, cudaGraphInstantiateWithFlags)(graph_t **executable, const graph_t *graph, unsigned long long flags) {
  (void)flags;
  return vgpu_cudaGraphClone(executable, graph);
}
API(int, cudaGraphInstantiate)(graph_t **executable, const graph_t *graph, unsigned long long flags) {
  return vgpu_cudaGraphInstantiateWithFlags(executable, graph, flags);
}
API(int, cudaGraphExecDestroy)(graph_t *executable) {
  free(executable);
  return SUCCESS;
}
API(int, cudaGraphLaunch)(graph_t *executable, void *handle) {
  (void)executable;
  count_node(handle);
  return ready();
}
API(int, cudaGraphExecUpdate)(graph_t *executable, const graph_t *graph, void *result) {
  (void)result;
  *executable = *graph;
  return SUCCESS;
}
