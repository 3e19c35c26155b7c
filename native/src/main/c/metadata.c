/*
 * Registered memory, the metadata that tells peers of it, and what an agent knows of its peers.
 *
 * Metadata, in the byte order of the machine:
 *   0       8         12        16         24          28         32
 *   +-------+---------+---------+----------+-----------+----------+------+---------+-----
 *   | magic | abi:u32 | kind:u32| inst:u64 | nameLn:u32| count:u32| name | regions | ...
 *   +-------+---------+---------+----------+-----------+----------+------+---------+-----
 *   kind: 1 tells how to connect, 0 tells of regions only; a region is memory, address, length, device: u64 each
 */
#include "loopback_internal.h"

#include <stdlib.h>
#include <string.h>

#define KIND_REGIONS 0
#define KIND_CONNECTION 1

static const char MAGIC[8] = {'K', 'V', 'L', 'O', 'O', 'P', 'M', 'D'};

struct header {
    char magic[8];
    uint32_t abi;
    uint32_t kind;
    uint64_t instance;
    uint32_t name_length;
    uint32_t region_count;
};

struct region {
    uint64_t memory;
    uint64_t address;
    uint64_t length;
    uint64_t device;
};

_Static_assert(sizeof(struct header) == 32, "the drawing above is wrong");
_Static_assert(sizeof(struct region) == 32, "the drawing above is wrong");

static nixl_capi_status_t register_ranges(nixl_capi_agent_t agent, const struct nixl_capi_reg_dlist_s *list) {
    if (list->ranges.count == 0) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    const size_t before = agent->regions.count;
    for (size_t i = 0; i < list->ranges.count; i++) {
        if (!ranges_add(&agent->regions, list->ranges.items[i])) {
            agent->regions.count = before;
            return NIXL_CAPI_ERROR_BACKEND;
        }
    }
    return NIXL_CAPI_SUCCESS;
}

typedef nixl_capi_status_t (*change_ranges)(nixl_capi_agent_t agent, const struct nixl_capi_reg_dlist_s *list);

