/*
 * Does the loopback library answer as NIXL does? This program asks the library it is linked with, by its
 * plugin named in the argument, and prints each question with its answer: built with either library, it must
 * print the same.
 */
#include "check.h"

#include <time.h>

#define ASK(call) (void)printf("%3d %s\n", (int)(call), #call)
#define BYTES 4096
#define POLLS 20000

static char memory_a[BYTES];
static char memory_b[BYTES];
static const char *plugin;

static nixl_capi_agent_t start(const char *name, nixl_capi_backend_t *backend) {
    const nixl_capi_agent_config_t config = {
        .enable_prog_thread = true, .thread_sync = NIXL_CAPI_THREAD_SYNC_STRICT, .pthr_delay_us = 100,
        .capture_telemetry = true};
    nixl_capi_agent_t agent = NULL;
    OK(nixl_capi_create_configured_agent(name, &config, &agent));
    nixl_capi_params_t params = NULL;
    OK(nixl_capi_create_params(&params));
    OK(nixl_capi_create_backend(agent, plugin, params, backend));
    OK(nixl_capi_destroy_params(params));
    return agent;
}

static nixl_capi_reg_dlist_t reg(const char *from, size_t length) {
    nixl_capi_reg_dlist_t list = NULL;
    OK(nixl_capi_create_reg_dlist(NIXL_CAPI_MEM_DRAM, &list));
    if (length > 0) {
        OK(nixl_capi_reg_dlist_add_desc(list, (uintptr_t)from, length, 0, NULL, 0));
    }
    return list;
}

static nixl_capi_xfer_dlist_t xfer(const char *from, size_t length) {
    nixl_capi_xfer_dlist_t list = NULL;
    OK(nixl_capi_create_xfer_dlist(NIXL_CAPI_MEM_DRAM, &list));
    if (length > 0) {
        OK(nixl_capi_xfer_dlist_add_desc(list, (uintptr_t)from, length, 0));
    }
    return list;
}

static nixl_capi_status_t load(nixl_capi_agent_t of, nixl_capi_agent_t to) {
    void *data = NULL;
    size_t length = 0;
    OK(nixl_capi_get_local_md(of, &data, &length));
    char *name = NULL;
    const nixl_capi_status_t status = nixl_capi_load_remote_md(to, data, length, &name);
    free(name);
    free(data);
    return status;
}

static void pause_a_while(void) {
    const struct timespec pause = {.tv_nsec = 100000};
    (void)nanosleep(&pause, NULL);
}

static nixl_capi_status_t run(nixl_capi_agent_t agent, nixl_capi_xfer_req_t request, nixl_capi_opt_args_t args) {
    nixl_capi_status_t status = nixl_capi_post_xfer_req(agent, request, args);
    for (int i = 0; status == NIXL_CAPI_IN_PROG && i < POLLS; i++) {
        pause_a_while();
        status = nixl_capi_get_xfer_status(agent, request);
    }
    return status;
}

/* How many messages of this sender arrive: waits for one if any is expected, then takes what there is. */
static int messages(nixl_capi_agent_t at, const char *sender, bool expected) {
    nixl_capi_notif_map_t map = NULL;
    OK(nixl_capi_create_notif_map(&map));
    size_t size = 0;
    for (int i = 0; size == 0 && i < (expected ? POLLS : 100); i++) {
        OK(nixl_capi_get_notifs(at, map, NULL));
        if (nixl_capi_notif_map_get_notifs_size(map, sender, &size) != NIXL_CAPI_SUCCESS) {
            size = 0;
            pause_a_while();
        }
    }
    OK(nixl_capi_destroy_notif_map(map));
    return (int)size;
}

static void agents_without_a_backend(void) {
    nixl_capi_agent_t bare = NULL;
    OK(nixl_capi_create_agent("bare", &bare));
    nixl_capi_reg_dlist_t list = reg(memory_a, BYTES);
    nixl_capi_notif_map_t map = NULL;
    OK(nixl_capi_create_notif_map(&map));
    void *data = NULL;
    size_t length = 0;
    ASK(nixl_capi_register_mem(bare, list, NULL));
    ASK(nixl_capi_deregister_mem(bare, list, NULL));
    ASK(nixl_capi_get_local_md(bare, &data, &length));
    ASK(nixl_capi_get_notifs(bare, map, NULL));
    ASK(nixl_capi_gen_notif(bare, "nobody", "x", 1, NULL));
    OK(nixl_capi_destroy_notif_map(map));
    OK(nixl_capi_destroy_reg_dlist(list));
    OK(nixl_capi_destroy_agent(bare));
    nixl_capi_agent_t unnamed = NULL;
    ASK(nixl_capi_create_agent("", &unnamed));
}

