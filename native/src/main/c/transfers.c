/*
 * Transfers. A request knows addresses and names, no other handle, so that whatever it was made of may go:
 * its peer and whether both sides are still registered is looked up again when the bytes are copied.
 * They are copied by the post or the poll that finds the request due, and then the notification goes out.
 */
#include "loopback_internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* A descriptor with the start of the region it lies in: pieces of different regions are never merged. */
struct piece {
    struct range range;
    uintptr_t region;
};

struct pieces {
    struct piece *items;
    size_t count;
};

struct nixl_capi_xfer_dlist_handle_s {
    enum tag tag;
    uint64_t owner;      /* instance of the agent that prepared it */
    char *peer;          /* NULL for own memory */
    uint64_t generation; /* of what was known of the peer */
    struct pieces pieces;
};

struct copy {
    struct range local;
    struct range remote;
};

enum progress { NOT_POSTED, RUNNING, DONE, FAILED, RELEASED };

struct nixl_capi_xfer_req_s {
    enum tag tag;
    enum progress progress;
    nixl_capi_status_t failure; /* when progress is FAILED */
    uint64_t owner;
    nixl_capi_xfer_op_t operation;
    char *peer;
    uint64_t generation;
    bool has_notification;
    struct bytes notification;
    struct copy *copies;
    size_t count;
    uint64_t bytes;
    uint64_t posted_us;
    uint64_t due_us;
    uint64_t post_duration_us;
    uint64_t duration_us;
};

static uint64_t now_us(void) {
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000U + (uint64_t)now.tv_nsec / 1000U;
}

/*
 * The regions that the agent knows under this name: its own for NULL and for its own name, else the peer's.
 * NULL when there is no such peer. The generation tells a peer from one loaded again; own memory has 0.
 */
static const struct ranges *regions_of(
    const struct nixl_capi_agent_s *agent, const char *name, uint64_t *generation) {
    *generation = 0;
    if (name == NULL || strcmp(name, agent->name) == 0) {
        return &agent->regions;
    }
    const struct peer *peer = peer_find(agent, name);
    if (peer == NULL || !peer->has_connection) {
        return NULL;
    }
    *generation = peer->generation;
    return &peer->regions;
}

static bool still_known(const struct nixl_capi_agent_s *agent, const char *name, uint64_t generation) {
    uint64_t current = 0;
    return regions_of(agent, name, &current) != NULL && current == generation;
}

/* Finds the region of every descriptor; NOT_FOUND, and nothing to free, when one lies in none. */
static nixl_capi_status_t locate(
    const struct ranges *regions, const struct nixl_capi_xfer_dlist_s *list, struct pieces *pieces) {
    if (!memory_moves(list->memory) || list->ranges.count == 0) {
        return NIXL_CAPI_ERROR_NOT_FOUND;
    }
    pieces->items = calloc(list->ranges.count, sizeof *pieces->items);
    if (pieces->items == NULL) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    pieces->count = list->ranges.count;
    for (size_t i = 0; i < pieces->count; i++) {
        const struct range *region = ranges_around(regions, list->ranges.items[i]);
        if (region == NULL) {
            free(pieces->items);
            *pieces = (struct pieces){0};
            return NIXL_CAPI_ERROR_NOT_FOUND;
        }
        pieces->items[i] = (struct piece){.range = list->ranges.items[i], .region = region->address};
    }
    return NIXL_CAPI_SUCCESS;
}

static void prepared_free(nixl_capi_xfer_dlist_handle_t prepared) {
    free(prepared->pieces.items);
    free(prepared->peer);
    handle_free(prepared);
}

static nixl_capi_status_t prepare(
    nixl_capi_agent_t agent, const struct nixl_capi_xfer_dlist_s *list, nixl_capi_opt_args_t args,
    nixl_capi_xfer_dlist_handle_t prepared) {
    const struct ranges *regions = regions_of(agent, prepared->peer, &prepared->generation);
    if (regions == NULL || !options_allow(args, agent)) {
        return NIXL_CAPI_ERROR_NOT_FOUND;
    }
    prepared->owner = agent->instance;
    return locate(regions, list, &prepared->pieces);
}

