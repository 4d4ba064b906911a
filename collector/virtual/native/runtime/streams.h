/* streams.c and graphs.c: streams, events and captures. */
#ifndef STREAMS_H
#define STREAMS_H

#include "vgpu.h"

typedef struct graph {
  size_t nodes;
} graph_t;

/* Captures are few and never freed: events and streams keep pointing to them. */
typedef struct capture {
  unsigned long long id;
  bool active, invalid;
  int mode; /* 0 global, 1 thread local, 2 relaxed */
  struct stream *origin;
  graph_t *graph;
  struct capture *older;
  void *nodes[1];
} capture_t;

typedef struct wait {
  struct stream *stream;
  uint64_t mark, before;
  struct wait *next;
} wait_t;

struct stream {
  int device, priority;
  unsigned flags;
  bool side; /* not the null stream */
  uint64_t queued, done;
  wait_t *waits;
  capture_t *capture;
  struct stream *next;
};

typedef struct {
  stream_t *stream;
  uint64_t mark;
  capture_t *capture;
} event_t;

stream_t *stream_of(void *handle);
static inline bool capturing(const stream_t *stream) {
  return stream->capture && stream->capture->active;
}

#endif
