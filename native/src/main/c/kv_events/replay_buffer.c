#include "replay_buffer.h"

#include <stdlib.h>

static kv_payload *at(const kv_replay_buffer *buffer, uint64_t number) {
  return &buffer->payloads[number % buffer->most];
}

int kv_replay_init(kv_replay_buffer *buffer, uint64_t most, uint64_t most_bytes) {
  *buffer = (kv_replay_buffer){.most = most, .most_bytes = most_bytes};
  buffer->payloads = calloc((size_t)most, sizeof *buffer->payloads);
  return buffer->payloads != NULL;
}

static void remove_first(kv_replay_buffer *buffer) {
  kv_payload *oldest = at(buffer, buffer->first++);
  buffer->bytes -= oldest->length;
  free(oldest->data);
  *oldest = (kv_payload){NULL, 0};
}

void kv_replay_add(kv_replay_buffer *buffer, unsigned char *data, size_t length) {
  if (buffer->next - buffer->first == buffer->most) {
    remove_first(buffer);
  }
  *at(buffer, buffer->next) = (kv_payload){data, length};
  buffer->bytes += length;
  const uint64_t newest = buffer->next++;
  while (buffer->bytes > buffer->most_bytes && buffer->first < newest) {
    remove_first(buffer);
  }
}

const kv_payload *kv_replay_get(const kv_replay_buffer *buffer, uint64_t number) {
  return number < buffer->first || number >= buffer->next ? NULL : at(buffer, number);
}

void kv_replay_free(kv_replay_buffer *buffer) {
  while (buffer->payloads != NULL && buffer->first < buffer->next) {
    remove_first(buffer);
  }
  free(buffer->payloads);
  buffer->payloads = NULL;
}
