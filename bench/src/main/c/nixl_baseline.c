/*
 * What io.kvasir.bench.transfer.CallCosts and ThroughputSweep do, in C: the same calls on the same memory in
 * the same order, as often, warmed up as long. Prints the same lines.
 *
 *   nixl_baseline LIBRARY calls WARM_UP_MS ROUNDS [BASE METADATA]
 *   nixl_baseline LIBRARY sweep BYTES_PER_SIZE MOST_BYTES [BASE METADATA]
 *
 * LIBRARY is libnixl_capi.so or libkvasir_loopback.so. BASE (decimal) and METADATA (hexadecimal digits) tell of
 * memory in another process; without them a second agent of this process stands for it.
 *
 *   call  NAME DOWNCALLS NS BYTES      first quartile over the rounds of the mean of a round; BYTES allocated, 0 here
 *   sweep PIECES PIECE_BYTES NS BYTES  first quartile of the times from making a request to its end
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
    F(get_local_md)                                                                                            \
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
    PAGE = 4096,
    CALL_PIECES = 1024,   /* of the lists that requests are made of */
    CALL_PIECE_BYTES = 64,
    BATCH = 256,          /* requests of a round */
    REPEATS = 4096,       /* of a call that needs no request of its own */
    SWEEP_WARM_UP_MS = 1000 /* of the smallest transfers, before the first size */
};

typedef struct {
    nixl_capi_agent_t agent;
    char *memory;
} end_t;

static nixl_capi_agent_t agent;
static char *peer_name;
static uintptr_t own_base, peer_base;
static nixl_capi_xfer_dlist_handle_t own_list, peer_list;
static nixl_capi_opt_args_t notified;
static nixl_capi_notif_map_t notifications;
static nixl_capi_xfer_req_t requests[BATCH];
static int places[CALL_PIECES];
static uint64_t warm_up_ns;
static int rounds;
static bool measuring; /* false while all calls are warmed up */
static const char *plugin = "UCX";
static nixl_capi_status_t (*stick)(const char *, bool); /* the loopback library's; else NULL */

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
    setenv("UCX_ERROR_SIGNALS", "", 1); /* as the Java bindings set them */
    setenv("UCX_DEBUG_SIGNO", "0", 1);
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
    *(void **)&stick = dlsym(library, "kvasir_loopback_stick");
    if (stick != NULL) {
        plugin = "LOOPBACK";
    }
}

/* A page-aligned address of so many bytes, all of them written. */
static char *allocate(size_t bytes) {
    char *memory = malloc(bytes + PAGE);
    if (memory == NULL) {
        fail("no memory", (long)bytes);
    }
    memory += -(uintptr_t)memory & (PAGE - 1);
    memset(memory, 0, bytes);
    return memory;
}

static end_t open_end(const char *name, size_t bytes) {
    const nixl_capi_agent_config_t config = {
        .enable_prog_thread = true, .thread_sync = NIXL_CAPI_THREAD_SYNC_STRICT, .pthr_delay_us = 100};
    end_t end;
    check("agent", create_configured_agent(name, &config, &end.agent));
    nixl_capi_params_t params;
    nixl_capi_backend_t backend;
    check("parameters", create_params(&params));
    check("backend", create_backend(end.agent, plugin, params, &backend));
    destroy_params(params);
    end.memory = allocate(bytes);
    nixl_capi_reg_dlist_t list;
    check("list", create_reg_dlist(NIXL_CAPI_MEM_DRAM, &list));
    check("descriptor", reg_dlist_add_desc(list, (uintptr_t)end.memory, bytes, 0, NULL, 0));
    check("registration", register_mem(end.agent, list, NULL));
    destroy_reg_dlist(list);
    return end;
}

