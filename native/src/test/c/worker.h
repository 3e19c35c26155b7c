/* What most tests need: agents with memory that know each other, and requests between them. */
#ifndef KVASIR_WORKER_H
#define KVASIR_WORKER_H

#include "check.h"

#define WORKER_BYTES 256

struct worker {
    const char *name;
    nixl_capi_agent_t agent;
    nixl_capi_backend_t backend;
    nixl_capi_reg_dlist_t registered;
    char memory[WORKER_BYTES];
};

static inline nixl_capi_reg_dlist_t reg_list_of(nixl_capi_mem_type_t memory, const void *address, size_t length) {
    nixl_capi_reg_dlist_t list = NULL;
    OK(nixl_capi_create_reg_dlist(memory, &list));
    OK(nixl_capi_reg_dlist_add_desc(list, (uintptr_t)address, length, 0, NULL, 0));
    return list;
}

static inline nixl_capi_reg_dlist_t reg_list(const void *address, size_t length) {
    return reg_list_of(NIXL_CAPI_MEM_DRAM, address, length);
}

/* An agent with telemetry and a backend, whose memory is filled and registered. */
static inline void worker_start(struct worker *worker, const char *name, char fill) {
    const nixl_capi_agent_config_t config = {.enable_prog_thread = true, .capture_telemetry = true};
    *worker = (struct worker){.name = name};
    memset(worker->memory, fill, WORKER_BYTES);
    OK(nixl_capi_create_configured_agent(name, &config, &worker->agent));
    nixl_capi_params_t params = NULL;
    OK(nixl_capi_create_params(&params));
    OK(nixl_capi_create_backend(worker->agent, "LOOPBACK", params, &worker->backend));
    OK(nixl_capi_destroy_params(params));
    worker->registered = reg_list(worker->memory, WORKER_BYTES);
    OK(nixl_capi_register_mem(worker->agent, worker->registered, NULL));
}

static inline void worker_stop(struct worker *worker) {
    OK(nixl_capi_destroy_reg_dlist(worker->registered));
    OK(nixl_capi_destroy_backend(worker->backend));
    OK(nixl_capi_destroy_agent(worker->agent));
}

/* Gives the metadata of one to the other; returns what loading it said. */
static inline nixl_capi_status_t introduce(const struct worker *known, const struct worker *to) {
    void *metadata = NULL;
    size_t length = 0;
    OK(nixl_capi_get_local_md(known->agent, &metadata, &length));
    char *name = NULL;
    const nixl_capi_status_t status = nixl_capi_load_remote_md(to->agent, metadata, length, &name);
    CHECK(status != NIXL_CAPI_SUCCESS || strcmp(name, known->name) == 0);
    free(name);
    free(metadata);
    return status;
}

/* Two workers of which the first knows the second: all of a are 'a', all of b are 'b'. */
struct pair {
    struct worker a;
    struct worker b;
};

static inline void pair_start(struct pair *pair) {
    worker_start(&pair->a, "a", 'a');
    worker_start(&pair->b, "b", 'b');
    OK(introduce(&pair->b, &pair->a));
}

static inline void pair_stop(struct pair *pair) {
    worker_stop(&pair->a);
    worker_stop(&pair->b);
}

static inline nixl_capi_xfer_dlist_t xfer_list_of(nixl_capi_mem_type_t memory, const void *address, size_t length) {
    nixl_capi_xfer_dlist_t list = NULL;
    OK(nixl_capi_create_xfer_dlist(memory, &list));
    OK(nixl_capi_xfer_dlist_add_desc(list, (uintptr_t)address, length, 0));
    return list;
}

static inline nixl_capi_xfer_dlist_t xfer_list(const void *address, size_t length) {
    return xfer_list_of(NIXL_CAPI_MEM_DRAM, address, length);
}

