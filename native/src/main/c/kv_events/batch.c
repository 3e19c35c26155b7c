#include "batch.h"

#include <stdlib.h>
#include <string.h>

enum { HEAD_BYTES = 128, NUMBER_BYTES = 5, WIDE_BYTES = 9 };

static kv_bytes with_room(size_t capacity) {
  kv_bytes out = {malloc(capacity), 0, capacity, 0};
  out.failed = out.data == NULL;
  return out;
}

static int reserve(kv_bytes *out, size_t more) {
  if (out->failed) {
    return 0;
  }
  if (out->capacity - out->length >= more) {
    return 1;
  }
  const size_t capacity = 2 * out->capacity > out->length + more ? 2 * out->capacity : out->length + more;
  unsigned char *moved = realloc(out->data, capacity);
  if (moved == NULL) {
    free(out->data);
    out->data = NULL;
    out->failed = 1;
    return 0;
  }
  out->data = moved;
  out->capacity = capacity;
  return 1;
}

/* A first byte and the low `width` bytes of a value, big-endian. */
static void head(kv_bytes *out, unsigned first, unsigned width, uint64_t value) {
  if (!reserve(out, 1 + width)) {
    return;
  }
  out->data[out->length++] = (unsigned char)first;
  for (unsigned left = width; left > 0; left--) {
    out->data[out->length++] = (unsigned char)(value >> (8 * (left - 1)));
  }
}

static void nil(kv_bytes *out) { head(out, 0xc0, 0, 0); }

static void number(kv_bytes *out, uint64_t value) {
  if (value > 0xffffffffu) {
    head(out, 0xcf, 8, value);
  } else if (value > 0xffff) {
    head(out, 0xce, 4, value);
  } else if (value > 0xff) {
    head(out, 0xcd, 2, value);
  } else if (value > 0x7f) {
    head(out, 0xcc, 1, value);
  } else {
    head(out, (unsigned)value, 0, 0);
  }
}

static void real(kv_bytes *out, double value) {
  uint64_t bits;
  memcpy(&bits, &value, sizeof bits);
  head(out, 0xcb, 8, bits);
}

/* A head of a size: in its own byte, in 2 bytes or in 4. */
static void sized(kv_bytes *out, unsigned fix, size_t most, unsigned wide, size_t size) {
  if (size <= most) {
    head(out, fix | (unsigned)size, 0, 0);
  } else if (size <= 0xffff) {
    head(out, wide, 2, size);
  } else {
    head(out, wide + 1, 4, size);
  }
}

static void array(kv_bytes *out, size_t elements) { sized(out, 0x90, 15, 0xdc, elements); }

static void map(kv_bytes *out, unsigned pairs) { sized(out, 0x80, 15, 0xde, pairs); }

static void text(kv_bytes *out, const char *utf8) {
  const size_t length = strlen(utf8);
  if (length > 31 && length <= 0xff) {
    head(out, 0xd9, 1, length);
  } else {
    sized(out, 0xa0, 31, 0xda, length);
  }
  if (reserve(out, length)) {
    memcpy(out->data + out->length, utf8, length);
    out->length += length;
  }
}

static void hashes_of(kv_bytes *out, const uint64_t *hashes, size_t blocks) {
  text(out, "block_hashes");
  array(out, blocks);
  for (size_t i = 0; i < blocks; i++) {
    number(out, hashes[i]);
  }
}

static kv_bytes begin(double timestamp, size_t room) {
  kv_bytes out = with_room(HEAD_BYTES + room);
  array(&out, 3);
  real(&out, timestamp);
  array(&out, 1);
  return out;
}

kv_bytes kv_batch_stored(double timestamp, uint32_t rank, const kv_store *store) {
  const size_t tokens = store->blocks * store->block_size;
  kv_bytes out = begin(timestamp, NUMBER_BYTES * tokens + WIDE_BYTES * store->blocks);
  map(&out, 8);
  text(&out, "type");
  text(&out, "BlockStored");
  hashes_of(&out, store->hashes, store->blocks);
  text(&out, "parent_block_hash");
  if (store->parent == NULL) {
    nil(&out);
  } else {
    number(&out, *store->parent);
  }
  text(&out, "token_ids");
  array(&out, tokens);
  for (size_t i = 0; i < tokens; i++) {
    number(&out, store->tokens[i]);
  }
  text(&out, "block_size");
  number(&out, store->block_size);
  text(&out, "lora_id");
  if (store->lora_id == 0) {
    nil(&out);
  } else {
    number(&out, store->lora_id);
  }
  text(&out, "medium");
  text(&out, "GPU");
  text(&out, "lora_name");
  if (store->lora_name == NULL) {
    nil(&out);
  } else {
    text(&out, store->lora_name);
  }
  number(&out, rank);
  return out;
}

kv_bytes kv_batch_removed(double timestamp, uint32_t rank, const uint64_t *hashes, size_t blocks) {
  kv_bytes out = begin(timestamp, WIDE_BYTES * blocks);
  map(&out, 3);
  text(&out, "type");
  text(&out, "BlockRemoved");
  hashes_of(&out, hashes, blocks);
  text(&out, "medium");
  text(&out, "GPU");
  number(&out, rank);
  return out;
}

kv_bytes kv_batch_cleared(double timestamp, uint32_t rank) {
  kv_bytes out = begin(timestamp, 0);
  map(&out, 1);
  text(&out, "type");
  text(&out, "AllBlocksCleared");
  number(&out, rank);
  return out;
}