/* Own memory, and a peer's: another process's, or that of a second agent here. */
static void open_both(size_t bytes, const char *base, const char *hex) {
    char name[32];
    snprintf(name, sizeof name, "baseline-%ld", (long)now_ns());
    const end_t own = open_end(name, bytes);
    agent = own.agent;
    own_base = (uintptr_t)own.memory;
    void *metadata;
    size_t length;
    if (base == NULL) {
        const end_t other = open_end("baseline-peer", bytes);
        peer_base = (uintptr_t)other.memory;
        check("metadata", get_local_md(other.agent, &metadata, &length));
    } else {
        peer_base = strtoull(base, NULL, 10);
        length = strlen(hex) / 2;
        unsigned char *decoded = malloc(length);
        for (size_t i = 0; i < length; i++) {
            unsigned byte;
            if (decoded == NULL || sscanf(hex + 2 * i, "%2x", &byte) != 1) {
                fail("no metadata", (long)i);
            }
            decoded[i] = (unsigned char)byte;
        }
        metadata = decoded;
    }
    check("peer's metadata", load_remote_md(agent, metadata, length, &peer_name));
    free(metadata);
}

static nixl_capi_xfer_dlist_handle_t prepare(const char *whose, uintptr_t base, int count, size_t bytes) {
    nixl_capi_xfer_dlist_t list;
    nixl_capi_xfer_dlist_handle_t prepared;
    check("list", create_xfer_dlist(NIXL_CAPI_MEM_DRAM, &list));
    for (int i = 0; i < count; i++) {
        check("descriptor", xfer_dlist_add_desc(list, base + (size_t)i * bytes, bytes, 0));
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

static int by_value(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The first quartile: what other programs on the machine disturbed is above it. */
static double quartile(double *values, int count) {
    qsort(values, (size_t)count, sizeof *values, by_value);
    return values[count / 4];
}

/* A round returns the nanoseconds of all its calls. */
typedef uint64_t round_t(int argument);

static void measure(const char *name, int downcalls, int calls, round_t *round, int argument) {
    const uint64_t start = now_ns();
    while (now_ns() - start < warm_up_ns) {
        round(argument);
    }
    if (!measuring) {
        return;
    }
    double *times = malloc((size_t)rounds * sizeof *times);
    if (times == NULL) {
        fail("no memory for the rounds", rounds);
    }
    for (int i = 0; i < rounds; i++) {
        times[i] = (double)round(argument) / calls;
    }
    printf("call %s %d %.2f 0\n", name, downcalls, quartile(times, rounds));
    free(times);
}

static uint64_t make_round(int count) {
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

static uint64_t notified_round(int count) {
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

static uint64_t release_round(int count) {
    for (int i = 0; i < BATCH; i++) {
        requests[i] = make(count, NULL);
    }
    const uint64_t start = now_ns();
    for (int i = 0; i < BATCH; i++) {
        release(requests[i]);
    }
    return now_ns() - start;
}

static uint64_t post_round(int count) {
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

static uint64_t status_round(int expected) {
    const uint64_t start = now_ns();
    for (int i = 0; i < REPEATS; i++) {
        if (get_xfer_status(agent, requests[0]) != (nixl_capi_status_t)expected) {
            fail("status", expected);
        }
    }
    return now_ns() - start;
}

static uint64_t notifications_round(int expected) {
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

static uint64_t prepare_round(int count) {
    const uint64_t start = now_ns();
    const nixl_capi_xfer_dlist_handle_t list = prepare(peer_name, peer_base, count, CALL_PIECE_BYTES);
    const uint64_t took = now_ns() - start;
    check("release of a list", release_xfer_dlist_handle(agent, list));
    return took;
}

static void measure_calls(void) {
    measure("prepare_a_piece", 1, CALL_PIECES, prepare_round, CALL_PIECES);
    measure("make_1", 1, BATCH, make_round, 1);
    measure("make_16", 1, BATCH, make_round, 16);
    measure("make_64", 1, BATCH, make_round, 64);
    measure("make_256", 1, BATCH, make_round, 256);
    measure("make_1_notified", 3, BATCH, notified_round, 1);
    measure("release", 2, BATCH, release_round, 1);
    measure("post_64_B", 1, BATCH, post_round, 1);
    measure("notifications_none", 2, REPEATS, notifications_round, 0);
    requests[0] = make(1, NULL);
    post_and_wait(requests[0]);
    measure("status_done", 1, REPEATS, status_round, NIXL_CAPI_SUCCESS);
    release(requests[0]);
    if (stick != NULL) {
        check("stick", stick(NULL, true));
        requests[0] = make(1, NULL);
        post_xfer_req(agent, requests[0], NULL);
        measure("status_running", 1, REPEATS, status_round, NIXL_CAPI_IN_PROG);
        check("stick", stick(NULL, false));
        release(requests[0]);
    }
}

static void calls(const char *base, const char *hex) {
    open_both(CALL_PIECES * CALL_PIECE_BYTES, base, hex);
    own_list = prepare("", own_base, CALL_PIECES, CALL_PIECE_BYTES);
    peer_list = prepare(peer_name, peer_base, CALL_PIECES, CALL_PIECE_BYTES);
    check("options", create_opt_args(&notified));
    check("notifications", create_notif_map(&notifications));
    for (int i = 0; i < CALL_PIECES / 2; i++) {
        places[i] = 2 * i; /* no neighbours: nothing to merge */
    }
    measure_calls();
    measuring = true;
    measure_calls();
}

static uint64_t transfer(int count) {
    const uint64_t start = now_ns();
    const nixl_capi_xfer_req_t request = make(count, NULL);
    post_and_wait(request);
    const uint64_t took = now_ns() - start;
    release(request);
    return took;
}

static void sweep_size(int count, size_t bytes, size_t bytes_per_size, uint64_t at_first_ns) {
    own_list = prepare("", own_base, count, bytes);
    peer_list = prepare(peer_name, peer_base, count, bytes);
    for (int i = 0; i < count; i++) { /* every second one, then the others: hardly any neighbours */
        const int half = (count + 1) / 2;
        places[i] = i < half ? 2 * i : 2 * (i - half) + 1;
    }
    size_t wanted = bytes_per_size / (bytes * (size_t)count);
    wanted = wanted < 15 ? 15 : wanted > 4000 ? 4000 : wanted;
    const uint64_t start = now_ns();
    for (size_t i = 0; i < wanted / 2 || now_ns() - start < at_first_ns; i++) {
        transfer(count);
    }
    double times[4000];
    for (size_t i = 0; i < wanted; i++) {
        times[i] = (double)transfer(count);
    }
    printf("sweep %d %zu %.0f 0\n", count, bytes, quartile(times, (int)wanted));
    check("release of a list", release_xfer_dlist_handle(agent, own_list));
    check("release of a list", release_xfer_dlist_handle(agent, peer_list));
}

static void sweep(size_t bytes_per_size, size_t most_bytes, const char *base, const char *hex) {
    static const int counts[] = {1, 64, 256, 1024};
    static const size_t lengths[] = {4 << 10, 16 << 10, 64 << 10, 128 << 10};
    open_both(most_bytes, base, hex);
    uint64_t at_first_ns = SWEEP_WARM_UP_MS * UINT64_C(1000000);
    for (int length = 0; length < 4; length++) {
        for (int count = 0; count < 4; count++) {
            if (lengths[length] * (size_t)counts[count] <= most_bytes) {
                sweep_size(counts[count], lengths[length], bytes_per_size, at_first_ns);
                at_first_ns = 0;
            }
        }
    }
}

int main(int argc, char **argv) {
    if (argc != 5 && argc != 7) {
        fprintf(stderr, "nixl_baseline: see the head of its source for the arguments\n");
        return 2;
    }
    const char *base = argc == 7 ? argv[5] : NULL;
    const char *hex = argc == 7 ? argv[6] : NULL;
    load(argv[1]);
    if (strcmp(argv[2], "calls") == 0) {
        warm_up_ns = strtoull(argv[3], NULL, 10) * 1000000u;
        rounds = atoi(argv[4]);
        calls(base, hex);
    } else {
        sweep(strtoull(argv[3], NULL, 10), strtoull(argv[4], NULL, 10), base, hex);
    }
    fflush(stdout);
    _Exit(0); /* agents end with the process */
}
