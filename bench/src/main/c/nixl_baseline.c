/*
 * One side of io.kvasir.bench.transfer.CallCosts and ThroughputSweep: the calls and transfers that they make through
 * Java, made by C in the same process, on the same memory, with the same peer, as rounds that Java starts in turn with
 * its own. A library; each round returns its nanoseconds. One thread. What fails ends the process with a line.
 */
#define _GNU_SOURCE
#include "nixl_capi_subset.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FUNCTIONS(F)                                                                                           \
    F(create_configured_agent)                                                                                 \
    F(create_backend)                                                                                          \
    F(create_params)                                                                                           \
    F(destroy_params)                                                                                          \
    F(create_opt_args)                                                                                         \
    F(opt_args_set_notif_msg)                                                                                  \
    F(opt_args_set_has_notif)                                                                                  \
    F(create_reg_dlist)                                                                                        \
    F(reg_dlist_add_desc)                                                                                      \
    F(destroy_reg_dlist)                                                                                       \
    F(register_mem)                                                                                            \
    F(load_remote_md)                                                                                          \
    F(create_xfer_dlist)                                                                                       \
    F(xfer_dlist_add_desc)                                                                                     \
    F(destroy_xfer_dlist)                                                                                      \
    F(prep_xfer_dlist)                                                                                         \
    F(release_xfer_dlist_handle)                                                                               \
    F(make_xfer_req)                                                                                           \
    F(post_xfer_req)                                                                                           \
    F(get_xfer_status)                                                                                         \
    F(release_xfer_req)                                                                                        \
    F(destroy_xfer_req)                                                                                        \
    F(create_notif_map)                                                                                        \
    F(get_notifs)                                                                                              \
    F(notif_map_size)

#define DECLARE(name) static __typeof__(nixl_capi_##name) *name;
FUNCTIONS(DECLARE)

enum {
    BATCH = 256,   /* requests of a round */
    REPEATS = 4096 /* of a call that needs no request of its own */
};

static nixl_capi_agent_t agent;
static char *peer_name;
static uintptr_t own_base, peer_base;
static size_t piece_bytes;
static nixl_capi_xfer_dlist_handle_t own_list, peer_list;
static nixl_capi_opt_args_t notified;
static nixl_capi_notif_map_t notifications;
static nixl_capi_xfer_req_t requests[BATCH];
static const int *places;

static void fail(const char *what, long status) {
    fprintf(stderr, "nixl_baseline: %s: %ld\n", what, status);
    exit(1);
}

static void check(const char *what, nixl_capi_status_t status) {
    if (status != NIXL_CAPI_SUCCESS) {
        fail(what, status);
    }
}

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void load(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fprintf(stderr, "nixl_baseline: %s\n", dlerror());
        exit(1);
    }
