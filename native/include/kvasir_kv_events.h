/*
 * Publishes the events of an engine's KV cache over ZeroMQ, in the form of vLLM, with a socket that sends
 * old messages again. For authors of engines; docs/operations/engine-events.md is the guide.
 *
 *   message:  topic | number, 8 bytes big-endian, from 0 | msgpack [timestamp, [event], rank]
 *   replay:   "" | first number wanted, 8 bytes   ->   "" | topic | number | payload, for each; "" | "" | -1 | ""
 *
 * Numbers grow by one with each message that a call has published. Publishing never waits for a reader: one
 * that is too slow misses messages, notices the gap and asks for them again.
 *
 * Threads: any thread may call any function of an open publisher; a lock orders them, and the order of the
 * calls is the order of the messages. kvasir_kv_close is the exception: no other call may be under way, or
 * come later. A publisher has two threads of its own (libzmq's and that of replays) and does not survive fork().
 *
 * Errors: every function returns KVASIR_KV_OK or one of the negative codes below. A call that fails has
 * published nothing and used no number. Arguments are copied; nothing is kept of them. Signals make no call
 * fail, and their handlers do not run in the threads of a publisher.
 */
#ifndef KVASIR_KV_EVENTS_H
#define KVASIR_KV_EVENTS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define KVASIR_KV_API __attribute__((visibility("default")))
#else
#define KVASIR_KV_API
#endif

/* Grows when a function changes; new members of the configuration and new functions leave it alone. */
#define KVASIR_KV_ABI 1

enum kvasir_kv_status {
  KVASIR_KV_OK = 0,
  KVASIR_KV_INVALID = -1, /* an argument that cannot be: says which in the documentation of each function */
  KVASIR_KV_MEMORY = -2,  /* no memory */
  KVASIR_KV_ADDRESS = -3, /* an address cannot be bound: malformed, taken, or of no interface of this host */
  KVASIR_KV_SOCKET = -4   /* libzmq failed otherwise, as without descriptors; nothing was published */
};

typedef struct kvasir_kv_publisher kvasir_kv_publisher;

/* Milliseconds since 1970; may be called by any thread that publishes, one at a time. */
typedef int64_t (*kvasir_kv_clock)(void *context);

typedef struct kvasir_kv_config {
  size_t struct_bytes;         /* sizeof(kvasir_kv_config): members beyond it have their defaults */
  const char *endpoint;        /* publisher, such as "tcp://0.0.0.0:5557"; port 0 is any free one */
  const char *replay_endpoint; /* replay socket, such as "tcp://0.0.0.0:5558"; NULL for none */
  const char *topic;           /* first frame of each message; NULL for an empty one */
  uint32_t dp_rank;            /* data-parallel rank: one publisher for each */
  uint32_t block_size;         /* tokens per block, from 1 on */
  uint32_t replay_messages;    /* messages kept for replays; 0 for 10,000, as many as vLLM keeps */
  uint32_t unsent_messages;    /* messages that wait for one reader at most; 0 for 100,000 */
  uint64_t replay_bytes;       /* bytes of kept messages at most; 0 for 256 MiB. The newest one is always kept */
  kvasir_kv_clock clock;       /* NULL for the system's */
  void *clock_context;         /* given to it */
} kvasir_kv_config;

/* The version of the library that was loaded; differs from KVASIR_KV_ABI where header and library do not fit. */
KVASIR_KV_API int kvasir_kv_abi(void);

/*
 * Binds the sockets and starts. *publisher is set to NULL where it fails.
 * KVASIR_KV_INVALID: no endpoint, block_size 0, struct_bytes too small for block_size; KVASIR_KV_ADDRESS;
 * KVASIR_KV_MEMORY; KVASIR_KV_SOCKET: the process has no descriptors left.
 */
KVASIR_KV_API int kvasir_kv_open(const kvasir_kv_config *config, kvasir_kv_publisher **publisher);

/*
 * Writes the bound address, with the real port, and a 0 byte.
 * KVASIR_KV_INVALID: no publisher, the buffer is too small, or there is no replay socket.
 */
KVASIR_KV_API int kvasir_kv_endpoint(kvasir_kv_publisher *publisher, char *buffer, size_t bytes);
KVASIR_KV_API int kvasir_kv_replay_endpoint(kvasir_kv_publisher *publisher, char *buffer, size_t bytes);

/*
 * Publishes that consecutive blocks were stored: one event, one message.
 *
 *   token_ids         of all blocks, in order
 *   num_block_tokens  tokens of each block, [block_count]; NULL if all are whole. A block that is not whole
 *                     ends the store: it and those behind it are not announced
 *   block_hashes      the engine's own hash of each block, [block_count]
 *   parent_hash       hash of the block before the first one; NULL at the start of a prompt
 *   lora_id           number of the adapter; 0 for none. One that is not 0 needs a name
 *   lora_name         name of the adapter, UTF-8; NULL or "" for none: readers tell adapters apart by it
 *   number            of the message; may be NULL. Left alone where nothing was published
 *
 * Where no block is whole, nothing is published, and that is KVASIR_KV_OK.
 * KVASIR_KV_INVALID: no blocks, or more than 2^24; fewer tokens than the whole blocks have, or more where
 * num_block_tokens is NULL; an adapter with a number and no name; KVASIR_KV_MEMORY; KVASIR_KV_SOCKET.
 */
KVASIR_KV_API int kvasir_kv_stored(kvasir_kv_publisher *publisher, const uint32_t *token_ids, size_t token_count,
                                   const uint32_t *num_block_tokens, const uint64_t *block_hashes,
                                   size_t block_count, const uint64_t *parent_hash, uint64_t lora_id,
                                   const char *lora_name, uint64_t *number);

/*
 * Publishes that one copy of each of these blocks was removed.
 * KVASIR_KV_INVALID: no blocks, or more than 2^24; KVASIR_KV_MEMORY; KVASIR_KV_SOCKET.
 */
KVASIR_KV_API int kvasir_kv_removed(kvasir_kv_publisher *publisher, const uint64_t *block_hashes,
                                    size_t block_count, uint64_t *number);

/* Publishes that no block is held any more. KVASIR_KV_MEMORY; KVASIR_KV_SOCKET. */
KVASIR_KV_API int kvasir_kv_cleared(kvasir_kv_publisher *publisher, uint64_t *number);

/*
 * Ends the sockets and frees all; messages that wait for a reader are dropped. Sets *publisher to NULL; does
 * nothing where it is NULL already, so closing twice is closing once.
 */
KVASIR_KV_API void kvasir_kv_close(kvasir_kv_publisher **publisher);

/* What a status means, in English; never NULL. */
KVASIR_KV_API const char *kvasir_kv_status_text(int status);

#ifdef __cplusplus
}
#endif
#endif
