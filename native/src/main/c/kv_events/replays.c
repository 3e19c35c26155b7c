#include "publisher.h"

#include <errno.h>
#include <string.h>
#include <zmq.h>

enum { MOST_REQUESTS = 64, MOST_IDENTITY = 256, AT_ONCE = 64, PAUSE_MS = 1 };

/* An answer that is under way. */
typedef struct {
  unsigned char identity[MOST_IDENTITY];
  size_t identity_bytes;
  uint64_t next;
  uint64_t end;
} request;

typedef struct {
  request requests[MOST_REQUESTS];
  size_t count;
} open_requests;

enum progress { SENT, FULL, GONE };

/* Sends identity, "" and three frames; all of them or, where the peer's queue is full or memory is short, none. */
static enum progress answer(void *socket, const request *to, const void *topic, size_t topic_bytes,
                            uint64_t value, const void *payload, size_t payload_bytes) {
  unsigned char number[8];
  kv_put_number(number, value);
  const kv_frame frames[] = {{to->identity, to->identity_bytes},
                             {"", 0},
                             {topic, topic_bytes},
                             {number, sizeof number},
                             {payload, payload_bytes}};
  switch (kv_send(socket, frames, sizeof frames / sizeof frames[0])) {
    case 0:
      return SENT;
    case EAGAIN:
    case ENOMEM:
      return FULL;
    default:
      return GONE;
  }
}

/* Sends the next message that is still there, or the end; 0 when the request is done with. */
static enum progress one(struct kvasir_kv_publisher *p, request *r, int *done) {
  zmq_msg_t copy;
  uint64_t number = r->next;
  *done = 0;
  pthread_mutex_lock(&p->lock);
  if (number < p->buffer.first) {
    number = p->buffer.first;
  }
  const kv_payload *held = number < r->end ? kv_replay_get(&p->buffer, number) : NULL;
  int failure = 0;
  if (held != NULL) {
    failure = zmq_msg_init_size(&copy, held->length) != 0;
    if (!failure) {
      memcpy(zmq_msg_data(&copy), held->data, held->length);
    }
  }
  pthread_mutex_unlock(&p->lock);
  if (failure) {
    return FULL; /* no memory now; later perhaps */
  }
  if (held == NULL) {
    const enum progress end = answer(p->replays, r, "", 0, UINT64_MAX, "", 0);
    *done = end != FULL;
    return end;
  }
  const enum progress sent =
      answer(p->replays, r, p->topic, p->topic_bytes, number, zmq_msg_data(&copy), zmq_msg_size(&copy));
  zmq_msg_close(&copy);
  if (sent == SENT) {
    r->next = number + 1;
  }
  *done = sent == GONE;
  return sent;
}

/* Goes on with all answers, as far as their readers' queues go. */
static void go_on(struct kvasir_kv_publisher *p, open_requests *open) {
  for (size_t i = 0; i < open->count;) {
    int done = 0;
    enum progress last = SENT;
    for (int n = 0; n < AT_ONCE && !done && last == SENT; n++) {
      last = one(p, &open->requests[i], &done);
    }
    if (done) {
      open->requests[i] = open->requests[--open->count];
    } else {
      i++;
    }
  }
}

/* Reads one request: identity | "" | number. What is anything else is read to its end and dropped. */
static void take(struct kvasir_kv_publisher *p, open_requests *open) {
  request r = {.identity_bytes = 0};
  unsigned char number[8] = {0};
  int valid = 1;
  int frames = 0;
  int more = 1;
  while (more) {
    zmq_msg_t frame;
    zmq_msg_init(&frame);
    while (zmq_msg_recv(&frame, p->replays, ZMQ_DONTWAIT) < 0) {
      if (zmq_errno() != EINTR) {
        zmq_msg_close(&frame);
        return;
      }
    }
    const size_t size = zmq_msg_size(&frame);
    if (frames == 0 && size <= MOST_IDENTITY) {
      memcpy(r.identity, zmq_msg_data(&frame), size);
      r.identity_bytes = size;
    } else if (frames == 2 && size == sizeof number) {
      memcpy(number, zmq_msg_data(&frame), size);
    } else if (!(frames == 1 && size == 0)) {
      valid = 0;
    }
    frames++;
    more = zmq_msg_more(&frame);
    zmq_msg_close(&frame);
  }
  if (!valid || frames != 3 || open->count == MOST_REQUESTS) {
    return; /* a reader asks again where it gets no answer */
  }
  const uint64_t wanted = kv_read_number(number);
  r.next = wanted > INT64_MAX ? 0 : wanted; /* a negative one asks for all */
  pthread_mutex_lock(&p->lock);
  r.end = p->buffer.next;
  pthread_mutex_unlock(&p->lock);
  open->requests[open->count++] = r;
}

void *kv_serve_replays(void *publisher) {
  struct kvasir_kv_publisher *p = publisher;
  open_requests open = {.count = 0};
  while (1) {
    zmq_pollitem_t item = {p->replays, 0, ZMQ_POLLIN, 0};
    if (zmq_poll(&item, 1, open.count > 0 ? PAUSE_MS : -1) < 0 && zmq_errno() != EINTR) {
      return NULL; /* the context was shut down */
    }
    if ((item.revents & ZMQ_POLLIN) != 0) {
      take(p, &open);
    }
    go_on(p, &open);
  }
}