nixl_capi_status_t nixl_capi_prep_xfer_dlist(
    nixl_capi_agent_t agent, const char *agent_name, nixl_capi_xfer_dlist_t list,
    nixl_capi_xfer_dlist_handle_t *handle, nixl_capi_opt_args_t args) {
    if (!handle_is(agent, AGENT) || agent_name == NULL || !handle_is(list, XFER_LIST) || handle == NULL
        || !options_fit(args)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    nixl_capi_xfer_dlist_handle_t made = handle_new(sizeof *made, PREPARED);
    if (made == NULL) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    const bool local = agent_name[0] == '\0';
    made->peer = local ? NULL : strdup(agent_name);
    nixl_capi_status_t status = NIXL_CAPI_ERROR_BACKEND;
    if (local || made->peer != NULL) {
        world_lock();
        status = prepare(agent, list, args, made);
        world_unlock();
    }
    if (status != NIXL_CAPI_SUCCESS) {
        prepared_free(made);
        return status;
    }
    *handle = made;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_release_xfer_dlist_handle(
    nixl_capi_agent_t agent, nixl_capi_xfer_dlist_handle_t handle) {
    if (!handle_is(agent, AGENT) || !handle_is(handle, PREPARED)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    world_lock();
    const bool refused = faults_take_return(agent->name);
    world_unlock();
    prepared_free(handle);
    return refused ? NIXL_CAPI_ERROR_BACKEND : NIXL_CAPI_SUCCESS;
}

static void request_free(nixl_capi_xfer_req_t request) {
    bytes_free(&request->notification);
    free(request->copies);
    free(request->peer);
    handle_free(request);
}

/* An empty request with room for so many copies; NULL without memory. */
static nixl_capi_xfer_req_t request_new(
    const struct nixl_capi_agent_s *agent, nixl_capi_xfer_op_t operation, const char *peer, size_t capacity,
    const struct nixl_capi_opt_args_s *args) {
    nixl_capi_xfer_req_t request = handle_new(sizeof *request, REQUEST);
    if (request == NULL) {
        return NULL;
    }
    request->owner = agent->instance;
    request->operation = operation;
    request->peer = strdup(peer);
    request->copies = calloc(capacity, sizeof *request->copies);
    bool complete = request->peer != NULL && request->copies != NULL;
    if (complete && args != NULL && args->has_notification) {
        request->has_notification = true;
        complete = bytes_set(&request->notification, args->notification.data, args->notification.length);
    }
    if (!complete) {
        request_free(request);
        return NULL;
    }
    return request;
}

static bool continues(const struct range *range, const struct piece *piece) {
    return range->address + range->length == piece->range.address && range->device == piece->range.device;
}

/* Adds a pair of pieces of equal length, as a part of the pair before where it continues that one on both sides. */
static void request_add(
    nixl_capi_xfer_req_t request, const struct piece *local, const struct piece *remote, bool may_merge) {
    struct copy *last = request->count == 0 ? NULL : &request->copies[request->count - 1];
    if (may_merge && last != NULL && continues(&last->local, local) && continues(&last->remote, remote)) {
        last->local.length += local->range.length;
        last->remote.length += remote->range.length;
    } else {
        request->copies[request->count++] = (struct copy){.local = local->range, .remote = remote->range};
    }
    request->bytes += local->range.length;
}

static bool in_bounds(int index, const struct pieces *pieces) { return index >= 0 && (size_t)index < pieces->count; }

static bool indices_fit(
    const struct pieces *local, const int *local_indices, const struct pieces *remote, const int *remote_indices,
    size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (!in_bounds(local_indices[i], local) || !in_bounds(remote_indices[i], remote)
            || local->items[local_indices[i]].range.length != remote->items[remote_indices[i]].range.length) {
            return false;
        }
    }
    return true;
}

nixl_capi_status_t nixl_capi_make_xfer_req(
    nixl_capi_agent_t agent, nixl_capi_xfer_op_t operation, nixl_capi_xfer_dlist_handle_t local,
    const int *local_indices, size_t local_count, nixl_capi_xfer_dlist_handle_t remote, const int *remote_indices,
    size_t remote_count, nixl_capi_xfer_req_t *request, nixl_capi_opt_args_t args) {
    if (!handle_is(agent, AGENT) || !handle_is(local, PREPARED) || !handle_is(remote, PREPARED)
        || local_indices == NULL || remote_indices == NULL || request == NULL || !options_fit(args)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    if (local->owner != agent->instance || remote->owner != agent->instance || local->peer != NULL
        || remote->peer == NULL || local_count == 0 || local_count != remote_count
        || !indices_fit(&local->pieces, local_indices, &remote->pieces, remote_indices, local_count)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    world_lock();
    const bool known = still_known(agent, remote->peer, remote->generation);
    const bool allowed = options_allow(args, agent);
    world_unlock();
    if (!known || !allowed) {
        return known ? NIXL_CAPI_ERROR_INVALID_PARAM : NIXL_CAPI_ERROR_NOT_FOUND;
    }
    nixl_capi_xfer_req_t made = request_new(agent, operation, remote->peer, local_count, args);
    if (made == NULL) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    made->generation = remote->generation;
    const struct piece *last_local = NULL;
    const struct piece *last_remote = NULL;
    for (size_t i = 0; i < local_count; i++) {
        const struct piece *one = &local->pieces.items[local_indices[i]];
        const struct piece *other = &remote->pieces.items[remote_indices[i]];
        const bool may_merge = last_local != NULL && last_local->region == one->region
            && last_remote->region == other->region && (args == NULL || !args->skip_merge);
        request_add(made, one, other, may_merge);
        last_local = one;
        last_remote = other;
    }
    *request = made;
    return NIXL_CAPI_SUCCESS;
}

/* Fills the request with the pairs of two lists; false when they do not fit each other or what is registered. */
static bool pair_lists(
    const struct nixl_capi_agent_s *agent, const struct nixl_capi_xfer_dlist_s *local,
    const struct nixl_capi_xfer_dlist_s *remote, nixl_capi_xfer_req_t request) {
    const struct ranges *regions = regions_of(agent, request->peer, &request->generation);
    struct pieces here = {0};
    struct pieces there = {0};
    bool fit = regions != NULL && locate(&agent->regions, local, &here) == NIXL_CAPI_SUCCESS
        && locate(regions, remote, &there) == NIXL_CAPI_SUCCESS;
    for (size_t i = 0; fit && i < here.count; i++) {
        fit = here.items[i].range.length == there.items[i].range.length;
        if (fit) {
            request_add(request, &here.items[i], &there.items[i], false);
        }
    }
    free(here.items);
    free(there.items);
    return fit;
}

nixl_capi_status_t nixl_capi_create_xfer_req(
    nixl_capi_agent_t agent, nixl_capi_xfer_op_t operation, nixl_capi_xfer_dlist_t local,
    nixl_capi_xfer_dlist_t remote, const char *remote_agent, nixl_capi_xfer_req_t *request,
    nixl_capi_opt_args_t args) {
    if (!handle_is(agent, AGENT) || !handle_is(local, XFER_LIST) || !handle_is(remote, XFER_LIST)
        || remote_agent == NULL || request == NULL || !options_fit(args)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    if (local->ranges.count == 0 || local->ranges.count != remote->ranges.count) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    nixl_capi_xfer_req_t made = request_new(agent, operation, remote_agent, local->ranges.count, args);
    if (made == NULL) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    world_lock();
    const bool fit = options_allow(args, agent) && pair_lists(agent, local, remote, made);
    world_unlock();
    if (!fit) {
        request_free(made);
        return NIXL_CAPI_ERROR_BACKEND;
    }
    *request = made;
    return NIXL_CAPI_SUCCESS;
}

/* Copies all bytes, or none when a side is no longer registered: NIXL would copy them or crash. */
static bool copy_all(
    const struct nixl_capi_xfer_req_s *request, const struct ranges *local, const struct ranges *remote) {
    for (size_t i = 0; i < request->count; i++) {
        if (ranges_around(local, request->copies[i].local) == NULL
            || ranges_around(remote, request->copies[i].remote) == NULL) {
            return false;
        }
    }
    for (size_t i = 0; i < request->count; i++) {
        void *here = (void *)request->copies[i].local.address;
        void *there = (void *)request->copies[i].remote.address;
        const bool pull = request->operation == NIXL_CAPI_XFER_OP_READ;
        memmove(pull ? here : there, pull ? there : here, request->copies[i].local.length);
    }
    return true;
}

/* A failure sticks until the next post. */
static nixl_capi_status_t fail(nixl_capi_xfer_req_t request, nixl_capi_status_t failure) {
    request->progress = FAILED;
    request->failure = failure;
    return failure;
}

static nixl_capi_status_t finish(
    nixl_capi_agent_t agent, nixl_capi_agent_t receiver, nixl_capi_xfer_req_t request) {
    if (!copy_all(request, &agent->regions, &receiver->regions)) {
        return fail(request, NIXL_CAPI_ERROR_BACKEND);
    }
    request->progress = DONE;
    request->duration_us = now_us() - request->posted_us;
    world_count(agent, (struct counters){.bytes = request->bytes});
    return request->has_notification ? inbox_put(agent, receiver, &request->notification) : NIXL_CAPI_SUCCESS;
}

/* Looks at a running request and finishes it when it is due by this time. */
static nixl_capi_status_t advance(nixl_capi_agent_t agent, nixl_capi_xfer_req_t request, uint64_t time_us) {
    nixl_capi_agent_t receiver = NULL;
    const nixl_capi_status_t reached = peer_reach(agent, request->peer, &receiver);
    if (reached != NIXL_CAPI_SUCCESS || !still_known(agent, request->peer, request->generation)) {
        return fail(request, reached == NIXL_CAPI_SUCCESS ? NIXL_CAPI_ERROR_NOT_FOUND : reached);
    }
    if (faults_stuck(agent->name, request->peer) || time_us < request->due_us) {
        return NIXL_CAPI_IN_PROG;
    }
    return finish(agent, receiver, request);
}

static nixl_capi_status_t post(
    nixl_capi_agent_t agent, nixl_capi_xfer_req_t request, const struct nixl_capi_opt_args_s *args) {
    if (!still_known(agent, request->peer, request->generation)) {
        return NIXL_CAPI_ERROR_NOT_FOUND;
    }
    if (request->progress == RUNNING && advance(agent, request, now_us()) == NIXL_CAPI_IN_PROG) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    if (args != NULL) {
        request->has_notification = args->has_notification;
        if (args->has_notification
            && !bytes_set(&request->notification, args->notification.data, args->notification.length)) {
            return NIXL_CAPI_ERROR_BACKEND;
        }
    }
    world_count(agent, (struct counters){.posts = 1});
    request->progress = RUNNING;
    request->posted_us = now_us();
    const uint64_t duration = faults_duration_us(agent->name, request->peer, request->bytes);
    request->due_us = duration > UINT64_MAX - request->posted_us ? UINT64_MAX : request->posted_us + duration;
    /* of the post's time: what is delayed is never done in its post, however long a thread is kept from here */
    const nixl_capi_status_t status = advance(agent, request, request->posted_us);
    request->post_duration_us = now_us() - request->posted_us;
    return status;
}

/* Whether both are what they seem and the request was made by this agent and is not released. */
static bool request_fits(const struct nixl_capi_agent_s *agent, const struct nixl_capi_xfer_req_s *request) {
    return handle_is(agent, AGENT) && handle_is(request, REQUEST) && request->owner == agent->instance
        && request->progress != RELEASED;
}

nixl_capi_status_t nixl_capi_post_xfer_req(
    nixl_capi_agent_t agent, nixl_capi_xfer_req_t request, nixl_capi_opt_args_t args) {
    if (!request_fits(agent, request) || !options_fit(args)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    world_lock();
    const nixl_capi_status_t status = post(agent, request, args);
    world_unlock();
    return status;
}

nixl_capi_status_t nixl_capi_get_xfer_status(nixl_capi_agent_t agent, nixl_capi_xfer_req_t request) {
    if (!request_fits(agent, request)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    nixl_capi_status_t status = NIXL_CAPI_ERROR_BACKEND; /* not posted */
    world_lock();
    if (request->progress == RUNNING) {
        status = advance(agent, request, now_us());
    } else if (request->progress == DONE) {
        status = NIXL_CAPI_SUCCESS;
    } else if (request->progress == FAILED) {
        status = request->failure;
    }
    world_unlock();
    return status;
}

nixl_capi_status_t nixl_capi_release_xfer_req(nixl_capi_agent_t agent, nixl_capi_xfer_req_t request) {
    if (!request_fits(agent, request)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    world_lock();
    const bool refused = faults_take_release(agent->name);
    if (!refused) {
        if (request->progress == RUNNING) {
            /* like NIXL: what is done by now is done, whatever the caller saw; only the rest is cancelled */
            (void)advance(agent, request, now_us());
        }
        request->progress = RELEASED;
    }
    world_unlock();
    return refused ? NIXL_CAPI_ERROR_BACKEND : NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_destroy_xfer_req(nixl_capi_xfer_req_t request) {
    if (!handle_is(request, REQUEST)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    if (request->progress != RELEASED) {
        return NIXL_CAPI_ERROR_INVALID_STATE;
    }
    world_lock();
    const bool refused = faults_take_return(NULL);
    world_unlock();
    request_free(request);
    return refused ? NIXL_CAPI_ERROR_BACKEND : NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_query_xfer_backend(
    nixl_capi_agent_t agent, nixl_capi_xfer_req_t request, nixl_capi_backend_t *backend) {
    if (!request_fits(agent, request) || backend == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    nixl_capi_backend_t made = handle_new(sizeof *made, BACKEND);
    if (made == NULL) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    made->instance = agent->instance;
    *backend = made;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_estimate_xfer_cost(
    nixl_capi_agent_t agent, nixl_capi_xfer_req_t request, nixl_capi_opt_args_t args, int64_t *duration_us,
    int64_t *margin_us, nixl_capi_cost_t *method) {
    if (!request_fits(agent, request) || !options_fit(args) || duration_us == NULL || margin_us == NULL
        || method == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    world_lock();
    const bool known = still_known(agent, request->peer, request->generation);
    const uint64_t duration = faults_duration_us(agent->name, request->peer, request->bytes);
    world_unlock();
    if (!known) {
        return NIXL_CAPI_ERROR_NOT_FOUND;
    }
    *duration_us = duration > INT64_MAX ? INT64_MAX : (int64_t)duration;
    *margin_us = 0;
    *method = NIXL_CAPI_COST_ANALYTICAL_BACKEND;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_get_xfer_telemetry(
    nixl_capi_agent_t agent, nixl_capi_xfer_req_t request, nixl_capi_xfer_telemetry_t telemetry) {
    if (!request_fits(agent, request) || telemetry == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    if (!agent->config.capture_telemetry) {
        return NIXL_CAPI_ERROR_NO_TELEMETRY;
    }
    if (request->progress != DONE) {
        return request->progress == RUNNING ? NIXL_CAPI_IN_PROG : NIXL_CAPI_ERROR_BACKEND;
    }
    *telemetry = (struct nixl_capi_xfer_telemetry_s){
        .start_time_us = request->posted_us,
        .post_duration_us = request->post_duration_us,
        .xfer_duration_us = request->duration_us,
        .total_bytes = request->bytes,
        .desc_count = request->count,
    };
    return NIXL_CAPI_SUCCESS;
}
