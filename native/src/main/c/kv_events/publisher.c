#include "publisher.h"

#include "batch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

enum {
  DEFAULT_MESSAGES = 10000,
  DEFAULT_UNSENT = 100000,
  REPLAY_AHEAD = 64,
  MOST_REQUEST_BYTES = 1 << 16,
  MOST_FRAMES = 5,
  MOST_PORT = 65535
};
static const char TCP[] = "tcp://";
static const uint64_t DEFAULT_BYTES = UINT64_C(256) << 20;
static const double MS_PER_SECOND = 1e3;

/* A message has 32-bit sizes, and readers refuse far less. */
static const size_t MOST_BLOCKS = (size_t)1 << 24;

void kv_put_number(unsigned char out[8], uint64_t value) {
  for (int i = 0; i < 8; i++) {
    out[i] = (unsigned char)(value >> (56 - 8 * i));
  }
}

uint64_t kv_read_number(const unsigned char in[8]) {
  uint64_t value = 0;
  for (int i = 0; i < 8; i++) {
    value = value << 8 | in[i];
  }
  return value;
}

/* Sends the frame, which is libzmq's afterwards, or fails. */
static int send_frame(void *socket, zmq_msg_t *frame, int flags) {
  while (zmq_msg_send(frame, socket, flags) < 0) {
    if (zmq_errno() != EINTR) {
      return zmq_errno();
    }
  }
  return 0;
}

int kv_send(void *socket, const kv_frame *frames, size_t count) {
  zmq_msg_t parts[MOST_FRAMES];
  size_t made = 0;
  size_t sent = 0;
  int error = 0;
  while (made < count && error == 0) {
    if (zmq_msg_init_size(&parts[made], frames[made].bytes) != 0) {
      error = zmq_errno();
    } else {
      if (frames[made].bytes > 0) {
        memcpy(zmq_msg_data(&parts[made]), frames[made].data, frames[made].bytes);
      }
      made++;
    }
  }
  while (sent < count && error == 0) {
    error = send_frame(socket, &parts[sent], sent + 1 < count ? ZMQ_SNDMORE | ZMQ_DONTWAIT : ZMQ_DONTWAIT);
    sent += error == 0;
  }
  while (made > sent) {
    zmq_msg_close(&parts[--made]);
  }
  return error;
}

int kvasir_kv_abi(void) { return KVASIR_KV_ABI; }

const char *kvasir_kv_status_text(int status) {
  switch (status) {
    case KVASIR_KV_OK:
      return "done";
    case KVASIR_KV_INVALID:
      return "an argument is invalid";
    case KVASIR_KV_MEMORY:
      return "there is no memory";
    case KVASIR_KV_ADDRESS:
      return "an address cannot be bound: it is malformed, taken, or of no interface of this host";
    case KVASIR_KV_SOCKET:
      return "libzmq failed";
    default:
      return "no status of this library";
  }
}

