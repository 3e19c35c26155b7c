/* The publisher of events where signals interrupt its calls, and the addresses that it binds. */
#define _GNU_SOURCE
#include "check.h"
#include "kvasir_kv_events.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <zmq.h>

enum { PATIENCE_MS = 60000, PAUSE_MS = 10, ROUNDS = 20, MESSAGES = 12, TEXT = 256 };

/* Of this thread alone, so that libzmq's are left alone: its polls are interrupted, all or each second one. */
static _Thread_local int interrupting;
static _Thread_local int polls;
static _Thread_local int interrupted;

/* Longer than libzmq goes without a poll. */
static void wait_a_little(void) {
  const struct timespec pause = {0, PAUSE_MS * 1000000};
  nanosleep(&pause, NULL);
}

/*
 * In front of libc's, for libzmq: it looks for signals with a poll before a frame is sent, if some time has passed
 * since it did so last. Each second poll ends as if a signal came; the others take so long that the next frame polls.
 */
__attribute__((visibility("default"))) int poll(struct pollfd *fds, nfds_t count, int timeout) {
  static int (*libc)(struct pollfd *, nfds_t, int);
  if (libc == NULL) {
    *(void **)&libc = dlsym(RTLD_NEXT, "poll");
  }
  if (interrupting) {
    if (polls++ % 2 == 1) {
      interrupted++;
      errno = EINTR;
      return -1;
    }
    wait_a_little();
  }
  return libc(fds, count, timeout);
}

/* Holds up other threads that block signals for themselves. */
static atomic_int holding;

/* In front of libc's, for libzmq: its threads block signals as the first thing that they do. */
__attribute__((visibility("default"))) int pthread_sigmask(int how, const sigset_t *set, sigset_t *before) {
  int (*libc)(int, const sigset_t *, sigset_t *);
  *(void **)&libc = dlsym(RTLD_NEXT, "pthread_sigmask");
  while (atomic_load(&holding) && gettid() != getpid()) {
    wait_a_little();
  }
  return libc(how, set, before);
}

static kvasir_kv_config config_of(const char *endpoint, const char *replay) {
  return (kvasir_kv_config){.struct_bytes = sizeof(kvasir_kv_config),
                            .endpoint = endpoint,
                            .replay_endpoint = replay,
                            .topic = "kv-events",
                            .block_size = 16};
}

static kvasir_kv_publisher *opened(const char *endpoint, const char *replay) {
  const kvasir_kv_config config = config_of(endpoint, replay);
  kvasir_kv_publisher *publisher;
  IS(KVASIR_KV_OK, kvasir_kv_open(&config, &publisher));
  return publisher;
}

/* Entries of a folder of this process: its threads or its descriptors. */
static int entries(const char *folder) {
  DIR *open = opendir(folder);
  CHECK(open != NULL);
  int count = 0;
  while (readdir(open) != NULL) {
    count++;
  }
  closedir(open);
  return count;
}

/* Frames of the next message; the number of the second one is written. */
static int receive(void *reader, uint64_t *number) {
  int frames = 0;
  int more = 1;
  size_t bytes = sizeof more;
  while (more) {
    unsigned char frame[TEXT];
    const int length = zmq_recv(reader, frame, sizeof frame, 0);
    CHECK(length >= 0);
    if (++frames == 2 && length == 8) {
      *number = 0;
      for (int i = 0; i < length; i++) {
        *number = *number << 8 | frame[i];
      }
    }
    IS(0, zmq_getsockopt(reader, ZMQ_RCVMORE, &more, &bytes));
  }
  return frames;
}

/* A reader that the publisher knows: its subscription has arrived. */
static void *reader_of(void *context, kvasir_kv_publisher *publisher, uint64_t *next) {
  const int soon = 20;
  const int patience = PATIENCE_MS;
  const uint64_t hash = 1;
  char endpoint[TEXT];
  uint64_t got = UINT64_MAX;
  void *reader = zmq_socket(context, ZMQ_SUB);
  CHECK(reader != NULL);
  IS(KVASIR_KV_OK, kvasir_kv_endpoint(publisher, endpoint, sizeof endpoint));
  IS(0, zmq_setsockopt(reader, ZMQ_SUBSCRIBE, "", 0));
  IS(0, zmq_connect(reader, endpoint));
  zmq_pollitem_t item = {reader, 0, ZMQ_POLLIN, 0};
  do {
    IS(KVASIR_KV_OK, kvasir_kv_removed(publisher, &hash, 1, next));
  } while (zmq_poll(&item, 1, soon) == 0);
  IS(0, zmq_setsockopt(reader, ZMQ_RCVTIMEO, &patience, sizeof patience));
  do {
    IS(3, receive(reader, &got));
  } while (got != *next);
  (*next)++;
  return reader;
}

