/* cuDNN: descriptors remember what they are told, heuristics know one engine,
 * plans need no workspace. Real ones need some; how much is not known here. */
#define _GNU_SOURCE
#include "vgpu.h"

#include <stdlib.h>
#include <string.h>

enum { BAD_PARAM = 2000, DNN_NOT_SUPPORTED = 3000 };

API(size_t, cudnnGetVersion)(void) { return (size_t)spec()->cudnn; }
API(size_t, cudnnGetCudartVersion)(void) { return (size_t)spec()->cuda; }
API(int, cudnnGetProperty)(int part, int *value) {
  int version = spec()->cudnn;
  *value = part == 0 ? version / 10000 : part == 1 ? version / 100 % 100 : version % 100;
  return SUCCESS;
}
API(const char *, cudnnGetErrorString)(int status) {
  return status == 0                   ? "CUDNN_STATUS_SUCCESS"
         : status == DNN_NOT_SUPPORTED ? "CUDNN_STATUS_NOT_SUPPORTED"
                                       : "CUDNN_STATUS_BAD_PARAM";
}
API(void, cudnnGetLastErrorString)(char *text, size_t room) {
  if (room) *text = 0;
}

/* The backend's descriptors: attributes by their number. */
typedef struct attribute {
  int name;
  int64_t count;
  size_t size; /* of one element */
  struct attribute *next;
  char values[];
} attribute_t;

typedef struct {
  int type;
  attribute_t *attributes;
} descriptor_t;

enum {
  HEURISTICS_RESULTS = 202,
  CONFIG_ENGINE = 300,
  CONFIG_WORKSPACE = 303,
  CONFIG_SHARED_MEMORY = 304,
  PLAN_WORKSPACE = 402,
  GRAPH_ENGINES = 802,
  ENGINE_INDEX = 1301,
};

static size_t element_size(int type) {
  switch (type) {
    case 0: case 3: case 5: case 6: case 15: return 8; /* handle, int64, double, pointer, descriptor */
    case 2: case 24: return 1;                         /* bool, char */
    case 26: return 16;                                /* fraction */
    default: return 4;
  }
}

API(int, cudnnBackendCreateDescriptor)(int type, descriptor_t **out) {
  *out = calloc(1, sizeof **out);
  if (*out) (*out)->type = type;
  return *out ? SUCCESS : BAD_PARAM;
}

API(int, cudnnBackendDestroyDescriptor)(descriptor_t *descriptor) {
  if (!descriptor) return SUCCESS;
  for (attribute_t *one = descriptor->attributes, *next; one; one = next) {
    next = one->next;
    free(one);
  }
  free(descriptor);
  return SUCCESS;
}

API(int, cudnnBackendSetAttribute)(descriptor_t *descriptor, int name, int type, int64_t count, const void *values) {
  size_t size = element_size(type);
  if (!descriptor || count < 0 || (count && !values)) return BAD_PARAM;
  attribute_t *one = malloc(sizeof *one + (size_t)count * size);
  if (!one) return BAD_PARAM;
  *one = (attribute_t){name, count, size, descriptor->attributes};
  if (count) memcpy(one->values, values, (size_t)count * size);
  descriptor->attributes = one;
  return SUCCESS;
}

API(int, cudnnBackendFinalize)(descriptor_t *descriptor) { return descriptor ? SUCCESS : BAD_PARAM; }
API(int, cudnnBackendExecute)(void *handle, descriptor_t *plan, descriptor_t *pack) {
  (void)handle, (void)plan, (void)pack;
  count_work();
  return ready();
}

/* What a descriptor was not told but knows; -1 where it does not. */
static int64_t answer(int name, int64_t wanted, void *values) {
  switch (name) {
    case HEURISTICS_RESULTS: case CONFIG_ENGINE: /* the caller made them */
      return 1;
    case CONFIG_SHARED_MEMORY:
      if (wanted > 0 && values) *(int32_t *)values = 0;
      return 1;
    case CONFIG_WORKSPACE: case PLAN_WORKSPACE: case ENGINE_INDEX:
      if (wanted > 0 && values) *(int64_t *)values = 0;
      return 1;
    case GRAPH_ENGINES:
      if (wanted > 0 && values) *(int64_t *)values = 1;
      return 1;
    default:
      return -1;
  }
}

