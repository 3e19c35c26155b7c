/* What the calls of a publisher and its thread of replays share. */
#ifndef KVASIR_KV_PUBLISHER_H
#define KVASIR_KV_PUBLISHER_H

#include "kvasir_kv_events.h"
#include "replay_buffer.h"

#include <pthread.h>

/* Written into messages: 8 bytes, big-endian. */
void kv_put_number(unsigned char out[8], uint64_t value);
uint64_t kv_read_number(const unsigned char in[8]);

/* A part of a message. */
typedef struct {
  const void *data;
  size_t bytes;
} kv_frame;

/*
 * Sends a message, all of it or nothing, and does not wait: signals repeat what they have interrupted, and there is
 * memory for all frames before the first one goes. 0, or the number of libzmq's error.
 */
int kv_send(void *socket, const kv_frame *frames, size_t count);

struct kvasir_kv_publisher {
  void *context;
  void *events;             /* PUB; under `lock` */
  void *replays;            /* ROUTER; of the thread alone once it runs; NULL without one */
  pthread_t thread;
  int has_thread;
  pthread_mutex_t lock;     /* guards `events` and `buffer` */
  kv_replay_buffer buffer;
  char replay_endpoint[256]; /* as bound; empty without one */
  char *topic;
  size_t topic_bytes;
  uint32_t rank;
  uint32_t block_size;
  kvasir_kv_clock clock;
  void *clock_context;
};

/* The thread's: answers requests until the context is shut down. */
void *kv_serve_replays(void *publisher);

#endif
