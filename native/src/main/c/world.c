/* Handles, growable arrays, and the world of agents with its lock and counters. */
#include "loopback_internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static atomic_int_fast64_t live_handles;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static nixl_capi_agent_t agents;
static struct counters totals;
static uint64_t last_number;

void *handle_new(size_t size, enum tag tag) {
    enum tag *handle = calloc(1, size);
    if (handle != NULL) {
        *handle = tag;
        atomic_fetch_add_explicit(&live_handles, 1, memory_order_relaxed);
    }
    return handle;
}

bool handle_is(const void *handle, enum tag tag) { return handle != NULL && *(const enum tag *)handle == tag; }

void handle_free(void *handle) {
    free(handle);
    atomic_fetch_sub_explicit(&live_handles, 1, memory_order_relaxed);
}

nixl_capi_status_t handle_destroy(void *handle, enum tag tag) {
    if (!handle_is(handle, tag)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    handle_free(handle);
    return NIXL_CAPI_SUCCESS;
}

int64_t kvasir_loopback_live_handles(void) { return atomic_load_explicit(&live_handles, memory_order_relaxed); }

bool ranges_add(struct ranges *ranges, struct range range) {
    if (ranges->count == ranges->capacity) {
        const size_t capacity = ranges->capacity == 0 ? 16 : 2 * ranges->capacity;
        struct range *items = realloc(ranges->items, capacity * sizeof *items);
        if (items == NULL) {
            return false;
        }
        ranges->items = items;
        ranges->capacity = capacity;
    }
    ranges->items[ranges->count++] = range;
    return true;
}

void ranges_remove(struct ranges *ranges, size_t index) {
    ranges->count--;
    memmove(ranges->items + index, ranges->items + index + 1, (ranges->count - index) * sizeof *ranges->items);
}

void ranges_free(struct ranges *ranges) {
    free(ranges->items);
    *ranges = (struct ranges){0};
}

bool range_equals(struct range a, struct range b) {
    return a.memory == b.memory && a.address == b.address && a.length == b.length && a.device == b.device;
}

size_t ranges_find(const struct ranges *ranges, struct range range) {
    size_t index = 0;
    while (index < ranges->count && !range_equals(ranges->items[index], range)) {
        index++;
    }
    return index;
}

const struct range *ranges_around(const struct ranges *ranges, struct range range) {
    for (size_t i = 0; i < ranges->count; i++) {
        const struct range *around = &ranges->items[i];
        /* differences and not sums: an end may lie beyond the largest address */
        if (around->memory == range.memory && around->device == range.device && range.address >= around->address
            && range.length <= around->length && range.address - around->address <= around->length - range.length) {
            return around;
        }
    }
    return NULL;
}

bool bytes_set(struct bytes *bytes, const void *data, size_t length) {
    void *copy = NULL;
    if (length > 0) {
        copy = malloc(length);
        if (copy == NULL) {
            return false;
        }
        memcpy(copy, data, length);
    }
    free(bytes->data);
    *bytes = (struct bytes){.data = copy, .length = length};
    return true;
}

void bytes_free(struct bytes *bytes) {
    free(bytes->data);
    *bytes = (struct bytes){0};
}

void world_lock(void) { (void)pthread_mutex_lock(&lock); }

void world_unlock(void) { (void)pthread_mutex_unlock(&lock); }

uint64_t world_number(void) {
    if (last_number == 0) {
        /* other processes, and other copies of this library, start elsewhere */
        struct timespec now;
        (void)clock_gettime(CLOCK_REALTIME, &now);
        last_number = ((uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec) ^ ((uint64_t)getpid() << 40);
    }
    return ++last_number;
}

nixl_capi_agent_t world_find(const char *name) {
    nixl_capi_agent_t agent = agents;
    while (agent != NULL && strcmp(agent->name, name) != 0) {
        agent = agent->next;
    }
    return agent;
}

void world_count(nixl_capi_agent_t agent, struct counters change) {
    struct counters *const both[] = {&agent->counters, &totals};
    for (size_t i = 0; i < sizeof both / sizeof both[0]; i++) {
        both[i]->posts += change.posts;
        both[i]->bytes += change.bytes;
        both[i]->sent += change.sent;
        both[i]->dropped += change.dropped;
    }
}

static uint64_t registered_bytes(const struct nixl_capi_agent_s *agent) {
    uint64_t sum = 0;
    for (size_t i = 0; i < agent->regions.count; i++) {
        sum += agent->regions.items[i].length;
    }
    return sum;
}

nixl_capi_status_t kvasir_loopback_counters(const char *agent, uint64_t words[KVASIR_LOOPBACK_COUNTERS]) {
    if (words == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    world_lock();
    nixl_capi_agent_t named = agent == NULL ? NULL : world_find(agent);
    nixl_capi_status_t status = NIXL_CAPI_ERROR_NOT_FOUND;
    if (agent == NULL || named != NULL) {
        const struct counters counted = named == NULL ? totals : named->counters;
        uint64_t registered = 0;
        for (nixl_capi_agent_t each = agents; each != NULL; each = each->next) {
            registered += named == NULL || named == each ? registered_bytes(each) : 0;
        }
        words[KVASIR_LOOPBACK_POSTS] = counted.posts;
        words[KVASIR_LOOPBACK_BYTES] = counted.bytes;
        words[KVASIR_LOOPBACK_NOTIFICATIONS_SENT] = counted.sent;
        words[KVASIR_LOOPBACK_NOTIFICATIONS_DROPPED] = counted.dropped;
        words[KVASIR_LOOPBACK_REGISTERED_BYTES] = registered;
        words[KVASIR_LOOPBACK_LIVE_HANDLES] = (uint64_t)kvasir_loopback_live_handles();
        status = NIXL_CAPI_SUCCESS;
    }
    world_unlock();
    return status;
}

nixl_capi_status_t nixl_capi_create_agent(const char *name, nixl_capi_agent_t *agent) {
    const nixl_capi_agent_config_t defaults = {
        .enable_prog_thread = true, .thread_sync = NIXL_CAPI_THREAD_SYNC_NONE};
    return nixl_capi_create_configured_agent(name, &defaults, agent);
}

nixl_capi_status_t nixl_capi_create_configured_agent(
    const char *name, const nixl_capi_agent_config_t *config, nixl_capi_agent_t *agent) {
    if (name == NULL || config == NULL || agent == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    if (name[0] == '\0') {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    nixl_capi_agent_t made = handle_new(sizeof *made, AGENT);
    if (made == NULL) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    made->config = *config;
    made->inbox_end = &made->inbox;
    made->name = strdup(name);
    world_lock();
    const bool welcome = made->name != NULL && world_find(name) == NULL;
    if (welcome) {
        made->instance = world_number();
        made->next = agents;
        agents = made;
    }
    world_unlock();
    if (!welcome) {
        free(made->name);
        handle_free(made);
        return NIXL_CAPI_ERROR_BACKEND;
    }
    *agent = made;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_destroy_agent(nixl_capi_agent_t agent) {
    if (!handle_is(agent, AGENT)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    world_lock();
    nixl_capi_agent_t *link = &agents;
    while (*link != agent) {
        link = &(*link)->next;
    }
    *link = agent->next;
    peers_free(agent);
    inbox_free(agent);
    ranges_free(&agent->regions);
    world_unlock();
    free(agent->name);
    handle_free(agent);
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t kvasir_loopback_disconnect(const char *agent) {
    if (agent == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    world_lock();
    nixl_capi_agent_t named = world_find(agent);
    if (named != NULL) {
        named->epoch++;
    }
    world_unlock();
    return named == NULL ? NIXL_CAPI_ERROR_NOT_FOUND : NIXL_CAPI_SUCCESS;
}