API(int, cudnnBackendGetAttribute)(descriptor_t *descriptor, int name, int type, int64_t wanted, int64_t *count, void *values) {
  (void)type;
  if (!descriptor) return BAD_PARAM;
  int64_t known = answer(name, wanted, values);
  attribute_t *one = descriptor->attributes;
  while (known < 0 && one && one->name != name) one = one->next;
  if (count) *count = known >= 0 ? known : one ? one->count : 0;
  if (known < 0 && one && values) memcpy(values, one->values, (size_t)(wanted < one->count ? wanted : one->count) * one->size);
  return SUCCESS;
}

/* Convolutions without the backend: one algorithm. */
typedef struct {
  int algorithm, status;
  float time;
  size_t memory;
  int determinism, mathematics, reserved[3];
} performance_t;
static int one_algorithm(int wanted, int *found, performance_t *results) {
  *found = wanted > 0;
  if (*found) memset(results, 0, sizeof *results), results->algorithm = 1;
  return SUCCESS;
}
#define ALGORITHMS(name)                                                                          \
  API(int, name)(void *h, void *a, void *b, void *c, void *d, int wanted, int *found, performance_t *results) { \
    (void)h, (void)a, (void)b, (void)c, (void)d;                                                  \
    return one_algorithm(wanted, found, results);                                                 \
  }
ALGORITHMS(cudnnGetConvolutionForwardAlgorithm_v7)
ALGORITHMS(cudnnGetConvolutionBackwardDataAlgorithm_v7)
ALGORITHMS(cudnnGetConvolutionBackwardFilterAlgorithm_v7)
#define FINDING(name)                                                                             \
  API(int, name)(void *h, void *a, const void *x, void *b, const void *y, void *c, void *d, void *z, int wanted, \
                 int *found, performance_t *results) {                                            \
    (void)h, (void)a, (void)x, (void)b, (void)y, (void)c, (void)d, (void)z;                       \
    return one_algorithm(wanted, found, results);                                                 \
  }
FINDING(cudnnFindConvolutionForwardAlgorithmEx)
FINDING(cudnnFindConvolutionBackwardDataAlgorithmEx)
FINDING(cudnnFindConvolutionBackwardFilterAlgorithmEx)

#define LIFE(name, type)                             \
  API(int, cudnnCreate##name)(type **out) {           \
    *out = calloc(1, sizeof **out);                   \
    return *out ? SUCCESS : BAD_PARAM;                \
  }                                                   \
  API(int, cudnnDestroy##name)(type *one) {           \
    free(one);                                        \
    return SUCCESS;                                   \
  }

/* Tensors whose shape torch reads. */
typedef struct {
  int type, dimensions, sizes[8], strides[8];
} shape_t;
LIFE(TensorDescriptor, shape_t)
API(int, cudnnSetTensorNdDescriptor)(shape_t *shape, int type, int dimensions, const int *sizes, const int *strides) {
  if (dimensions < 0 || dimensions > 8) return DNN_NOT_SUPPORTED;
  shape->type = type;
  shape->dimensions = dimensions;
  memcpy(shape->sizes, sizes, (size_t)dimensions * sizeof *sizes);
  memcpy(shape->strides, strides, (size_t)dimensions * sizeof *strides);
  return SUCCESS;
}
API(int, cudnnGetTensorNdDescriptor)(const shape_t *shape, int room, int *type, int *dimensions, int *sizes, int *strides) {
  int n = shape->dimensions < room ? shape->dimensions : room;
  if (type) *type = shape->type;
  if (dimensions) *dimensions = shape->dimensions;
  if (sizes) memcpy(sizes, shape->sizes, (size_t)n * sizeof *sizes);
  if (strides) memcpy(strides, shape->strides, (size_t)n * sizeof *strides);
  return SUCCESS;
}

/* Recurrent networks: their parameters lie in one buffer, layer by layer, each
 * with its matrices (input's, then recurrent) and after all of them the biases. */
typedef struct {
  int mode, bias, directions, type, layers;
  int64_t input, hidden, projected;
} rnn_t;

LIFE(RNNDescriptor, rnn_t)
API(int, cudnnSetRNNDescriptor_v8)(rnn_t *rnn, int algorithm, int mode, int bias, int direction, int input_mode, int type,
                                   int precision, int mathematics, int input, int hidden, int projected, int layers,
                                   void *dropout, unsigned flags) {
  (void)algorithm, (void)input_mode, (void)precision, (void)mathematics, (void)dropout, (void)flags;
  *rnn = (rnn_t){mode, bias, direction ? 2 : 1, type, layers, input, hidden, projected};
  return SUCCESS;
}