/* "A call that fails has published nothing": and a signal makes none fail. */
static void an_interrupted_publish_publishes_whole_messages(void) {
  const uint64_t hash = 1;
  uint64_t next = 0;
  kvasir_kv_publisher *publisher = opened("tcp://127.0.0.1:0", NULL);
  void *context = zmq_ctx_new();
  void *reader = reader_of(context, publisher, &next);
  interrupted = 0;
  for (int i = 0; i < MESSAGES; i++) {
    uint64_t number = UINT64_MAX;
    wait_a_little();
    interrupting = 1;
    const int status = kvasir_kv_removed(publisher, &hash, 1, &number);
    interrupting = 0;
    IS(KVASIR_KV_OK, status);
    IS(next + (uint64_t)i, number);
  }
  CHECK(interrupted > 0);
  for (int i = 0; i < MESSAGES; i++) {
    uint64_t number = UINT64_MAX;
    IS(3, receive(reader, &number));
    IS(next + (uint64_t)i, number);
  }
  zmq_close(reader);
  zmq_ctx_term(context);
  kvasir_kv_close(&publisher);
}

/* Threads that have ended may stand in /proc for a moment. */
static void wait_for(int threads, int descriptors) {
  for (int i = 0; i < PATIENCE_MS / PAUSE_MS; i++) {
    if (entries("/proc/self/task") <= threads && entries("/proc/self/fd") <= descriptors) {
      return;
    }
    wait_a_little();
  }
  CHECK(!"threads or descriptors are left");
}

static void interrupted_opens_and_closes_leave_nothing(void) {
  const int threads = entries("/proc/self/task");
  const int descriptors = entries("/proc/self/fd");
  interrupted = 0;
  for (int i = 0; i < ROUNDS; i++) {
    const kvasir_kv_config config = config_of("tcp://127.0.0.1:0", i % 2 == 0 ? NULL : "tcp://127.0.0.1:0");
    kvasir_kv_publisher *publisher;
    interrupting = 1;
    polls = i / 2; /* begins with an interrupted one, or not */
    const int status = kvasir_kv_open(&config, &publisher);
    kvasir_kv_close(&publisher);
    interrupting = 0;
    IS(KVASIR_KV_OK, status);
  }
  CHECK(interrupted > 0);
  wait_for(threads, descriptors);
}

/* The line of a thread's status that begins so, as a hexadecimal number. */
static uint64_t status_of(const char *thread, const char *name) {
  char path[2 * TEXT];
  char line[TEXT];
  uint64_t value = 0;
  snprintf(path, sizeof path, "/proc/self/task/%s/status", thread);
  FILE *status = fopen(path, "r");
  CHECK(status != NULL);
  while (fgets(line, sizeof line, status) != NULL) {
    if (strncmp(line, name, strlen(name)) == 0) {
      value = strtoull(line + strlen(name), NULL, 16);
    }
  }
  fclose(status);
  return value;
}

static uint64_t bit(int number) { return UINT64_C(1) << (number - 1); }

/* Signals of the engine are the engine's: none is handled in a thread of the publisher, from its first moment on. */
static void its_threads_take_no_signals(void) {
  const uint64_t asynchronous = bit(SIGALRM) | bit(SIGUSR1) | bit(SIGTERM) | bit(SIGCHLD) | bit(SIGINT);
  char own[TEXT];
  sigset_t after;
  int others = 0;
  atomic_store(&holding, 1);
  kvasir_kv_publisher *publisher = opened("tcp://127.0.0.1:0", "tcp://127.0.0.1:0");
  snprintf(own, sizeof own, "%d", (int)gettid());
  DIR *threads = opendir("/proc/self/task");
  CHECK(threads != NULL);
  for (const struct dirent *thread = readdir(threads); thread != NULL; thread = readdir(threads)) {
    if (thread->d_name[0] != '.') {
      const int is_own = strcmp(thread->d_name, own) == 0;
      others += !is_own;
      IS(is_own ? 0 : asynchronous, status_of(thread->d_name, "SigBlk:") & asynchronous);
    }
  }
  closedir(threads);
  CHECK(others > 0);
  IS(0, pthread_sigmask(SIG_BLOCK, NULL, &after));
  IS(0, sigismember(&after, SIGALRM));
  atomic_store(&holding, 0);
  kvasir_kv_close(&publisher);
}