static void registration(nixl_capi_agent_t a) {
    nixl_capi_reg_dlist_t none = reg(NULL, 0);
    nixl_capi_reg_dlist_t all = reg(memory_a, BYTES);
    nixl_capi_reg_dlist_t half = reg(memory_a, BYTES / 2);
    ASK(nixl_capi_register_mem(a, none, NULL));
    ASK(nixl_capi_deregister_mem(a, none, NULL));
    ASK(nixl_capi_deregister_mem(a, all, NULL));
    ASK(nixl_capi_register_mem(a, all, NULL));
    ASK(nixl_capi_deregister_mem(a, half, NULL));
    ASK(nixl_capi_deregister_mem(a, all, NULL));
    ASK(nixl_capi_register_mem(a, all, NULL));
    ASK(nixl_capi_deregister_mem(a, none, NULL));
    ASK(nixl_capi_reg_dlist_rem_desc(half, 7));
    OK(nixl_capi_destroy_reg_dlist(none));
    OK(nixl_capi_destroy_reg_dlist(all));
    OK(nixl_capi_destroy_reg_dlist(half));
}

static void metadata(nixl_capi_agent_t a, nixl_capi_agent_t b) {
    nixl_capi_xfer_dlist_t list = xfer(memory_b, BYTES);
    nixl_capi_xfer_dlist_t beyond = xfer(memory_b + 1, BYTES);
    nixl_capi_reg_dlist_t registered = reg(memory_b, BYTES);
    nixl_capi_reg_dlist_t unknown = reg(memory_b, BYTES / 2);
    char *name = NULL;
    void *data = NULL;
    size_t length = 0;
    ASK(nixl_capi_load_remote_md(a, "this is not metadata of any kind", 32, &name));
    ASK(load(a, a));
    ASK(nixl_capi_check_remote_md(a, "parity-b", NULL));
    ASK(nixl_capi_invalidate_remote_md(a, "parity-b"));
    ASK(nixl_capi_invalidate_remote_md(a, "parity-a"));
    ASK(nixl_capi_agent_make_connection(a, "parity-b", NULL));
    ASK(nixl_capi_gen_notif(a, "parity-b", "x", 1, NULL));
    OK(nixl_capi_register_mem(b, registered, NULL));
    ASK(load(b, a));
    ASK(load(b, a));
    ASK(nixl_capi_check_remote_md(a, "parity-b", NULL));
    ASK(nixl_capi_check_remote_md(a, "parity-b", list));
    ASK(nixl_capi_check_remote_md(a, "parity-b", beyond));
    ASK(nixl_capi_get_local_partial_md(b, unknown, &data, &length, NULL));
    ASK(nixl_capi_agent_make_connection(a, "parity-b", NULL));
    OK(nixl_capi_destroy_reg_dlist(registered));
    OK(nixl_capi_destroy_reg_dlist(unknown));
    OK(nixl_capi_destroy_xfer_dlist(beyond));
    OK(nixl_capi_destroy_xfer_dlist(list));
}

