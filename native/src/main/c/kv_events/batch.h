/* Batches of events as vLLM 0.32 writes them: msgpack [timestamp, [event], rank], each event a map. */
#ifndef KVASIR_KV_BATCH_H
#define KVASIR_KV_BATCH_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that grow; `data` is malloc'ed, or NULL when `failed`. One thread. */
typedef struct {
  unsigned char *data;
  size_t length;
  size_t capacity;
  int failed;
} kv_bytes;

typedef struct {
  const uint32_t *tokens; /* [blocks * block_size] */
  const uint64_t *hashes; /* [blocks] */
  const uint64_t *parent; /* NULL for none */
  const char *lora_name;  /* NULL for none */
  uint64_t lora_id;       /* 0 for none */
  size_t blocks;
  uint32_t block_size;
} kv_store;

/* Each returns a batch that the caller frees; `failed` where there was no memory. */
kv_bytes kv_batch_stored(double timestamp, uint32_t rank, const kv_store *store);
kv_bytes kv_batch_removed(double timestamp, uint32_t rank, const uint64_t *hashes, size_t blocks);
kv_bytes kv_batch_cleared(double timestamp, uint32_t rank);

#endif