static size_t bytes_of(int type) {
  static const unsigned char sizes[] = {4, 8, 2, 1, 4, 4, 1, 4, 4, 2};
  return type >= 0 && type < 10 ? sizes[type] : 4;
}
static int gates(const rnn_t *rnn) { return rnn->mode < 2 ? 1 : rnn->mode == 2 ? 4 : 3; } /* relu, tanh, LSTM, GRU */
static int bias_sets(const rnn_t *rnn) { return rnn->bias == 0 ? 0 : rnn->bias == 2 ? 2 : 1; }
static bool projects(const rnn_t *rnn) { return rnn->projected != rnn->hidden; }

static int64_t width_into(const rnn_t *rnn, int layer) {
  return layer < rnn->directions ? rnn->input : rnn->projected * rnn->directions;
}
static int64_t matrices(const rnn_t *rnn, int layer) {
  int64_t own = gates(rnn) * rnn->hidden * (width_into(rnn, layer) + rnn->projected);
  return own + (projects(rnn) ? rnn->hidden * rnn->projected : 0);
}

API(int, cudnnGetRNNWeightSpaceSize)(void *handle, const rnn_t *rnn, size_t *bytes) {
  (void)handle;
  int pseudo_layers = rnn->layers * rnn->directions;
  int64_t elements = (int64_t)pseudo_layers * gates(rnn) * rnn->hidden * bias_sets(rnn);
  for (int layer = 0; layer < pseudo_layers; ++layer) elements += matrices(rnn, layer);
  *bytes = (size_t)elements * bytes_of(rnn->type);
  return SUCCESS;
}

static void describe(shape_t *shape, const rnn_t *rnn, int64_t rows, int64_t columns) {
  int sizes[] = {1, (int)rows, (int)columns}, strides[] = {(int)(rows * columns), (int)columns, 1};
  vgpu_cudnnSetTensorNdDescriptor(shape, rnn->type, 3, sizes, strides);
}

API(int, cudnnGetRNNWeightParams)(void *handle, const rnn_t *rnn, int layer, size_t bytes, char *space, int id,
                                  shape_t *matrix, char **at, shape_t *bias, char **bias_at) {
  (void)handle, (void)bytes;
  int n = gates(rnn), pseudo_layers = rnn->layers * rnn->directions;
  int64_t before = 0, all = 0, width = width_into(rnn, layer), size = (int64_t)bytes_of(rnn->type);
  for (int i = 0; i < pseudo_layers; ++i) {
    if (i < layer) before += matrices(rnn, i);
    all += matrices(rnn, i);
  }
  bool recurrent = id >= n, projection = id == 2 * n;
  int64_t rows = projection ? rnn->projected : rnn->hidden;
  int64_t columns = projection ? rnn->hidden : recurrent ? rnn->projected : width;
  if (projection && !projects(rnn)) {
    rows = columns = 0;
  } else {
    before += recurrent ? n * rnn->hidden * width + (id - n) * rnn->hidden * rnn->projected
                        : id * rnn->hidden * width;
  }
  if (at) *at = rows ? space + before * size : NULL;
  if (matrix) describe(matrix, rnn, rows, columns);
  int sets = bias_sets(rnn);
  bool has_bias = !projection && (sets == 2 || (sets == 1 && !recurrent));
  int64_t which = ((int64_t)layer * sets + (recurrent ? sets - 1 : 0)) * n + id % n;
  if (bias_at) *bias_at = has_bias ? space + (all + which * rnn->hidden) * size : NULL;
  if (bias) describe(bias, rnn, has_bias ? rnn->hidden : 0, 1);
  return SUCCESS;
}

typedef struct {
  int type, layout, length, batch, vector;
} sequence_t;
LIFE(RNNDataDescriptor, sequence_t)
API(int, cudnnSetRNNDataDescriptor)(sequence_t *sequence, int type, int layout, int length, int batch, int vector,
                                    const int *lengths, void *padding) {
  (void)lengths, (void)padding;
  *sequence = (sequence_t){type, layout, length, batch, vector};
  return SUCCESS;
}

/* An estimate: gates and states of every step are kept for backward. */
API(int, cudnnGetRNNTempSpaceSizes)(void *handle, const rnn_t *rnn, int training, const sequence_t *x, size_t *work, size_t *reserve) {
  (void)handle;
  size_t steps = (size_t)x->length * (size_t)x->batch * (size_t)rnn->hidden * (size_t)rnn->directions * bytes_of(rnn->type);
  if (work) *work = steps * (size_t)gates(rnn);
  if (reserve) *reserve = training ? steps * (size_t)(gates(rnn) + 1) * (size_t)rnn->layers : 0;
  return SUCCESS;
}