static void requests(nixl_capi_agent_t a, nixl_capi_agent_t b) {
    nixl_capi_xfer_dlist_t mine = xfer(memory_a, 1024);
    nixl_capi_xfer_dlist_t theirs = xfer(memory_b, 1024);
    nixl_capi_xfer_dlist_t longer = xfer(memory_b, 2048);
    nixl_capi_xfer_dlist_t outside = xfer(memory_b + 1, BYTES);
    nixl_capi_xfer_dlist_t none = xfer(NULL, 0);
    nixl_capi_xfer_dlist_handle_t near = NULL;
    nixl_capi_xfer_dlist_handle_t far = NULL;
    nixl_capi_xfer_dlist_handle_t own = NULL;
    nixl_capi_xfer_dlist_handle_t wide = NULL;
    nixl_capi_xfer_dlist_handle_t nothing = NULL;
    nixl_capi_xfer_req_t request = NULL;
    const int zero[] = {0, 0};
    const int one[] = {1};
    ASK(nixl_capi_prep_xfer_dlist(a, "nobody", theirs, &far, NULL));
    ASK(nixl_capi_prep_xfer_dlist(a, "parity-b", outside, &far, NULL));
    ASK(nixl_capi_prep_xfer_dlist(a, "", theirs, &far, NULL));
    ASK(nixl_capi_prep_xfer_dlist(a, "", mine, &near, NULL));
    ASK(nixl_capi_prep_xfer_dlist(a, "parity-a", mine, &own, NULL));
    ASK(nixl_capi_prep_xfer_dlist(a, "parity-b", theirs, &far, NULL));
    ASK(nixl_capi_prep_xfer_dlist(a, "parity-b", longer, &wide, NULL));
    ASK(nixl_capi_prep_xfer_dlist(a, "", none, &nothing, NULL));
    const nixl_capi_xfer_op_t pull = NIXL_CAPI_XFER_OP_READ;
    ASK(nixl_capi_make_xfer_req(a, pull, near, one, 1, far, zero, 1, &request, NULL));
    ASK(nixl_capi_make_xfer_req(a, pull, near, zero, 1, far, zero, 2, &request, NULL));
    ASK(nixl_capi_make_xfer_req(a, pull, near, zero, 0, far, zero, 0, &request, NULL));
    ASK(nixl_capi_make_xfer_req(a, pull, near, zero, 1, wide, zero, 1, &request, NULL));
    ASK(nixl_capi_make_xfer_req(a, pull, far, zero, 1, near, zero, 1, &request, NULL));
    ASK(nixl_capi_create_xfer_req(a, pull, mine, longer, "parity-b", &request, NULL));
    ASK(nixl_capi_create_xfer_req(a, pull, mine, theirs, "nobody", &request, NULL));
    ASK(nixl_capi_create_xfer_req(a, pull, mine, outside, "parity-b", &request, NULL));
    ASK(nixl_capi_create_xfer_req(a, pull, none, none, "parity-b", &request, NULL));
    ASK(nixl_capi_make_xfer_req(a, pull, near, zero, 1, far, zero, 1, &request, NULL));
    struct nixl_capi_xfer_telemetry_s telemetry = {0};
    ASK(nixl_capi_get_xfer_status(a, request));
    ASK(nixl_capi_get_xfer_telemetry(a, request, &telemetry));
    ASK(nixl_capi_destroy_xfer_req(request));
    ASK(run(a, request, NULL));
    ASK(memcmp(memory_a, memory_b, 1024) != 0);
    ASK(nixl_capi_get_xfer_status(a, request));
    ASK(nixl_capi_get_xfer_telemetry(a, request, &telemetry));
    ASK(telemetry.total_bytes);
    ASK(telemetry.desc_count);
    nixl_capi_opt_args_t args = NULL;
    OK(nixl_capi_create_opt_args(&args));
    bool flag = false;
    ASK(nixl_capi_opt_args_get_has_notif(args, &flag));
    ASK(flag);
    OK(nixl_capi_opt_args_set_notif_msg(args, "done", 4));
    OK(nixl_capi_opt_args_get_has_notif(args, &flag));
    ASK(flag);
    ASK(run(a, request, args));
    ASK(messages(b, "parity-a", false));
    OK(nixl_capi_opt_args_set_has_notif(args, true));
    ASK(run(a, request, args));
    ASK(messages(b, "parity-a", true));
    ASK(run(a, request, NULL));
    ASK(messages(b, "parity-a", true));
    ASK(nixl_capi_gen_notif(a, "parity-b", "x", 1, NULL));
    ASK(messages(b, "parity-a", true));
    ASK(nixl_capi_release_xfer_req(a, request));
    ASK(nixl_capi_release_xfer_req(a, request));
    ASK(nixl_capi_destroy_xfer_req(request));
    OK(nixl_capi_destroy_opt_args(args));
    ASK(nixl_capi_release_xfer_dlist_handle(a, near));
    ASK(nixl_capi_release_xfer_dlist_handle(a, own));
    ASK(nixl_capi_release_xfer_dlist_handle(a, wide));
    ASK(nixl_capi_make_xfer_req(a, pull, far, zero, 1, far, zero, 1, &request, NULL));
    ASK(nixl_capi_release_xfer_dlist_handle(a, far));
    if (nothing != NULL) {
        OK(nixl_capi_release_xfer_dlist_handle(a, nothing));
    }
    OK(nixl_capi_destroy_xfer_dlist(mine));
    OK(nixl_capi_destroy_xfer_dlist(theirs));
    OK(nixl_capi_destroy_xfer_dlist(longer));
    OK(nixl_capi_destroy_xfer_dlist(outside));
    OK(nixl_capi_destroy_xfer_dlist(none));
}

