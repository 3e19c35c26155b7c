/*
 * An engine for tests: reads commands, one a line, and says what the library answered, one line each.
 *
 *   open ENDPOINT REPLAY|- TOPIC|- RANK BLOCK_SIZE MESSAGES UNSENT BYTES
 *   stored FIRST_TOKEN TOKENS COUNTS|- PARENT|- LORA_ID LORA_NAME|- HASH...    COUNTS as 4,4,2
 *   removed HASH...
 *   cleared
 *   many N            that many removals of one block, from two threads
 *   close
 */
#include "kvasir_kv_events.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 4096, LINE = 1 << 16 };

static kvasir_kv_publisher *publisher;

static int64_t clock_of_test(void *context) { return *(const int64_t *)context; }

static char *word(void) { return strtok(NULL, " \n"); }

static uint64_t number_of(const char *text) { return text == NULL ? 0 : strtoull(text, NULL, 0); }

static const char *or_null(const char *text) { return text == NULL || strcmp(text, "-") == 0 ? NULL : text; }

static size_t hashes(uint64_t *out) {
  size_t count = 0;
  for (char *next = word(); next != NULL && count < MOST; next = word()) {
    out[count++] = number_of(next);
  }
  return count;
}

static void say(int status, const uint64_t *number) {
  if (status != KVASIR_KV_OK) {
    printf("%d %s\n", status, kvasir_kv_status_text(status));
  } else if (number != NULL && *number != UINT64_MAX) {
    printf("0 %" PRIu64 "\n", *number);
  } else {
    printf("0\n");
  }
}

static void open_publisher(void) {
  static const int64_t time_ms = 1500;
  kvasir_kv_config config = {.struct_bytes = sizeof config, .clock = clock_of_test};
  char endpoint[256] = "-";
  char replay[256] = "-";
  config.clock_context = (void *)(uintptr_t)&time_ms;
  config.endpoint = or_null(word());
  config.replay_endpoint = or_null(word());
  config.topic = or_null(word());
  config.dp_rank = (uint32_t)number_of(word());
  config.block_size = (uint32_t)number_of(word());
  config.replay_messages = (uint32_t)number_of(word());
  config.unsent_messages = (uint32_t)number_of(word());
  config.replay_bytes = number_of(word());
  const int status = kvasir_kv_open(&config, &publisher);
  if (status != KVASIR_KV_OK) {
    say(status, NULL);
    return;
  }
  kvasir_kv_endpoint(publisher, endpoint, sizeof endpoint);
  if (kvasir_kv_replay_endpoint(publisher, replay, sizeof replay) != KVASIR_KV_OK) {
    strcpy(replay, "-");
  }
  printf("0 %s %s\n", endpoint, replay);
}

static void stored(void) {
  static uint32_t tokens[MOST];
  static uint32_t counts[MOST];
  static uint64_t blocks[MOST];
  uint64_t number = UINT64_MAX;
  const uint32_t first = (uint32_t)number_of(word());
  const size_t token_count = number_of(word());
  char *count_list = word();
  const char *parent_text = or_null(word());
  const uint64_t parent = number_of(parent_text);
  const uint64_t lora_id = number_of(word());
  const char *lora_name = or_null(word());
  const size_t block_count = hashes(blocks);
  for (size_t i = 0; i < token_count; i++) {
    tokens[i] = first + (uint32_t)i;
  }
  size_t listed = 0;
  for (char *at = count_list; or_null(count_list) != NULL && at != NULL; at = strchr(at, ',')) {
    at += listed > 0;
    counts[listed++] = (uint32_t)strtoul(at, NULL, 10);
  }
  say(kvasir_kv_stored(publisher, tokens, token_count, listed > 0 ? counts : NULL, blocks, block_count,
                       parent_text == NULL ? NULL : &parent, lora_id, lora_name, &number),
      &number);
}

static void *remove_many(void *count) {
  const uint64_t block = 7;
  for (uint64_t i = 0; i < *(const uint64_t *)count; i++) {
    if (kvasir_kv_removed(publisher, &block, 1, NULL) != KVASIR_KV_OK) {
      abort();
    }
  }
  return NULL;
}

static void many(void) {
  const uint64_t count = number_of(word()) / 2;
  pthread_t other;
  if (pthread_create(&other, NULL, remove_many, (void *)(uintptr_t)&count) != 0) {
    abort();
  }
  remove_many((void *)(uintptr_t)&count);
  pthread_join(other, NULL);
  say(KVASIR_KV_OK, NULL);
}

int main(void) {
  static char line[LINE];
  static uint64_t blocks[MOST];
  while (fgets(line, sizeof line, stdin) != NULL) {
    uint64_t number = UINT64_MAX;
    const char *command = strtok(line, " \n");
    if (command == NULL) {
      continue;
    }
    if (strcmp(command, "open") == 0) {
      open_publisher();
    } else if (strcmp(command, "stored") == 0) {
      stored();
    } else if (strcmp(command, "removed") == 0) {
      const size_t count = hashes(blocks);
      say(kvasir_kv_removed(publisher, blocks, count, &number), &number);
    } else if (strcmp(command, "cleared") == 0) {
      say(kvasir_kv_cleared(publisher, &number), &number);
    } else if (strcmp(command, "many") == 0) {
      many();
    } else if (strcmp(command, "close") == 0) {
      kvasir_kv_close(&publisher);
      say(publisher == NULL ? KVASIR_KV_OK : KVASIR_KV_INVALID, NULL);
    }
    fflush(stdout);
  }
  kvasir_kv_close(&publisher);
  kvasir_kv_close(&publisher);
  return 0;
}