static int64_t system_clock(void *unused) {
  struct timespec now;
  (void)unused;
  clock_gettime(CLOCK_REALTIME, &now);
  return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void *socket_of(void *context, int type, int unsent) {
  const int no_linger = 0;
  void *socket = zmq_socket(context, type);
  if (socket != NULL) {
    zmq_setsockopt(socket, ZMQ_LINGER, &no_linger, sizeof no_linger);
    zmq_setsockopt(socket, ZMQ_SNDHWM, &unsent, sizeof unsent);
  }
  return socket;
}

/* What a failure of libzmq was: without memory, without descriptors, or what such a call fails of otherwise. */
static int failure(int error, int otherwise) {
  switch (error) {
    case ENOMEM:
      return KVASIR_KV_MEMORY;
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case EMTHREAD:
      return KVASIR_KV_SOCKET;
    default:
      return otherwise;
  }
}

static int bind_to(void *socket, const char *endpoint) {
  while (zmq_bind(socket, endpoint) != 0) {
    if (zmq_errno() != EINTR) {
      return zmq_errno();
    }
  }
  return 0;
}

/* Whether this is a port: 0 to 65535, or "*"; libzmq would take the lowest 16 bits of any number. */
static int is_port(const char *text) {
  long port = 0;
  if (strcmp(text, "*") == 0) {
    return 1;
  }
  if (*text == 0) {
    return 0;
  }
  for (; *text >= '0' && *text <= '9' && port <= MOST_PORT; text++) {
    port = 10 * port + (*text - '0');
  }
  return *text == 0 && port <= MOST_PORT;
}

/* Binds `*` in both families where the host has both, `[...]` as IPv6, and interfaces and IPv4 addresses as IPv4. */
static int bind_socket(void *socket, const char *endpoint) {
  int ipv6 = 0;
  if (strncmp(endpoint, TCP, strlen(TCP)) == 0) {
    const char *host = endpoint + strlen(TCP);
    const char *colon = strrchr(host, ':');
    if (colon == NULL || !is_port(colon + 1) || (host[0] != '[' && strchr(host, ':') != colon)) {
      return KVASIR_KV_ADDRESS;
    }
    ipv6 = host[0] == '[' || (host[0] == '*' && colon == host + 1);
  }
  zmq_setsockopt(socket, ZMQ_IPV6, &ipv6, sizeof ipv6);
  int error = bind_to(socket, endpoint);
  if (ipv6 && endpoint[strlen(TCP)] == '*' && (error == EADDRNOTAVAIL || error == EAFNOSUPPORT)) {
    ipv6 = 0;
    zmq_setsockopt(socket, ZMQ_IPV6, &ipv6, sizeof ipv6);
    error = bind_to(socket, endpoint);
  }
  return error == 0 ? KVASIR_KV_OK : failure(error, KVASIR_KV_ADDRESS);
}

static int start_replays(kvasir_kv_publisher *p, const char *endpoint) {
  const int mandatory = 1;
  const int64_t most = MOST_REQUEST_BYTES;
  p->replays = socket_of(p->context, ZMQ_ROUTER, REPLAY_AHEAD);
  if (p->replays == NULL) {
    return failure(zmq_errno(), KVASIR_KV_MEMORY);
  }
  zmq_setsockopt(p->replays, ZMQ_ROUTER_MANDATORY, &mandatory, sizeof mandatory);
  zmq_setsockopt(p->replays, ZMQ_MAXMSGSIZE, &most, sizeof most);
  const int status = bind_socket(p->replays, endpoint);
  if (status != KVASIR_KV_OK) {
    return status;
  }
  size_t bytes = sizeof p->replay_endpoint;
  if (zmq_getsockopt(p->replays, ZMQ_LAST_ENDPOINT, p->replay_endpoint, &bytes) != 0) {
    return KVASIR_KV_ADDRESS;
  }
  p->has_thread = pthread_create(&p->thread, NULL, kv_serve_replays, p) == 0;
  return p->has_thread ? KVASIR_KV_OK : KVASIR_KV_MEMORY;
}

static int start(kvasir_kv_publisher *p, const kvasir_kv_config *c) {
  const char *topic = c->topic == NULL ? "" : c->topic;
  p->rank = c->dp_rank;
  p->block_size = c->block_size;
  p->clock = c->clock == NULL ? system_clock : c->clock;
  p->clock_context = c->clock_context;
  p->topic_bytes = strlen(topic);
  p->topic = malloc(p->topic_bytes + 1);
  if (p->topic == NULL
      || !kv_replay_init(&p->buffer, c->replay_messages == 0 ? DEFAULT_MESSAGES : c->replay_messages,
                         c->replay_bytes == 0 ? DEFAULT_BYTES : c->replay_bytes)) {
    return KVASIR_KV_MEMORY;
  }
  memcpy(p->topic, topic, p->topic_bytes + 1);
  p->context = zmq_ctx_new();
  if (p->context == NULL) {
    return failure(zmq_errno(), KVASIR_KV_MEMORY);
  }
  const uint32_t unsent = c->unsent_messages == 0 ? DEFAULT_UNSENT : c->unsent_messages;
  p->events = socket_of(p->context, ZMQ_PUB, unsent > INT32_MAX ? INT32_MAX : (int)unsent);
  if (p->events == NULL) {
    return failure(zmq_errno(), KVASIR_KV_MEMORY);
  }
  const int status = bind_socket(p->events, c->endpoint);
  return status != KVASIR_KV_OK || c->replay_endpoint == NULL ? status : start_replays(p, c->replay_endpoint);
}

/*
 * Starts with signals blocked, which the threads inherit: the engine's handlers run in the engine's threads.
 * libzmq's block signals too, but only once they run. What a thread does to itself (SIGSEGV) stays with it.
 */
static int start_blocked(kvasir_kv_publisher *p, const kvasir_kv_config *c) {
  static const int own[] = {SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSEGV, SIGSYS, SIGTRAP};
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  for (size_t i = 0; i < sizeof own / sizeof own[0]; i++) {
    sigdelset(&blocked, own[i]);
  }
  pthread_sigmask(SIG_BLOCK, &blocked, &before);
  const int status = start(p, c);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return status;
}

int kvasir_kv_open(const kvasir_kv_config *config, kvasir_kv_publisher **publisher) {
  kvasir_kv_config c = {0};
  if (publisher == NULL) {
    return KVASIR_KV_INVALID;
  }
  *publisher = NULL;
  if (config == NULL || config->struct_bytes < offsetof(kvasir_kv_config, block_size) + sizeof c.block_size) {
    return KVASIR_KV_INVALID;
  }
  memcpy(&c, config, config->struct_bytes < sizeof c ? config->struct_bytes : sizeof c);
  if (c.endpoint == NULL || c.block_size == 0) {
    return KVASIR_KV_INVALID;
  }
  kvasir_kv_publisher *p = calloc(1, sizeof *p);
  if (p == NULL) {
    return KVASIR_KV_MEMORY;
  }
  if (pthread_mutex_init(&p->lock, NULL) != 0) {
    free(p);
    return KVASIR_KV_MEMORY;
  }
  const int status = start_blocked(p, &c);
  if (status != KVASIR_KV_OK) {
    kvasir_kv_close(&p);
    return status;
  }
  *publisher = p;
  return KVASIR_KV_OK;
}

static void close_socket(void *socket) {
  if (socket != NULL) {
    zmq_close(socket);
  }
}

void kvasir_kv_close(kvasir_kv_publisher **publisher) {
  if (publisher == NULL || *publisher == NULL) {
    return;
  }
  kvasir_kv_publisher *p = *publisher;
  *publisher = NULL;
  if (p->has_thread) {
    zmq_ctx_shutdown(p->context); /* ends the thread's waiting */
    pthread_join(p->thread, NULL);
  }
  close_socket(p->replays);
  close_socket(p->events);
  if (p->context != NULL) {
    while (zmq_ctx_term(p->context) != 0 && zmq_errno() == EINTR) {
    }
  }
  kv_replay_free(&p->buffer);
  pthread_mutex_destroy(&p->lock);
  free(p->topic);
  free(p);
}

int kvasir_kv_endpoint(kvasir_kv_publisher *publisher, char *buffer, size_t bytes) {
  if (publisher == NULL) {
    return KVASIR_KV_INVALID;
  }
  pthread_mutex_lock(&publisher->lock);
  const int read = buffer != NULL && zmq_getsockopt(publisher->events, ZMQ_LAST_ENDPOINT, buffer, &bytes) == 0;
  pthread_mutex_unlock(&publisher->lock);
  return read ? KVASIR_KV_OK : KVASIR_KV_INVALID;
}

int kvasir_kv_replay_endpoint(kvasir_kv_publisher *publisher, char *buffer, size_t bytes) {
  if (publisher == NULL) {
    return KVASIR_KV_INVALID;
  }
  const size_t length = strlen(publisher->replay_endpoint); /* written before the publisher was handed out */
  if (length == 0 || buffer == NULL || length >= bytes) {
    return KVASIR_KV_INVALID;
  }
  memcpy(buffer, publisher->replay_endpoint, length + 1);
  return KVASIR_KV_OK;
}

static double now(const kvasir_kv_publisher *p) { return (double)p->clock(p->clock_context) / MS_PER_SECOND; }

/* Sends a batch and keeps it; frees it where that fails. The lock is held. */
static int publish(kvasir_kv_publisher *p, kv_bytes batch, uint64_t *number) {
  unsigned char head[8];
  if (batch.failed) {
    return KVASIR_KV_MEMORY;
  }
  kv_put_number(head, p->buffer.next);
  const kv_frame frames[] = {{p->topic, p->topic_bytes}, {head, sizeof head}, {batch.data, batch.length}};
  const int error = kv_send(p->events, frames, sizeof frames / sizeof frames[0]);
  if (error != 0) {
    free(batch.data);
    return error == ENOMEM ? KVASIR_KV_MEMORY : KVASIR_KV_SOCKET;
  }
  if (number != NULL) {
    *number = p->buffer.next;
  }
  unsigned char *fitted = realloc(batch.data, batch.length); /* most tokens are shorter than allowed for */
  kv_replay_add(&p->buffer, fitted == NULL ? batch.data : fitted, batch.length);
  return KVASIR_KV_OK;
}

/* Leading blocks that are whole. */
static size_t whole_blocks(const kvasir_kv_publisher *p, const uint32_t *num_block_tokens, size_t blocks) {
  size_t whole = 0;
  if (num_block_tokens == NULL) {
    return blocks;
  }
  while (whole < blocks && num_block_tokens[whole] == p->block_size) {
    whole++;
  }
  return whole;
}

int kvasir_kv_stored(kvasir_kv_publisher *publisher, const uint32_t *token_ids, size_t token_count,
                     const uint32_t *num_block_tokens, const uint64_t *block_hashes, size_t block_count,
                     const uint64_t *parent_hash, uint64_t lora_id, const char *lora_name, uint64_t *number) {
  const char *name = lora_name == NULL || lora_name[0] == 0 ? NULL : lora_name;
  if (publisher == NULL || token_ids == NULL || block_hashes == NULL || block_count == 0
      || block_count > MOST_BLOCKS || (lora_id != 0 && name == NULL)) {
    return KVASIR_KV_INVALID;
  }
  const size_t whole = whole_blocks(publisher, num_block_tokens, block_count);
  const size_t size = publisher->block_size;
  if (token_count / size < whole || (num_block_tokens == NULL && token_count != whole * size)) {
    return KVASIR_KV_INVALID;
  }
  if (whole == 0) {
    return KVASIR_KV_OK;
  }
  const kv_store store = {.tokens = token_ids,
                          .hashes = block_hashes,
                          .parent = parent_hash,
                          .lora_name = name,
                          .lora_id = lora_id,
                          .blocks = whole,
                          .block_size = publisher->block_size};
  pthread_mutex_lock(&publisher->lock);
  const int status = publish(publisher, kv_batch_stored(now(publisher), publisher->rank, &store), number);
  pthread_mutex_unlock(&publisher->lock);
  return status;
}

int kvasir_kv_removed(kvasir_kv_publisher *publisher, const uint64_t *block_hashes, size_t block_count,
                      uint64_t *number) {
  if (publisher == NULL || block_hashes == NULL || block_count == 0 || block_count > MOST_BLOCKS) {
    return KVASIR_KV_INVALID;
  }
  pthread_mutex_lock(&publisher->lock);
  const int status =
      publish(publisher, kv_batch_removed(now(publisher), publisher->rank, block_hashes, block_count), number);
  pthread_mutex_unlock(&publisher->lock);
  return status;
}

int kvasir_kv_cleared(kvasir_kv_publisher *publisher, uint64_t *number) {
  if (publisher == NULL) {
    return KVASIR_KV_INVALID;
  }
  pthread_mutex_lock(&publisher->lock);
  const int status = publish(publisher, kv_batch_cleared(now(publisher), publisher->rank), number);
  pthread_mutex_unlock(&publisher->lock);
  return status;
}