#define FIND(name)                                                                                             \
    *(void **)&name = dlsym(library, "nixl_capi_" #name);                                                      \
    if (name == NULL) {                                                                                        \
        fail("no function " #name, 0);                                                                         \
    }
    FUNCTIONS(FIND)
}

static nixl_capi_xfer_dlist_handle_t prepare(const char *whose, uintptr_t base, int count) {
    nixl_capi_xfer_dlist_t list;
    nixl_capi_xfer_dlist_handle_t prepared;
    check("list", create_xfer_dlist(NIXL_CAPI_MEM_DRAM, &list));
    for (int i = 0; i < count; i++) {
        check("descriptor", xfer_dlist_add_desc(list, base + (size_t)i * piece_bytes, piece_bytes, 0));
    }
    check("preparing", prep_xfer_dlist(agent, whose, list, &prepared, NULL));
    check("destroying", destroy_xfer_dlist(list));
    return prepared;
}

static nixl_capi_xfer_req_t make(int count, nixl_capi_opt_args_t options) {
    nixl_capi_xfer_req_t request;
    check(
        "request", make_xfer_req(
                       agent, NIXL_CAPI_XFER_OP_READ, own_list, places, (size_t)count, peer_list, places,
                       (size_t)count, &request, options));
    return request;
}

static void release(nixl_capi_xfer_req_t request) {
    check("release", release_xfer_req(agent, request));
    check("destroying", destroy_xfer_req(request));
}

static void post_and_wait(nixl_capi_xfer_req_t request) {
    nixl_capi_status_t status = post_xfer_req(agent, request, NULL);
    while (status == NIXL_CAPI_IN_PROG) {
        status = get_xfer_status(agent, request);
    }
    check("transfer", status);
}

uint64_t baseline_make(int count) {
    const uint64_t start = now_ns();
    for (int i = 0; i < BATCH; i++) {
        requests[i] = make(count, NULL);
    }
    const uint64_t took = now_ns() - start;
    for (int i = 0; i < BATCH; i++) {
        release(requests[i]);
    }
    return took;
}

uint64_t baseline_make_notified(int count) {
    static const char message[16] = "a notification.";
    const uint64_t start = now_ns();
    for (int i = 0; i < BATCH; i++) {
        check("message", opt_args_set_notif_msg(notified, message, sizeof message));
        check("notification", opt_args_set_has_notif(notified, true));
        requests[i] = make(count, notified);
    }
    const uint64_t took = now_ns() - start;
    for (int i = 0; i < BATCH; i++) {
        release(requests[i]);
    }
    return took;
}

uint64_t baseline_release(int count) {
    for (int i = 0; i < BATCH; i++) {
        requests[i] = make(count, NULL);
    }
    const uint64_t start = now_ns();
    for (int i = 0; i < BATCH; i++) {
        release(requests[i]);
    }
    return now_ns() - start;
}

uint64_t baseline_post(int count) {
    nixl_capi_status_t status[BATCH];
    for (int i = 0; i < BATCH; i++) {
        requests[i] = make(count, NULL);
    }
    const uint64_t start = now_ns();
    for (int i = 0; i < BATCH; i++) {
        status[i] = post_xfer_req(agent, requests[i], NULL);
    }
    const uint64_t took = now_ns() - start;
    for (int i = 0; i < BATCH; i++) {
        while (status[i] == NIXL_CAPI_IN_PROG) {
            status[i] = get_xfer_status(agent, requests[i]);
        }
        check("transfer", status[i]);
        release(requests[i]);
    }
    return took;
}

uint64_t baseline_status(int expected) {
    const uint64_t start = now_ns();
    for (int i = 0; i < REPEATS; i++) {
        if (get_xfer_status(agent, requests[0]) != (nixl_capi_status_t)expected) {
            fail("status", expected);
        }
    }
    return now_ns() - start;
}

uint64_t baseline_notifications(int expected) {
    const uint64_t start = now_ns();
    for (int i = 0; i < REPEATS; i++) {
        size_t size;
        check("notifications", get_notifs(agent, notifications, NULL));
        check("size", notif_map_size(notifications, &size));
        if (size != (size_t)expected) {
            fail("notifications", (long)size);
        }
    }
    return now_ns() - start;
}

uint64_t baseline_prepare(int count) {
    const uint64_t start = now_ns();
    const nixl_capi_xfer_dlist_handle_t list = prepare(peer_name, peer_base, count);
    const uint64_t took = now_ns() - start;
    check("release of a list", release_xfer_dlist_handle(agent, list));
    return took;
}

uint64_t baseline_transfer(int count) {
    const uint64_t start = now_ns();
    const nixl_capi_xfer_req_t request = make(count, NULL);
    post_and_wait(request);
    const uint64_t took = now_ns() - start;
    release(request);
    return took;
}

/* Posts the request that baseline_status asks about, to its end unless it hangs. */
void baseline_hold(bool hangs) {
    requests[0] = make(1, NULL);
    if (hangs) {
        post_xfer_req(agent, requests[0], NULL);
    } else {
        post_and_wait(requests[0]);
    }
}

void baseline_drop(void) {
    release(requests[0]);
}

/* Pieces that follow each other at both ends; the places are the caller's and stay. */
void baseline_lists(int count, size_t bytes, const int *chosen) {
    if (own_list != NULL) {
        check("release of a list", release_xfer_dlist_handle(agent, own_list));
        check("release of a list", release_xfer_dlist_handle(agent, peer_list));
    }
    piece_bytes = bytes;
    places = chosen;
    own_list = prepare("", own_base, count);
    peer_list = prepare(peer_name, peer_base, count);
}

/* An agent as Java's default one is, own memory of so many bytes at own, and a peer whose memory is at peer. */
void baseline_open(
    const char *library, const char *backend_name, uintptr_t own, size_t bytes, uintptr_t peer, const void *metadata,
    size_t length) {
    load(library);
    const nixl_capi_agent_config_t config = {
        .enable_prog_thread = true, .thread_sync = NIXL_CAPI_THREAD_SYNC_STRICT, .pthr_delay_us = 100};
    char name[32];
    snprintf(name, sizeof name, "baseline-%ld", (long)now_ns());
    check("agent", create_configured_agent(name, &config, &agent));
    nixl_capi_params_t params;
    nixl_capi_backend_t backend;
    check("parameters", create_params(&params));
    check("backend", create_backend(agent, backend_name, params, &backend));
    destroy_params(params);
    nixl_capi_reg_dlist_t list;
    check("list", create_reg_dlist(NIXL_CAPI_MEM_DRAM, &list));
    check("descriptor", reg_dlist_add_desc(list, own, bytes, 0, NULL, 0));
    check("registration", register_mem(agent, list, NULL));
    destroy_reg_dlist(list);
    own_base = own;
    peer_base = peer;
    check("peer's metadata", load_remote_md(agent, metadata, length, &peer_name));
    check("options", create_opt_args(&notified));
    check("notifications", create_notif_map(&notifications));
}