static nixl_capi_xfer_req_t request_to_b(nixl_capi_agent_t a) {
    nixl_capi_xfer_dlist_t mine = xfer(memory_a, 1024);
    nixl_capi_xfer_dlist_t theirs = xfer(memory_b, 1024);
    nixl_capi_xfer_req_t request = NULL;
    OK(nixl_capi_create_xfer_req(a, NIXL_CAPI_XFER_OP_READ, mine, theirs, "parity-b", &request, NULL));
    OK(nixl_capi_destroy_xfer_dlist(mine));
    OK(nixl_capi_destroy_xfer_dlist(theirs));
    return request;
}

static void an_invalidated_peer(nixl_capi_agent_t a, nixl_capi_agent_t b) {
    nixl_capi_xfer_req_t request = request_to_b(a);
    ASK(nixl_capi_invalidate_remote_md(a, "parity-b"));
    ASK(nixl_capi_post_xfer_req(a, request, NULL));
    ASK(load(b, a));
    ASK(nixl_capi_post_xfer_req(a, request, NULL));
    ASK(nixl_capi_release_xfer_req(a, request));
    ASK(nixl_capi_destroy_xfer_req(request));
}

/* What a post to a dead peer comes to: for a moment NIXL still copies from its memory. */
static nixl_capi_status_t run_until_refused(nixl_capi_agent_t agent, nixl_capi_xfer_req_t request) {
    nixl_capi_status_t status = NIXL_CAPI_SUCCESS;
    for (int i = 0; status == NIXL_CAPI_SUCCESS && i < POLLS; i++) {
        pause_a_while();
        status = run(agent, request, NULL);
    }
    return status;
}

static void a_dead_peer(nixl_capi_agent_t a, nixl_capi_xfer_req_t request) {
    ASK(run_until_refused(a, request));
    ASK(nixl_capi_get_xfer_status(a, request));
    nixl_capi_xfer_req_t second = request_to_b(a);
    ASK(run(a, second, NULL));
    ASK(nixl_capi_release_xfer_req(a, second));
    ASK(nixl_capi_destroy_xfer_req(second));
    ASK(nixl_capi_release_xfer_req(a, request));
    ASK(nixl_capi_destroy_xfer_req(request));
}

static void another_agent_of_the_name(nixl_capi_agent_t a) {
    nixl_capi_backend_t backend = NULL;
    nixl_capi_agent_t b = start("parity-b", &backend);
    nixl_capi_reg_dlist_t registered = reg(memory_b, BYTES);
    OK(nixl_capi_register_mem(b, registered, NULL));
    ASK(nixl_capi_check_remote_md(a, "parity-b", NULL));
    ASK(load(b, a));
    ASK(nixl_capi_invalidate_remote_md(a, "parity-b"));
    ASK(nixl_capi_invalidate_remote_md(a, "parity-b"));
    ASK(nixl_capi_check_remote_md(a, "parity-b", NULL));
    ASK(load(b, a));
    ASK(nixl_capi_check_remote_md(a, "parity-b", NULL));
    an_invalidated_peer(a, b);
    OK(nixl_capi_destroy_reg_dlist(registered));
    OK(nixl_capi_destroy_backend(backend));
    OK(nixl_capi_destroy_agent(b));
}

int main(int count, char **arguments) {
    CHECK(count == 2);
    plugin = arguments[1];
    memset(memory_a, 'a', BYTES);
    memset(memory_b, 'b', BYTES);
    agents_without_a_backend();
    nixl_capi_backend_t backend_a = NULL;
    nixl_capi_backend_t backend_b = NULL;
    nixl_capi_agent_t a = start("parity-a", &backend_a);
    nixl_capi_agent_t b = start("parity-b", &backend_b);
    registration(a);
    metadata(a, b);
    requests(a, b);
    nixl_capi_xfer_req_t orphan = request_to_b(a);
    OK(run(a, orphan, NULL));
    OK(nixl_capi_destroy_backend(backend_b));
    OK(nixl_capi_destroy_agent(b));
    a_dead_peer(a, orphan);
    another_agent_of_the_name(a);
    OK(nixl_capi_destroy_backend(backend_a));
    OK(nixl_capi_destroy_agent(a));
    return 0;
}
