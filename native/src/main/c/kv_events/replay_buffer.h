/* The last messages of a publisher, under consecutive numbers from 0; bounded in number and bytes. */
#ifndef KVASIR_KV_REPLAY_BUFFER_H
#define KVASIR_KV_REPLAY_BUFFER_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
  unsigned char *data;
  size_t length;
} kv_payload;

/* It is used under the publisher's lock. */
typedef struct {
  kv_payload *payloads; /* [most]; message n is at n % most */
  uint64_t most;
  uint64_t most_bytes;
  uint64_t bytes;
  uint64_t first;
  uint64_t next;
} kv_replay_buffer;

/* 0 where there is no memory. */
int kv_replay_init(kv_replay_buffer *buffer, uint64_t most, uint64_t most_bytes);

/* Takes a message over under number `next`; the oldest make room. The newest is kept however long. */
void kv_replay_add(kv_replay_buffer *buffer, unsigned char *data, size_t length);

/* A message that is there; NULL if it is not there any more, or not yet. Valid until the next add. */
const kv_payload *kv_replay_get(const kv_replay_buffer *buffer, uint64_t number);

void kv_replay_free(kv_replay_buffer *buffer);

#endif
