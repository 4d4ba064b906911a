/* Streams and events. What is queued is done at once, unless the environment
 * asks for events that wait: then an event on a side stream is complete once
 * the host has synchronised with it, its stream or the device. */
#define _GNU_SOURCE
#include "runtime/streams.h"
#include "vgpu.h"

#include <stdlib.h>

static stream_t *all_streams;
static stream_t null_stream[MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

stream_t *stream_of(void *handle) {
  if ((uintptr_t)handle > 2) return handle;
  stream_t *null = &null_stream[current_device()];
  null->device = current_device();
  return null;
}

/* Streams are few and never freed: an event may point to a destroyed one. */
API(int, cudaStreamCreateWithPriority)(void **handle, unsigned flags, int priority) {
  int error = context();
  if (error) return error;
  stream_t *stream = calloc(1, sizeof *stream);
  if (!stream) return fail(OUT_OF_MEMORY);
  stream->device = current_device();
  stream->flags = flags;
  stream->priority = priority;
  stream->side = true;
  pthread_mutex_lock(&lock);
  stream->next = all_streams;
  all_streams = stream;
  pthread_mutex_unlock(&lock);
  *handle = stream;
  return SUCCESS;
}
API(int, cudaStreamCreateWithFlags)(void **handle, unsigned flags) {
  return vgpu_cudaStreamCreateWithPriority(handle, flags, 0);
}
API(int, cudaStreamCreate)(void **handle) {
  return vgpu_cudaStreamCreateWithPriority(handle, 0, 0);
}
API(int, cudaStreamDestroy)(void *handle) {
  (void)handle;
  return SUCCESS;
}
API(int, cudaStreamGetPriority)(void *handle, int *priority) {
  *priority = stream_of(handle)->priority;
  return SUCCESS;
}
API(int, cudaStreamGetFlags)(void *handle, unsigned *flags) {
  *flags = stream_of(handle)->flags;
  return SUCCESS;
}
API(int, cudaStreamGetDevice)(void *handle, int *device) {
  *device = stream_of(handle)->device;
  return SUCCESS;
}
API(int, cudaStreamGetId)(void *handle, unsigned long long *id) {
  *id = (uintptr_t)handle;
  return SUCCESS;
}
API(int, cudaDeviceGetStreamPriorityRange)(int *least, int *greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return SUCCESS;
}

/* Under the lock: everything up to `mark` is done, and what it waited for. */
static void complete(stream_t *stream, uint64_t mark) {
  if (mark <= stream->done) return;
  stream->done = mark;
  wait_t **at = &stream->waits;
  while (*at) {
    wait_t *wait = *at;
    if (wait->before > mark) {
      at = &wait->next;
      continue;
    }
    *at = wait->next;
    complete(wait->stream, wait->mark);
    free(wait);
  }
}

static void complete_all(int device) {
  complete(&null_stream[device], null_stream[device].queued);
  for (stream_t *one = all_streams; one; one = one->next)
    if (one->device == device) complete(one, one->queued);
}

/* As cudaFree does on a real device before it gives memory back. */
void finish_device(int device) {
  pthread_mutex_lock(&lock);
  complete_all(device);
  pthread_mutex_unlock(&lock);
}

API(int, cudaStreamSynchronize)(void *handle) {
  int error = ready();
  if (!error) error = capture_forbids(handle);
  if (error) return error;
  stream_t *stream = stream_of(handle);
  pthread_mutex_lock(&lock);
  complete(stream, stream->queued);
  pthread_mutex_unlock(&lock);
  trim_at_synchronisation(stream->device);
  return SUCCESS;
}

API(int, cudaDeviceSynchronize)(void) {
  int error = context();
  if (!error && any_capture()) error = fail(CAPTURE_UNSUPPORTED);
  if (error) return error;
  pthread_mutex_lock(&lock);
  complete_all(current_device());
  pthread_mutex_unlock(&lock);
  trim_at_synchronisation(current_device());
  return SUCCESS;
}

API(int, cudaStreamQuery)(void *handle) {
  int error = capture_forbids(handle);
  if (error) return error;
  stream_t *stream = stream_of(handle);
  pthread_mutex_lock(&lock);
  bool done = !stream->side || !spec()->events_wait || stream->done == stream->queued;
  pthread_mutex_unlock(&lock);
  return done ? SUCCESS : NOT_READY;
}

API(int, cudaEventCreateWithFlags)(void **handle, unsigned flags) {
  (void)flags;
  int error = context();
  if (error) return error;
  *handle = calloc(1, sizeof(event_t));
  return *handle ? SUCCESS : fail(OUT_OF_MEMORY);
}
API(int, cudaEventCreate)(void **handle) {
  return vgpu_cudaEventCreateWithFlags(handle, 0);
}
API(int, cudaEventDestroy)(void *handle) {
  free(handle);
  return SUCCESS;
}

API(int, cudaEventRecord)(event_t *event, void *handle) {
  int error = ready();
  if (error) return error;
  if (!event) return fail(INVALID_VALUE);
  stream_t *stream = stream_of(handle);
  pthread_mutex_lock(&lock);
  event->stream = stream;
  event->mark = ++stream->queued;
  event->capture = capturing(stream) ? stream->capture : NULL;
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}
API(int, cudaEventRecordWithFlags)(event_t *event, void *handle, unsigned flags) {
  (void)flags;
  return vgpu_cudaEventRecord(event, handle);
}

API(int, cudaEventQuery)(event_t *event) {
  if (event->capture && event->capture->active) return fail(CAPTURED_EVENT);
  pthread_mutex_lock(&lock);
  stream_t *stream = event->stream;
  bool done = !stream || !stream->side || !spec()->events_wait || stream->done >= event->mark;
  pthread_mutex_unlock(&lock);
  return done ? SUCCESS : NOT_READY;
}

API(int, cudaEventSynchronize)(event_t *event) {
  if (event->capture && event->capture->active) return fail(CAPTURED_EVENT);
  pthread_mutex_lock(&lock);
  if (event->stream) complete(event->stream, event->mark);
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}

API(int, cudaEventElapsedTime)(float *milliseconds, event_t *from, event_t *to) {
  (void)from, (void)to;
  *milliseconds = 10; /* time means nothing here; whoever repeats until it is enough is soon done */
  return SUCCESS;
}

/* A stream that waits for a captured event takes part in its capture. */
API(int, cudaStreamWaitEvent)(void *handle, event_t *event, unsigned flags) {
  (void)flags;
  if (!event) return fail(INVALID_VALUE);
  stream_t *stream = stream_of(handle);
  pthread_mutex_lock(&lock);
  if (event->capture && event->capture->active) {
    stream->capture = event->capture;
  } else if (spec()->events_wait && event->stream && event->stream != stream &&
             event->stream->done < event->mark) {
    wait_t *wait = malloc(sizeof *wait);
    if (wait) {
      *wait = (wait_t){event->stream, event->mark, ++stream->queued, stream->waits};
      stream->waits = wait;
    }
  }
  pthread_mutex_unlock(&lock);
  return SUCCESS;
}

/* The host's part of a stream runs in order, so at once. */
API(int, cudaLaunchHostFunc)(void *handle, void (*function)(void *), void *data) {
  if (capturing(stream_of(handle))) return count_node(handle), SUCCESS;
  function(data);
  return SUCCESS;
}
API(int, cudaStreamAddCallback)(void *handle, void (*function)(void *, int, void *), void *data, unsigned flags) {
  (void)flags;
  int error = capture_forbids(handle);
  if (!error) function(handle, SUCCESS, data);
  return error;
}