static void refused(const char *endpoint) {
  const kvasir_kv_config events = config_of(endpoint, NULL);
  const kvasir_kv_config replays = config_of("tcp://127.0.0.1:0", endpoint);
  kvasir_kv_publisher *publisher;
  IS(KVASIR_KV_ADDRESS, kvasir_kv_open(&events, &publisher));
  IS(KVASIR_KV_ADDRESS, kvasir_kv_open(&replays, &publisher));
}

/* libzmq reads a number from the beginning of what stands there and takes its lowest 16 bits. */
static void ports_that_are_none_are_refused(void) {
  const char *const endpoints[] = {"tcp://*:99999",         "tcp://127.0.0.1:65536", "tcp://127.0.0.1:-1",
                                   "tcp://127.0.0.1:0x",    "tcp://127.0.0.1:",      "tcp://127.0.0.1",
                                   "tcp://127.0.0.1: 5557", "tcp://127.0.0.1:+0",    "tcp://127.0.0.1:4294967296",
                                   "tcp://::1:0"};
  for (size_t i = 0; i < sizeof endpoints / sizeof endpoints[0]; i++) {
    refused(endpoints[i]);
  }
}

/* Whether a reader of this family can connect to the port of the bound address. */
static int reachable(const char *bound, int family) {
  const uint16_t port = (uint16_t)strtoul(strrchr(bound, ':') + 1, NULL, 10);
  const struct sockaddr_in ipv4 = {
      .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  const struct sockaddr_in6 ipv6 = {
      .sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  const int reader = socket(family, SOCK_STREAM, 0);
  CHECK(reader >= 0);
  const int status = family == AF_INET ? connect(reader, (const struct sockaddr *)&ipv4, sizeof ipv4)
                                       : connect(reader, (const struct sockaddr *)&ipv6, sizeof ipv6);
  close(reader);
  return status == 0;
}

static int has_ipv6(void) {
  const struct sockaddr_in6 loopback = {.sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  const int probe = socket(AF_INET6, SOCK_STREAM, 0);
  const int has = probe >= 0 && bind(probe, (const struct sockaddr *)&loopback, sizeof loopback) == 0;
  if (probe >= 0) {
    close(probe);
  }
  return has;
}

/* As of the Java publisher: `*` is all addresses of the host, and one of IPv6 stands in brackets. */
static void addresses_are_bound_in_both_families(void) {
  const char *const ports[] = {"tcp://*:0", "tcp://*:*", "tcp://127.0.0.1:*", "tcp://[::1]:0"};
  const int ipv6 = has_ipv6();
  for (size_t i = 0; i < sizeof ports / sizeof ports[0]; i++) {
    const int all = strchr(ports[i], '*') == ports[i] + strlen("tcp://");
    const int bracketed = strchr(ports[i], '[') != NULL;
    if (bracketed && !ipv6) {
      continue;
    }
    char bound[TEXT];
    char replays[TEXT];
    kvasir_kv_publisher *publisher = opened(ports[i], ports[i]);
    IS(KVASIR_KV_OK, kvasir_kv_endpoint(publisher, bound, sizeof bound));
    IS(KVASIR_KV_OK, kvasir_kv_replay_endpoint(publisher, replays, sizeof replays));
    IS(!bracketed, reachable(bound, AF_INET));
    IS(!bracketed, reachable(replays, AF_INET));
    if (ipv6) {
      IS(all || bracketed, reachable(bound, AF_INET6));
      IS(all || bracketed, reachable(replays, AF_INET6));
    }
    kvasir_kv_close(&publisher);
  }
}

static void no_publisher_has_no_address(void) {
  char address[TEXT];
  IS(KVASIR_KV_INVALID, kvasir_kv_endpoint(NULL, address, sizeof address));
  IS(KVASIR_KV_INVALID, kvasir_kv_replay_endpoint(NULL, address, sizeof address));
}

int main(void) {
  void (*const tests[])(void) = {
      an_interrupted_publish_publishes_whole_messages,
      interrupted_opens_and_closes_leave_nothing,
      its_threads_take_no_signals,
      ports_that_are_none_are_refused,
      addresses_are_bound_in_both_families,
      no_publisher_has_no_address,
  };
  for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
    tests[i]();
  }
  return 0;
}