/* Checks the arguments and changes the agent's ranges under the lock. */
static nixl_capi_status_t change_memory(
    nixl_capi_agent_t agent, nixl_capi_reg_dlist_t list, nixl_capi_opt_args_t args, change_ranges change) {
    if (!handle_is(agent, AGENT) || !handle_is(list, REG_LIST) || !options_fit(args)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    world_lock();
    nixl_capi_status_t status = NIXL_CAPI_ERROR_NOT_FOUND;
    if (memory_moves(list->memory) && options_allow(args, agent)) {
        status = change(agent, list);
    }
    world_unlock();
    return status;
}

nixl_capi_status_t nixl_capi_register_mem(
    nixl_capi_agent_t agent, nixl_capi_reg_dlist_t list, nixl_capi_opt_args_t args) {
    return change_memory(agent, list, args, register_ranges);
}

/* Removes all ranges of the list or, when one of them is not registered, none. */
static nixl_capi_status_t deregister_ranges(nixl_capi_agent_t agent, const struct nixl_capi_reg_dlist_s *list) {
    if (faults_take_return(agent->name)) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    if (agent->regions.count == 0) {
        return NIXL_CAPI_ERROR_NOT_FOUND;
    }
    struct ranges left = {0};
    for (size_t i = 0; i < agent->regions.count; i++) {
        if (!ranges_add(&left, agent->regions.items[i])) {
            ranges_free(&left);
            return NIXL_CAPI_ERROR_BACKEND;
        }
    }
    for (size_t i = 0; i < list->ranges.count; i++) {
        const size_t place = ranges_find(&left, list->ranges.items[i]);
        if (place == left.count) {
            ranges_free(&left);
            return NIXL_CAPI_ERROR_NOT_FOUND;
        }
        ranges_remove(&left, place);
    }
    ranges_free(&agent->regions);
    agent->regions = left;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_deregister_mem(
    nixl_capi_agent_t agent, nixl_capi_reg_dlist_t list, nixl_capi_opt_args_t args) {
    return change_memory(agent, list, args, deregister_ranges);
}

static nixl_capi_status_t write_metadata(
    const struct nixl_capi_agent_s *agent, uint32_t kind, const struct ranges *regions, void **data,
    size_t *length) {
    const struct header header = {
        .abi = KVASIR_LOOPBACK_ABI,
        .kind = kind,
        .instance = agent->instance,
        .name_length = (uint32_t)strlen(agent->name),
        .region_count = (uint32_t)regions->count,
    };
    const size_t size = sizeof header + header.name_length + regions->count * sizeof(struct region);
    char *blob = malloc(size);
    if (blob == NULL) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    memcpy(blob, &header, sizeof header);
    memcpy(blob, MAGIC, sizeof MAGIC);
    memcpy(blob + sizeof header, agent->name, header.name_length);
    char *end = blob + sizeof header + header.name_length;
    for (size_t i = 0; i < regions->count; i++) {
        const struct range range = regions->items[i];
        const struct region region = {(uint64_t)range.memory, range.address, range.length, range.device};
        memcpy(end, &region, sizeof region);
        end += sizeof region;
    }
    *data = blob;
    *length = size;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_get_local_md(nixl_capi_agent_t agent, void **data, size_t *length) {
    if (!handle_is(agent, AGENT) || data == NULL || length == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    world_lock();
    const nixl_capi_status_t status =
        agent->has_backend ? write_metadata(agent, KIND_CONNECTION, &agent->regions, data, length)
                           : NIXL_CAPI_ERROR_INVALID_PARAM;
    world_unlock();
    return status;
}

static nixl_capi_status_t write_partial(
    const struct nixl_capi_agent_s *agent, const struct nixl_capi_reg_dlist_s *list, void **data, size_t *length) {
    for (size_t i = 0; i < list->ranges.count; i++) {
        if (ranges_find(&agent->regions, list->ranges.items[i]) == agent->regions.count) {
            return NIXL_CAPI_ERROR_NOT_FOUND;
        }
    }
    const uint32_t kind = list->ranges.count == 0 ? KIND_CONNECTION : KIND_REGIONS;
    return write_metadata(agent, kind, &list->ranges, data, length);
}

nixl_capi_status_t nixl_capi_get_local_partial_md(
    nixl_capi_agent_t agent, nixl_capi_reg_dlist_t list, void **data, size_t *length, nixl_capi_opt_args_t args) {
    if (!handle_is(agent, AGENT) || !handle_is(list, REG_LIST) || data == NULL || length == NULL
        || !options_fit(args)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    world_lock();
    nixl_capi_status_t status = NIXL_CAPI_ERROR_NOT_FOUND;
    if (memory_moves(list->memory) && options_allow(args, agent)) {
        status = write_partial(agent, list, data, length);
    }
    world_unlock();
    return status;
}

struct peer *peer_find(const struct nixl_capi_agent_s *agent, const char *name) {
    struct peer *peer = agent->peers;
    while (peer != NULL && strcmp(peer->name, name) != 0) {
        peer = peer->next;
    }
    return peer;
}

static void peer_free(struct peer *peer) {
    ranges_free(&peer->regions);
    free(peer->name);
    free(peer);
}

void peers_free(nixl_capi_agent_t agent) {
    while (agent->peers != NULL) {
        struct peer *peer = agent->peers;
        agent->peers = peer->next;
        peer_free(peer);
    }
}

/* Knows nothing of the peer but its name; takes over the name. */
static struct peer *peer_add(nixl_capi_agent_t agent, char *name, uint64_t instance) {
    struct peer *peer = calloc(1, sizeof *peer);
    if (peer != NULL) {
        peer->name = name;
        peer->instance = instance;
        peer->generation = world_number();
        peer->next = agent->peers;
        agent->peers = peer;
    }
    return peer;
}

nixl_capi_status_t peer_reach(nixl_capi_agent_t agent, const char *name, nixl_capi_agent_t *receiver) {
    if (strcmp(name, agent->name) == 0) {
        *receiver = agent;
        return NIXL_CAPI_SUCCESS;
    }
    const struct peer *peer = peer_find(agent, name);
    if (peer == NULL || !peer->has_connection) {
        return NIXL_CAPI_ERROR_NOT_FOUND;
    }
    nixl_capi_agent_t found = world_find(name);
    if (found == NULL || found->instance != peer->instance || found->epoch != peer->epoch) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    *receiver = found;
    return NIXL_CAPI_SUCCESS;
}

/* Adds what well-formed metadata says. What is already known stays, as with NIXL. */
static nixl_capi_status_t learn(struct peer *peer, const struct header *header, const char *regions) {
    for (uint32_t i = 0; i < header->region_count; i++) {
        struct region region;
        memcpy(&region, regions + i * sizeof region, sizeof region);
        const struct range range = {
            .memory = (nixl_capi_mem_type_t)region.memory,
            .address = (uintptr_t)region.address,
            .length = region.length,
            .device = region.device,
        };
        if (ranges_find(&peer->regions, range) == peer->regions.count && !ranges_add(&peer->regions, range)) {
            return NIXL_CAPI_ERROR_BACKEND;
        }
    }
    if (header->kind == KIND_CONNECTION) {
        const struct nixl_capi_agent_s *living = world_find(peer->name);
        peer->has_connection = true;
        peer->epoch = living != NULL && living->instance == peer->instance ? living->epoch : 0;
    }
    return NIXL_CAPI_SUCCESS;
}

/* The name comes as a copy, which stays the caller's unless a peer is added. */
static nixl_capi_status_t load(
    nixl_capi_agent_t agent, const struct header *header, char **name, const char *regions) {
    if (strcmp(*name, agent->name) == 0) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    if (!agent->has_backend) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    struct peer *peer = peer_find(agent, *name);
    if (peer == NULL) {
        peer = peer_add(agent, *name, header->instance);
        if (peer == NULL) {
            return NIXL_CAPI_ERROR_BACKEND;
        }
        *name = NULL;
    }
    /* another agent with the name of a known one: NIXL too wants the known one invalidated first */
    return peer->instance == header->instance ? learn(peer, header, regions) : NIXL_CAPI_ERROR_BACKEND;
}

nixl_capi_status_t nixl_capi_load_remote_md(
    nixl_capi_agent_t agent, const void *data, size_t length, char **agent_name) {
    if (!handle_is(agent, AGENT) || data == NULL || length == 0 || agent_name == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    struct header header;
    if (length < sizeof header) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    memcpy(&header, data, sizeof header);
    const size_t size =
        sizeof header + header.name_length + (size_t)header.region_count * sizeof(struct region);
    if (memcmp(header.magic, MAGIC, sizeof MAGIC) != 0 || header.abi != KVASIR_LOOPBACK_ABI
        || header.kind > KIND_CONNECTION || header.name_length == 0 || length != size) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    const char *name = (const char *)data + sizeof header;
    char *kept_name = strndup(name, header.name_length);
    char *given_name = strndup(name, header.name_length);
    nixl_capi_status_t status = NIXL_CAPI_ERROR_BACKEND;
    if (kept_name != NULL && given_name != NULL) {
        world_lock();
        status = load(agent, &header, &kept_name, name + header.name_length);
        world_unlock();
    }
    free(kept_name);
    if (status != NIXL_CAPI_SUCCESS) {
        free(given_name);
        return status;
    }
    *agent_name = given_name;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_invalidate_remote_md(nixl_capi_agent_t agent, const char *remote_agent) {
    if (!handle_is(agent, AGENT) || remote_agent == NULL || strcmp(remote_agent, agent->name) == 0) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    world_lock();
    struct peer **link = &agent->peers;
    while (*link != NULL && strcmp((*link)->name, remote_agent) != 0) {
        link = &(*link)->next;
    }
    struct peer *peer = *link;
    if (peer != NULL) {
        *link = peer->next;
        peer_free(peer);
    }
    world_unlock();
    return peer == NULL ? NIXL_CAPI_ERROR_NOT_FOUND : NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_check_remote_md(
    nixl_capi_agent_t agent, const char *remote_agent, nixl_capi_xfer_dlist_t list) {
    if (!handle_is(agent, AGENT) || remote_agent == NULL || (list != NULL && !handle_is(list, XFER_LIST))) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    world_lock();
    const struct peer *peer = peer_find(agent, remote_agent);
    bool known = peer != NULL;
    for (size_t i = 0; known && list != NULL && i < list->ranges.count; i++) {
        known = memory_moves(list->memory) && ranges_around(&peer->regions, list->ranges.items[i]) != NULL;
    }
    world_unlock();
    return known ? NIXL_CAPI_SUCCESS : NIXL_CAPI_ERROR_NOT_FOUND;
}

nixl_capi_status_t nixl_capi_agent_make_connection(
    nixl_capi_agent_t agent, const char *remote_agent, nixl_capi_opt_args_t args) {
    if (!handle_is(agent, AGENT) || remote_agent == NULL || !options_fit(args)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    world_lock();
    nixl_capi_agent_t receiver = NULL;
    const nixl_capi_status_t status =
        options_allow(args, agent) ? peer_reach(agent, remote_agent, &receiver) : NIXL_CAPI_ERROR_BACKEND;
    world_unlock();
    return status;
}