/* A prepared list of the memory cut into pieces of equal length. */
static inline nixl_capi_xfer_dlist_handle_t prepare(
    const struct worker *by, const char *name, const char *memory, size_t piece, size_t count) {
    nixl_capi_xfer_dlist_t list = NULL;
    OK(nixl_capi_create_xfer_dlist(NIXL_CAPI_MEM_DRAM, &list));
    for (size_t i = 0; i < count; i++) {
        OK(nixl_capi_xfer_dlist_add_desc(list, (uintptr_t)(memory + i * piece), piece, 0));
    }
    nixl_capi_xfer_dlist_handle_t handle = NULL;
    OK(nixl_capi_prep_xfer_dlist(by->agent, name, list, &handle, NULL));
    OK(nixl_capi_destroy_xfer_dlist(list));
    return handle;
}

/* A request for the first bytes of both memories. */
static inline nixl_capi_xfer_req_t request(
    const struct worker *by, nixl_capi_xfer_op_t operation, const struct worker *with, size_t length,
    nixl_capi_opt_args_t args) {
    nixl_capi_xfer_dlist_t local = xfer_list(by->memory, length);
    nixl_capi_xfer_dlist_t remote = xfer_list(with->memory, length);
    nixl_capi_xfer_req_t made = NULL;
    OK(nixl_capi_create_xfer_req(by->agent, operation, local, remote, with->name, &made, args));
    OK(nixl_capi_destroy_xfer_dlist(local));
    OK(nixl_capi_destroy_xfer_dlist(remote));
    return made;
}

static inline nixl_capi_xfer_req_t read_request(const struct pair *pair) {
    return request(&pair->a, NIXL_CAPI_XFER_OP_READ, &pair->b, WORKER_BYTES, NULL);
}

static inline void request_end(const struct worker *by, nixl_capi_xfer_req_t request) {
    OK(nixl_capi_release_xfer_req(by->agent, request));
    OK(nixl_capi_destroy_xfer_req(request));
}

static inline nixl_capi_opt_args_t notification(const char *message) {
    nixl_capi_opt_args_t args = NULL;
    OK(nixl_capi_create_opt_args(&args));
    OK(nixl_capi_opt_args_set_notif_msg(args, message, strlen(message)));
    OK(nixl_capi_opt_args_set_has_notif(args, true));
    return args;
}

/* Whether all bytes of the memory from one place up to another are this one. */
static inline bool filled(const char *memory, size_t from, size_t to, char with) {
    for (size_t i = from; i < to; i++) {
        if (memory[i] != with) {
            return false;
        }
    }
    return true;
}

/* Drains the inbox: it must hold exactly these messages of this sender, in this order, and no other. */
static inline void expect_messages(
    const struct worker *at, const char *sender, const char *const *messages, size_t count) {
    nixl_capi_notif_map_t map = NULL;
    OK(nixl_capi_create_notif_map(&map));
    OK(nixl_capi_get_notifs(at->agent, map, NULL));
    size_t senders = 0;
    OK(nixl_capi_notif_map_size(map, &senders));
    CHECK(senders == (count == 0 ? 0 : 1));
    if (count > 0) {
        size_t size = 0;
        OK(nixl_capi_notif_map_get_notifs_size(map, sender, &size));
        CHECK(size == count);
        for (size_t i = 0; i < count; i++) {
            const void *data = NULL;
            size_t length = 0;
            OK(nixl_capi_notif_map_get_notif(map, sender, i, &data, &length));
            CHECK(length == strlen(messages[i]) && memcmp(data, messages[i], length) == 0);
        }
    }
    OK(nixl_capi_destroy_notif_map(map));
}

static inline void expect_message(const struct worker *at, const char *sender, const char *message) {
    expect_messages(at, sender, &message, 1);
}

static inline void expect_silence(const struct worker *at) { expect_messages(at, NULL, NULL, 0); }

static inline uint64_t counter(const char *agent, int place) {
    uint64_t words[KVASIR_LOOPBACK_COUNTERS] = {0};
    OK(kvasir_loopback_counters(agent, words));
    return words[place];
}

#endif
