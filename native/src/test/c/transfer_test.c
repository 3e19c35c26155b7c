/* Descriptor lists, registration, metadata, transfers, notifications, while nothing goes wrong but the arguments. */
#include "worker.h"

#include <pthread.h>

static void transfer_lists_hold_descriptors_in_order(void) {
    nixl_capi_xfer_dlist_t list = NULL;
    OK(nixl_capi_create_xfer_dlist(NIXL_CAPI_MEM_VRAM, &list));
    nixl_capi_mem_type_t memory = NIXL_CAPI_MEM_UNKNOWN;
    OK(nixl_capi_xfer_dlist_get_type(list, &memory));
    CHECK(memory == NIXL_CAPI_MEM_VRAM);
    bool empty = false;
    OK(nixl_capi_xfer_dlist_is_empty(list, &empty));
    CHECK(empty);
    for (uintptr_t i = 0; i < 100; i++) {
        OK(nixl_capi_xfer_dlist_add_desc(list, 4096 * i, 4096, 0));
    }
    size_t count = 0;
    OK(nixl_capi_xfer_dlist_desc_count(list, &count));
    CHECK(count == 100);
    OK(nixl_capi_xfer_dlist_rem_desc(list, 99));
    BACKEND_ERROR(nixl_capi_xfer_dlist_rem_desc(list, 99));
    BACKEND_ERROR(nixl_capi_xfer_dlist_rem_desc(list, -1));
    OK(nixl_capi_xfer_dlist_resize(list, 120));
    OK(nixl_capi_xfer_dlist_trim(list));
    OK(nixl_capi_xfer_dlist_len(list, &count));
    CHECK(count == 120);
    OK(nixl_capi_xfer_dlist_clear(list));
    OK(nixl_capi_xfer_dlist_print(list));
    OK(nixl_capi_xfer_dlist_is_empty(list, &empty));
    CHECK(empty);
    INVALID(nixl_capi_reg_dlist_clear((nixl_capi_reg_dlist_t)(void *)list));
    OK(nixl_capi_destroy_xfer_dlist(list));
    INVALID(nixl_capi_create_xfer_dlist(NIXL_CAPI_MEM_DRAM, NULL));
}

static void registration_lists_do_the_same(void) {
    nixl_capi_reg_dlist_t list = reg_list("abc", 3);
    OK(nixl_capi_reg_dlist_add_desc(list, 64, 64, 1, "bytes", 5));
    nixl_capi_mem_type_t memory = NIXL_CAPI_MEM_UNKNOWN;
    OK(nixl_capi_reg_dlist_get_type(list, &memory));
    CHECK(memory == NIXL_CAPI_MEM_DRAM);
    size_t count = 0;
    OK(nixl_capi_reg_dlist_desc_count(list, &count));
    CHECK(count == 2);
    OK(nixl_capi_reg_dlist_rem_desc(list, 0));
    BACKEND_ERROR(nixl_capi_reg_dlist_rem_desc(list, 1));
    OK(nixl_capi_reg_dlist_resize(list, 3));
    OK(nixl_capi_reg_dlist_trim(list));
    OK(nixl_capi_reg_dlist_print(list));
    OK(nixl_capi_reg_dlist_clear(list));
    bool empty = false;
    OK(nixl_capi_reg_dlist_is_empty(list, &empty));
    CHECK(empty);
    OK(nixl_capi_destroy_reg_dlist(list));
}

static void optional_arguments_keep_what_they_are_told(void) {
    nixl_capi_opt_args_t args = NULL;
    OK(nixl_capi_create_opt_args(&args));
    bool flag = true;
    OK(nixl_capi_opt_args_get_has_notif(args, &flag));
    CHECK(!flag);
    OK(nixl_capi_opt_args_get_skip_desc_merge(args, &flag));
    CHECK(!flag);
    OK(nixl_capi_opt_args_set_has_notif(args, true));
    OK(nixl_capi_opt_args_get_has_notif(args, &flag));
    CHECK(flag);
    OK(nixl_capi_opt_args_set_skip_desc_merge(args, true));
    OK(nixl_capi_opt_args_get_skip_desc_merge(args, &flag));
    CHECK(flag);
    void *data = args;
    size_t length = 1;
    OK(nixl_capi_opt_args_get_notif_msg(args, &data, &length));
    CHECK(data == NULL && length == 0);
    OK(nixl_capi_opt_args_set_notif_msg(args, "a\0b", 3));
    OK(nixl_capi_opt_args_get_notif_msg(args, &data, &length));
    CHECK(length == 3 && memcmp(data, "a\0b", 3) == 0);
    free(data);
    INVALID(nixl_capi_opt_args_set_notif_msg(args, NULL, 1));
    OK(nixl_capi_opt_args_set_ip_addr(args, "127.0.0.1"));
    OK(nixl_capi_opt_args_set_port(args, 8888));
    OK(nixl_capi_destroy_opt_args(args));
}

static void a_backend_of_another_agent_serves_nothing(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_opt_args_t args = NULL;
    OK(nixl_capi_create_opt_args(&args));
    OK(nixl_capi_opt_args_add_backend(args, pair.b.backend));
    NOT_FOUND(nixl_capi_register_mem(pair.a.agent, pair.a.registered, args));
    OK(nixl_capi_opt_args_add_backend(args, pair.a.backend));
    OK(nixl_capi_register_mem(pair.a.agent, pair.a.registered, args));
    OK(nixl_capi_destroy_opt_args(args));
    pair_stop(&pair);
}

static void memory_is_deregistered_by_exactly_what_was_registered(void) {
    struct worker worker;
    worker_start(&worker, "w", 'w');
    nixl_capi_reg_dlist_t half = reg_list(worker.memory, WORKER_BYTES / 2);
    NOT_FOUND(nixl_capi_deregister_mem(worker.agent, half, NULL));
    OK(nixl_capi_reg_dlist_clear(half));
    BACKEND_ERROR(nixl_capi_register_mem(worker.agent, half, NULL));
    OK(nixl_capi_deregister_mem(worker.agent, half, NULL));
    OK(nixl_capi_reg_dlist_add_desc(half, (uintptr_t)worker.memory, WORKER_BYTES, 0, NULL, 0));
    OK(nixl_capi_reg_dlist_add_desc(half, (uintptr_t)worker.memory, WORKER_BYTES, 0, NULL, 0));
    NOT_FOUND(nixl_capi_deregister_mem(worker.agent, half, NULL));
    CHECK(counter("w", KVASIR_LOOPBACK_REGISTERED_BYTES) == WORKER_BYTES);
    OK(nixl_capi_deregister_mem(worker.agent, worker.registered, NULL));
    CHECK(counter("w", KVASIR_LOOPBACK_REGISTERED_BYTES) == 0);
    NOT_FOUND(nixl_capi_deregister_mem(worker.agent, worker.registered, NULL));
    OK(nixl_capi_reg_dlist_clear(half));
    NOT_FOUND(nixl_capi_deregister_mem(worker.agent, half, NULL));
    OK(nixl_capi_destroy_reg_dlist(half));
    worker_stop(&worker);
}

static void host_and_gpu_memory_is_registered_and_only_with_a_backend(void) {
    struct worker worker;
    worker_start(&worker, "w", 'w');
    nixl_capi_reg_dlist_t file = reg_list_of(NIXL_CAPI_MEM_FILE, worker.memory, 8);
    NOT_FOUND(nixl_capi_register_mem(worker.agent, file, NULL));
    OK(nixl_capi_destroy_reg_dlist(file));
    nixl_capi_agent_t bare = NULL;
    OK(nixl_capi_create_agent("bare", &bare));
    NOT_FOUND(nixl_capi_register_mem(bare, worker.registered, NULL));
    void *data = NULL;
    size_t length = 0;
    INVALID(nixl_capi_get_local_md(bare, &data, &length));
    nixl_capi_notif_map_t map = NULL;
    OK(nixl_capi_create_notif_map(&map));
    BACKEND_ERROR(nixl_capi_get_notifs(bare, map, NULL));
    OK(nixl_capi_destroy_notif_map(map));
    OK(nixl_capi_destroy_agent(bare));
    worker_stop(&worker);
}

static void gpu_memory_moves_like_host_memory_and_is_not_taken_for_it(void) {
    struct pair pair;
    pair_start(&pair);
    char gpu[64];
    memset(gpu, 'g', sizeof gpu);
    nixl_capi_reg_dlist_t registered = reg_list_of(NIXL_CAPI_MEM_VRAM, gpu, sizeof gpu);
    OK(nixl_capi_register_mem(pair.b.agent, registered, NULL));
    OK(introduce(&pair.b, &pair.a));
    nixl_capi_xfer_dlist_t as_gpu = xfer_list_of(NIXL_CAPI_MEM_VRAM, gpu, sizeof gpu);
    nixl_capi_xfer_dlist_t as_host = xfer_list(gpu, sizeof gpu);
    nixl_capi_xfer_dlist_t host = xfer_list(pair.a.memory, sizeof gpu);
    nixl_capi_xfer_dlist_t host_as_gpu = xfer_list_of(NIXL_CAPI_MEM_VRAM, pair.a.memory, sizeof gpu);
    nixl_capi_xfer_req_t made = NULL;
    const nixl_capi_xfer_op_t pull = NIXL_CAPI_XFER_OP_READ;
    BACKEND_ERROR(nixl_capi_create_xfer_req(pair.a.agent, pull, host, as_host, "b", &made, NULL));
    BACKEND_ERROR(nixl_capi_create_xfer_req(pair.a.agent, pull, host_as_gpu, as_gpu, "b", &made, NULL));
    OK(nixl_capi_check_remote_md(pair.a.agent, "b", as_gpu));
    NOT_FOUND(nixl_capi_check_remote_md(pair.a.agent, "b", as_host));
    OK(nixl_capi_create_xfer_req(pair.a.agent, pull, host, as_gpu, "b", &made, NULL));
    OK(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    CHECK(filled(pair.a.memory, 0, sizeof gpu, 'g') && filled(pair.a.memory, sizeof gpu, WORKER_BYTES, 'a'));
    request_end(&pair.a, made);
    OK(nixl_capi_deregister_mem(pair.b.agent, registered, NULL));
    OK(nixl_capi_destroy_reg_dlist(registered));
    OK(nixl_capi_destroy_xfer_dlist(as_gpu));
    OK(nixl_capi_destroy_xfer_dlist(as_host));
    OK(nixl_capi_destroy_xfer_dlist(host));
    OK(nixl_capi_destroy_xfer_dlist(host_as_gpu));
    pair_stop(&pair);
}

static void a_peer_is_known_by_its_metadata_until_it_is_invalidated(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_dlist_t inside = xfer_list(pair.b.memory + 1, WORKER_BYTES - 1);
    nixl_capi_xfer_dlist_t outside = xfer_list(pair.b.memory + 1, WORKER_BYTES);
    OK(nixl_capi_check_remote_md(pair.a.agent, "b", NULL));
    OK(nixl_capi_check_remote_md(pair.a.agent, "b", inside));
    NOT_FOUND(nixl_capi_check_remote_md(pair.a.agent, "b", outside));
    NOT_FOUND(nixl_capi_check_remote_md(pair.b.agent, "a", NULL));
    OK(nixl_capi_agent_make_connection(pair.a.agent, "b", NULL));
    NOT_FOUND(nixl_capi_agent_make_connection(pair.b.agent, "a", NULL));
    OK(introduce(&pair.b, &pair.a));
    OK(nixl_capi_invalidate_remote_md(pair.a.agent, "b"));
    NOT_FOUND(nixl_capi_check_remote_md(pair.a.agent, "b", NULL));
    NOT_FOUND(nixl_capi_invalidate_remote_md(pair.a.agent, "b"));
    INVALID(nixl_capi_invalidate_remote_md(pair.a.agent, "a"));
    OK(nixl_capi_destroy_xfer_dlist(inside));
    OK(nixl_capi_destroy_xfer_dlist(outside));
    pair_stop(&pair);
}

static void metadata_that_is_foreign_cut_or_its_own_is_refused(void) {
    struct pair pair;
    pair_start(&pair);
    OK(nixl_capi_invalidate_remote_md(pair.a.agent, "b"));
    void *data = NULL;
    size_t length = 0;
    OK(nixl_capi_get_local_md(pair.b.agent, &data, &length));
    char *name = NULL;
    for (size_t cut = 1; cut < length; cut++) {
        BACKEND_ERROR(nixl_capi_load_remote_md(pair.a.agent, data, cut, &name));
    }
    INVALID(nixl_capi_load_remote_md(pair.a.agent, data, 0, &name));
    INVALID(nixl_capi_load_remote_md(pair.b.agent, data, length, &name));
    for (size_t place = 0; place < 12; place++) { /* the magic and the version */
        char *byte = (char *)data + place;
        *byte = (char)(*byte ^ 1);
        BACKEND_ERROR(nixl_capi_load_remote_md(pair.a.agent, data, length, &name));
        *byte = (char)(*byte ^ 1);
    }
    CHECK(name == NULL);
    NOT_FOUND(nixl_capi_check_remote_md(pair.a.agent, "b", NULL));
    free(data);
    pair_stop(&pair);
}

static void load_partial(const struct worker *of, nixl_capi_reg_dlist_t list, const struct worker *to) {
    void *data = NULL;
    size_t length = 0;
    OK(nixl_capi_get_local_partial_md(of->agent, list, &data, &length, NULL));
    char *name = NULL;
    OK(nixl_capi_load_remote_md(to->agent, data, length, &name));
    free(name);
    free(data);
}

static void partial_metadata_tells_of_the_connection_or_of_regions(void) {
    struct pair pair;
    pair_start(&pair);
    OK(nixl_capi_invalidate_remote_md(pair.a.agent, "b"));
    nixl_capi_reg_dlist_t none = NULL;
    OK(nixl_capi_create_reg_dlist(NIXL_CAPI_MEM_DRAM, &none));
    nixl_capi_xfer_dlist_t all = xfer_list(pair.b.memory, WORKER_BYTES);
    nixl_capi_xfer_dlist_handle_t handle = NULL;
    load_partial(&pair.b, pair.b.registered, &pair.a);
    OK(nixl_capi_check_remote_md(pair.a.agent, "b", all));
    NOT_FOUND(nixl_capi_prep_xfer_dlist(pair.a.agent, "b", all, &handle, NULL));
    OK(nixl_capi_invalidate_remote_md(pair.a.agent, "b"));
    load_partial(&pair.b, none, &pair.a);
    OK(nixl_capi_agent_make_connection(pair.a.agent, "b", NULL));
    NOT_FOUND(nixl_capi_prep_xfer_dlist(pair.a.agent, "b", all, &handle, NULL));
    load_partial(&pair.b, pair.b.registered, &pair.a);
    OK(nixl_capi_prep_xfer_dlist(pair.a.agent, "b", all, &handle, NULL));
    OK(nixl_capi_release_xfer_dlist_handle(pair.a.agent, handle));
    void *data = NULL;
    size_t length = 0;
    NOT_FOUND(nixl_capi_get_local_partial_md(pair.a.agent, pair.b.registered, &data, &length, NULL));
    OK(nixl_capi_destroy_xfer_dlist(all));
    OK(nixl_capi_destroy_reg_dlist(none));
    pair_stop(&pair);
}

static void a_read_pulls_and_a_write_pushes(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_req_t pull = request(&pair.a, NIXL_CAPI_XFER_OP_READ, &pair.b, 16, NULL);
    OK(nixl_capi_post_xfer_req(pair.a.agent, pull, NULL));
    OK(nixl_capi_get_xfer_status(pair.a.agent, pull));
    CHECK(filled(pair.a.memory, 0, 16, 'b') && filled(pair.a.memory, 16, WORKER_BYTES, 'a'));
    memset(pair.a.memory, 'c', 8);
    nixl_capi_xfer_req_t push = request(&pair.a, NIXL_CAPI_XFER_OP_WRITE, &pair.b, 8, NULL);
    OK(nixl_capi_post_xfer_req(pair.a.agent, push, NULL));
    CHECK(filled(pair.b.memory, 0, 8, 'c') && filled(pair.b.memory, 8, WORKER_BYTES, 'b'));
    request_end(&pair.a, pull);
    request_end(&pair.a, push);
    pair_stop(&pair);
}

static void prepared_lists_are_paired_by_index(void) {
    struct pair pair;
    pair_start(&pair);
    for (size_t i = 0; i < WORKER_BYTES; i++) {
        pair.b.memory[i] = (char)('A' + i / 16);
    }
    nixl_capi_xfer_dlist_handle_t near = prepare(&pair.a, "", pair.a.memory, 16, 16);
    nixl_capi_xfer_dlist_handle_t far = prepare(&pair.a, "b", pair.b.memory, 16, 16);
    const int here[] = {0, 5, 15};
    const int there[] = {15, 2, 7};
    nixl_capi_xfer_req_t made = NULL;
    OK(nixl_capi_make_xfer_req(
        pair.a.agent, NIXL_CAPI_XFER_OP_READ, near, here, 3, far, there, 3, &made, NULL));
    OK(nixl_capi_release_xfer_dlist_handle(pair.a.agent, near));
    OK(nixl_capi_release_xfer_dlist_handle(pair.a.agent, far));
    OK(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    CHECK(filled(pair.a.memory, 0, 16, 'P') && filled(pair.a.memory, 16, 80, 'a'));
    CHECK(filled(pair.a.memory, 80, 96, 'C') && filled(pair.a.memory, 96, 240, 'a'));
    CHECK(filled(pair.a.memory, 240, 256, 'H'));
    request_end(&pair.a, made);
    pair_stop(&pair);
}

static void indices_that_do_not_fit_are_invalid(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_agent_t agent = pair.a.agent;
    nixl_capi_xfer_dlist_handle_t near = prepare(&pair.a, "", pair.a.memory, 16, 4);
    nixl_capi_xfer_dlist_handle_t far = prepare(&pair.a, "b", pair.b.memory, 16, 4);
    nixl_capi_xfer_dlist_handle_t longer = prepare(&pair.a, "b", pair.b.memory, 32, 4);
    const int zero[] = {0, 0};
    const int four[] = {4};
    const int negative[] = {-1};
    const nixl_capi_xfer_op_t pull = NIXL_CAPI_XFER_OP_READ;
    nixl_capi_xfer_req_t made = NULL;
    INVALID(nixl_capi_make_xfer_req(agent, pull, near, zero, 1, far, four, 1, &made, NULL));
    INVALID(nixl_capi_make_xfer_req(agent, pull, near, negative, 1, far, zero, 1, &made, NULL));
    INVALID(nixl_capi_make_xfer_req(agent, pull, near, zero, 1, far, zero, 2, &made, NULL));
    INVALID(nixl_capi_make_xfer_req(agent, pull, near, zero, 0, far, zero, 0, &made, NULL));
    INVALID(nixl_capi_make_xfer_req(agent, pull, near, zero, 1, longer, zero, 1, &made, NULL));
    INVALID(nixl_capi_make_xfer_req(agent, pull, far, zero, 1, near, zero, 1, &made, NULL));
    INVALID(nixl_capi_make_xfer_req(agent, pull, near, zero, 1, near, zero, 1, &made, NULL));
    INVALID(nixl_capi_make_xfer_req(pair.b.agent, pull, near, zero, 1, far, zero, 1, &made, NULL));
    CHECK(made == NULL);
    OK(nixl_capi_release_xfer_dlist_handle(agent, near));
    OK(nixl_capi_release_xfer_dlist_handle(agent, far));
    OK(nixl_capi_release_xfer_dlist_handle(agent, longer));
    pair_stop(&pair);
}

static void descriptors_lie_in_one_region_that_the_metadata_told_of(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_reg_dlist_t halves = reg_list(pair.b.memory, 128);
    OK(nixl_capi_reg_dlist_add_desc(halves, (uintptr_t)pair.b.memory + 128, 128, 0, NULL, 0));
    OK(nixl_capi_deregister_mem(pair.b.agent, pair.b.registered, NULL));
    OK(nixl_capi_invalidate_remote_md(pair.a.agent, "b"));
    OK(introduce(&pair.b, &pair.a));
    nixl_capi_xfer_dlist_t half = xfer_list(pair.b.memory + 128, 128);
    nixl_capi_xfer_dlist_handle_t handle = NULL;
    NOT_FOUND(nixl_capi_prep_xfer_dlist(pair.a.agent, "b", half, &handle, NULL));
    OK(nixl_capi_register_mem(pair.b.agent, halves, NULL));
    NOT_FOUND(nixl_capi_prep_xfer_dlist(pair.a.agent, "b", half, &handle, NULL));
    OK(introduce(&pair.b, &pair.a));
    OK(nixl_capi_prep_xfer_dlist(pair.a.agent, "b", half, &handle, NULL));
    OK(nixl_capi_release_xfer_dlist_handle(pair.a.agent, handle));
    nixl_capi_xfer_dlist_t both = xfer_list(pair.b.memory + 64, 128);
    NOT_FOUND(nixl_capi_prep_xfer_dlist(pair.a.agent, "b", both, &handle, NULL));
    OK(nixl_capi_destroy_xfer_dlist(both));
    OK(nixl_capi_destroy_xfer_dlist(half));
    OK(nixl_capi_destroy_reg_dlist(halves));
    pair_stop(&pair);
}

static void a_descriptor_at_the_end_of_the_address_space_wraps_into_nothing(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_dlist_t list = xfer_list(pair.a.memory + 1, SIZE_MAX);
    nixl_capi_xfer_dlist_handle_t handle = NULL;
    NOT_FOUND(nixl_capi_prep_xfer_dlist(pair.a.agent, "", list, &handle, NULL));
    OK(nixl_capi_xfer_dlist_clear(list));
    OK(nixl_capi_xfer_dlist_add_desc(list, UINTPTR_MAX, 2, 0));
    NOT_FOUND(nixl_capi_prep_xfer_dlist(pair.a.agent, "", list, &handle, NULL));
    OK(nixl_capi_destroy_xfer_dlist(list));
    pair_stop(&pair);
}

static void creating_a_request_fails_in_one_way_only(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_dlist_t local = xfer_list(pair.a.memory, 16);
    nixl_capi_xfer_dlist_t remote = xfer_list(pair.b.memory, 16);
    nixl_capi_xfer_dlist_t longer = xfer_list(pair.b.memory, 17);
    nixl_capi_xfer_req_t made = NULL;
    const nixl_capi_xfer_op_t pull = NIXL_CAPI_XFER_OP_READ;
    BACKEND_ERROR(nixl_capi_create_xfer_req(pair.a.agent, pull, local, remote, "nobody", &made, NULL));
    BACKEND_ERROR(nixl_capi_create_xfer_req(pair.a.agent, pull, local, longer, "b", &made, NULL));
    BACKEND_ERROR(nixl_capi_create_xfer_req(pair.a.agent, pull, local, local, "b", &made, NULL));
    BACKEND_ERROR(nixl_capi_create_xfer_req(pair.a.agent, pull, remote, remote, "b", &made, NULL));
    OK(nixl_capi_xfer_dlist_add_desc(longer, (uintptr_t)pair.b.memory, 1, 0));
    BACKEND_ERROR(nixl_capi_create_xfer_req(pair.a.agent, pull, local, longer, "b", &made, NULL));
    INVALID(nixl_capi_create_xfer_req(pair.a.agent, pull, local, remote, NULL, &made, NULL));
    CHECK(made == NULL);
    OK(nixl_capi_destroy_xfer_dlist(local));
    OK(nixl_capi_destroy_xfer_dlist(remote));
    OK(nixl_capi_destroy_xfer_dlist(longer));
    pair_stop(&pair);
}

static void an_agent_copies_within_itself_by_its_own_name(void) {
    struct worker worker;
    worker_start(&worker, "w", 'w');
    memset(worker.memory, 'x', 64);
    nixl_capi_xfer_dlist_handle_t near = prepare(&worker, "", worker.memory, 64, 4);
    nixl_capi_xfer_dlist_handle_t far = prepare(&worker, "w", worker.memory, 64, 4);
    const int here[] = {0};
    const int there[] = {2};
    nixl_capi_xfer_req_t made = NULL;
    OK(nixl_capi_make_xfer_req(worker.agent, NIXL_CAPI_XFER_OP_WRITE, near, here, 1, far, there, 1, &made, NULL));
    nixl_capi_opt_args_t done = notification("done");
    OK(nixl_capi_post_xfer_req(worker.agent, made, done));
    CHECK(filled(worker.memory, 64, 128, 'w') && filled(worker.memory, 128, 192, 'x'));
    expect_message(&worker, "w", "done");
    OK(nixl_capi_destroy_opt_args(done));
    request_end(&worker, made);
    OK(nixl_capi_release_xfer_dlist_handle(worker.agent, near));
    OK(nixl_capi_release_xfer_dlist_handle(worker.agent, far));
    worker_stop(&worker);
}

static void memory_that_is_no_longer_registered_is_not_touched(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_req_t made = read_request(&pair);
    OK(nixl_capi_deregister_mem(pair.b.agent, pair.b.registered, NULL));
    BACKEND_ERROR(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    BACKEND_ERROR(nixl_capi_get_xfer_status(pair.a.agent, made));
    CHECK(filled(pair.a.memory, 0, WORKER_BYTES, 'a'));
    OK(nixl_capi_register_mem(pair.b.agent, pair.b.registered, NULL));
    OK(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    request_end(&pair.a, made);
    pair_stop(&pair);
}

static void a_request_lives_from_make_over_release_to_destroy(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_req_t made = read_request(&pair);
    BACKEND_ERROR(nixl_capi_get_xfer_status(pair.a.agent, made));
    INVALID(nixl_capi_post_xfer_req(pair.b.agent, made, NULL));
    IS(NIXL_CAPI_ERROR_INVALID_STATE, nixl_capi_destroy_xfer_req(made));
    OK(nixl_capi_release_xfer_req(pair.a.agent, made));
    INVALID(nixl_capi_release_xfer_req(pair.a.agent, made));
    INVALID(nixl_capi_get_xfer_status(pair.a.agent, made));
    INVALID(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    OK(nixl_capi_destroy_xfer_req(made));
    pair_stop(&pair);
}

static void a_done_request_is_posted_again_with_the_notification_last_set(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_opt_args_t first = notification("first");
    nixl_capi_opt_args_t second = notification("second");
    nixl_capi_opt_args_t none = NULL;
    OK(nixl_capi_create_opt_args(&none));
    nixl_capi_xfer_req_t made = request(&pair.a, NIXL_CAPI_XFER_OP_WRITE, &pair.b, 16, first);
    OK(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    expect_message(&pair.b, "a", "first");
    OK(nixl_capi_get_xfer_status(pair.a.agent, made));
    expect_silence(&pair.b);
    OK(nixl_capi_post_xfer_req(pair.a.agent, made, second));
    OK(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    expect_messages(&pair.b, "a", (const char *const[]){"second", "second"}, 2);
    OK(nixl_capi_post_xfer_req(pair.a.agent, made, none));
    OK(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    expect_silence(&pair.b);
    request_end(&pair.a, made);
    OK(nixl_capi_destroy_opt_args(first));
    OK(nixl_capi_destroy_opt_args(second));
    OK(nixl_capi_destroy_opt_args(none));
    pair_stop(&pair);
}

static void invalidating_a_peer_makes_what_was_made_for_it_unusable(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_dlist_handle_t near = prepare(&pair.a, "", pair.a.memory, 16, 1);
    nixl_capi_xfer_dlist_handle_t far = prepare(&pair.a, "b", pair.b.memory, 16, 1);
    nixl_capi_xfer_req_t made = read_request(&pair);
    OK(nixl_capi_invalidate_remote_md(pair.a.agent, "b"));
    OK(introduce(&pair.b, &pair.a));
    const int zero[] = {0};
    nixl_capi_xfer_req_t second = NULL;
    NOT_FOUND(nixl_capi_make_xfer_req(
        pair.a.agent, NIXL_CAPI_XFER_OP_READ, near, zero, 1, far, zero, 1, &second, NULL));
    NOT_FOUND(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    request_end(&pair.a, made);
    OK(nixl_capi_release_xfer_dlist_handle(pair.a.agent, near));
    OK(nixl_capi_release_xfer_dlist_handle(pair.a.agent, far));
    pair_stop(&pair);
}

static uint64_t descriptors_of(const struct pair *pair, nixl_capi_opt_args_t args) {
    nixl_capi_xfer_dlist_handle_t near = prepare(&pair->a, "", pair->a.memory, 16, 16);
    nixl_capi_xfer_dlist_handle_t far = prepare(&pair->a, "b", pair->b.memory, 16, 16);
    const int here[] = {0, 1, 2, 8, 9};
    const int there[] = {4, 5, 6, 7, 1};
    nixl_capi_xfer_req_t made = NULL;
    OK(nixl_capi_make_xfer_req(
        pair->a.agent, NIXL_CAPI_XFER_OP_WRITE, near, here, 5, far, there, 5, &made, args));
    struct nixl_capi_xfer_telemetry_s telemetry = {0};
    BACKEND_ERROR(nixl_capi_get_xfer_telemetry(pair->a.agent, made, &telemetry));
    OK(nixl_capi_post_xfer_req(pair->a.agent, made, NULL));
    OK(nixl_capi_get_xfer_telemetry(pair->a.agent, made, &telemetry));
    CHECK(telemetry.total_bytes == 80 && telemetry.start_time_us > 0);
    request_end(&pair->a, made);
    OK(nixl_capi_release_xfer_dlist_handle(pair->a.agent, near));
    OK(nixl_capi_release_xfer_dlist_handle(pair->a.agent, far));
    return telemetry.desc_count;
}

static void runs_are_merged_unless_that_is_skipped(void) {
    struct pair pair;
    pair_start(&pair);
    CHECK(descriptors_of(&pair, NULL) == 3);
    nixl_capi_opt_args_t args = NULL;
    OK(nixl_capi_create_opt_args(&args));
    OK(nixl_capi_opt_args_set_skip_desc_merge(args, true));
    CHECK(descriptors_of(&pair, args) == 5);
    CHECK(filled(pair.b.memory, 16, 32, 'a') && filled(pair.b.memory, 64, 128, 'a'));
    CHECK(filled(pair.b.memory, 0, 16, 'b') && filled(pair.b.memory, 32, 64, 'b'));
    OK(nixl_capi_destroy_opt_args(args));
    pair_stop(&pair);
}

static void telemetry_is_captured_only_where_the_agent_was_told_to(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_agent_t plain = NULL;
    OK(nixl_capi_create_agent("plain", &plain));
    nixl_capi_params_t params = NULL;
    OK(nixl_capi_create_params(&params));
    nixl_capi_backend_t backend = NULL;
    OK(nixl_capi_create_backend(plain, "LOOPBACK", params, &backend));
    OK(nixl_capi_register_mem(plain, pair.a.registered, NULL));
    const struct worker worker = {.agent = plain};
    OK(introduce(&pair.b, &worker));
    nixl_capi_xfer_dlist_t local = xfer_list(pair.a.memory, 16);
    nixl_capi_xfer_dlist_t remote = xfer_list(pair.b.memory, 16);
    nixl_capi_xfer_req_t made = NULL;
    OK(nixl_capi_create_xfer_req(plain, NIXL_CAPI_XFER_OP_READ, local, remote, "b", &made, NULL));
    OK(nixl_capi_post_xfer_req(plain, made, NULL));
    struct nixl_capi_xfer_telemetry_s telemetry = {0};
    IS(NIXL_CAPI_ERROR_NO_TELEMETRY, nixl_capi_get_xfer_telemetry(plain, made, &telemetry));
    request_end(&worker, made);
    OK(nixl_capi_destroy_xfer_dlist(local));
    OK(nixl_capi_destroy_xfer_dlist(remote));
    OK(nixl_capi_destroy_params(params));
    OK(nixl_capi_destroy_backend(backend));
    OK(nixl_capi_destroy_agent(plain));
    pair_stop(&pair);
}

static void a_request_tells_its_backend_and_its_cost(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_req_t made = read_request(&pair);
    nixl_capi_backend_t backend = NULL;
    OK(nixl_capi_query_xfer_backend(pair.a.agent, made, &backend));
    nixl_capi_opt_args_t args = NULL;
    OK(nixl_capi_create_opt_args(&args));
    OK(nixl_capi_opt_args_add_backend(args, backend));
    OK(nixl_capi_post_xfer_req(pair.a.agent, made, args));
    OK(kvasir_loopback_delay("a", 100, 2));
    int64_t duration = 0;
    int64_t margin = -1;
    nixl_capi_cost_t method = NIXL_CAPI_COST_ANALYTICAL_BACKEND;
    OK(nixl_capi_estimate_xfer_cost(pair.a.agent, made, NULL, &duration, &margin, &method));
    CHECK(duration == 100 + WORKER_BYTES / 2 && margin == 0);
    OK(nixl_capi_destroy_opt_args(args));
    OK(nixl_capi_destroy_backend(backend));
    request_end(&pair.a, made);
    pair_stop(&pair);
}

static void notifications_arrive_once_and_in_the_order_of_each_sender(void) {
    struct pair pair;
    pair_start(&pair);
    struct worker c;
    worker_start(&c, "c", 'c');
    OK(introduce(&pair.b, &c));
    OK(nixl_capi_gen_notif(pair.a.agent, "b", "1", 1, NULL));
    OK(nixl_capi_gen_notif(c.agent, "b", "2", 1, NULL));
    OK(nixl_capi_gen_notif(pair.a.agent, "b", NULL, 0, NULL));
    NOT_FOUND(nixl_capi_gen_notif(pair.b.agent, "a", "x", 1, NULL));
    INVALID(nixl_capi_gen_notif(pair.a.agent, "b", NULL, 1, NULL));
    nixl_capi_notif_map_t map = NULL;
    OK(nixl_capi_create_notif_map(&map));
    OK(nixl_capi_get_notifs(pair.b.agent, map, NULL));
    OK(nixl_capi_gen_notif(pair.a.agent, "b", "3", 1, NULL));
    OK(nixl_capi_get_notifs(pair.b.agent, map, NULL));
    size_t size = 0;
    OK(nixl_capi_notif_map_size(map, &size));
    CHECK(size == 2);
    const char *sender = NULL;
    OK(nixl_capi_notif_map_get_agent_at(map, 0, &sender));
    CHECK(strcmp(sender, "a") == 0);
    INVALID(nixl_capi_notif_map_get_agent_at(map, 2, &sender));
    OK(nixl_capi_notif_map_get_notifs_size(map, "a", &size));
    CHECK(size == 3);
    INVALID(nixl_capi_notif_map_get_notifs_size(map, "nobody", &size));
    const void *data = NULL;
    size_t length = 1;
    OK(nixl_capi_notif_map_get_notif(map, "a", 1, &data, &length));
    CHECK(length == 0);
    OK(nixl_capi_notif_map_get_notif(map, "a", 2, &data, &length));
    CHECK(length == 1 && memcmp(data, "3", 1) == 0);
    INVALID(nixl_capi_notif_map_get_notif(map, "a", 3, &data, &length));
    OK(nixl_capi_notif_map_clear(map));
    OK(nixl_capi_notif_map_size(map, &size));
    CHECK(size == 0);
    OK(nixl_capi_destroy_notif_map(map));
    expect_silence(&pair.b);
    worker_stop(&c);
    pair_stop(&pair);
}

static void what_was_not_read_goes_with_its_agent(void) {
    struct pair pair;
    pair_start(&pair);
    OK(nixl_capi_gen_notif(pair.a.agent, "b", "unread", 6, NULL));
    pair_stop(&pair);
}

#define POSTS_PER_THREAD 2000

static void *post_and_poll(void *argument) {
    const struct pair *pair = argument;
    nixl_capi_opt_args_t args = notification("done");
    nixl_capi_xfer_req_t made = request(&pair->a, NIXL_CAPI_XFER_OP_READ, &pair->b, WORKER_BYTES, args);
    OK(nixl_capi_destroy_opt_args(args));
    for (int i = 0; i < POSTS_PER_THREAD; i++) {
        OK(nixl_capi_post_xfer_req(pair->a.agent, made, NULL));
        CHECK(filled(pair->a.memory, 0, WORKER_BYTES, 'b'));
    }
    request_end(&pair->a, made);
    return NULL;
}

static void agents_of_different_threads_use_one_peer(void) {
    struct pair pairs[2];
    pair_start(&pairs[0]);
    worker_start(&pairs[1].a, "other", 'o');
    pairs[1].b = pairs[0].b;
    OK(nixl_capi_deregister_mem(pairs[0].b.agent, pairs[0].b.registered, NULL));
    nixl_capi_reg_dlist_t copies = reg_list(pairs[0].b.memory, WORKER_BYTES);
    OK(nixl_capi_reg_dlist_add_desc(copies, (uintptr_t)pairs[1].b.memory, WORKER_BYTES, 0, NULL, 0));
    OK(nixl_capi_register_mem(pairs[0].b.agent, copies, NULL));
    OK(introduce(&pairs[0].b, &pairs[0].a));
    OK(introduce(&pairs[0].b, &pairs[1].a));
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_create(&threads[i], NULL, post_and_poll, &pairs[i]) == 0);
    }
    for (int i = 0; i < 2; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    CHECK(counter("a", KVASIR_LOOPBACK_POSTS) == POSTS_PER_THREAD);
    CHECK(counter("other", KVASIR_LOOPBACK_NOTIFICATIONS_SENT) == POSTS_PER_THREAD);
    OK(nixl_capi_destroy_reg_dlist(copies));
    worker_stop(&pairs[1].a);
    pair_stop(&pairs[0]);
}

int main(void) {
    static void (*const tests[])(void) = {
        transfer_lists_hold_descriptors_in_order,
        registration_lists_do_the_same,
        optional_arguments_keep_what_they_are_told,
        a_backend_of_another_agent_serves_nothing,
        memory_is_deregistered_by_exactly_what_was_registered,
        host_and_gpu_memory_is_registered_and_only_with_a_backend,
        gpu_memory_moves_like_host_memory_and_is_not_taken_for_it,
        a_peer_is_known_by_its_metadata_until_it_is_invalidated,
        metadata_that_is_foreign_cut_or_its_own_is_refused,
        partial_metadata_tells_of_the_connection_or_of_regions,
        a_read_pulls_and_a_write_pushes,
        prepared_lists_are_paired_by_index,
        indices_that_do_not_fit_are_invalid,
        descriptors_lie_in_one_region_that_the_metadata_told_of,
        a_descriptor_at_the_end_of_the_address_space_wraps_into_nothing,
        creating_a_request_fails_in_one_way_only,
        an_agent_copies_within_itself_by_its_own_name,
        memory_that_is_no_longer_registered_is_not_touched,
        a_request_lives_from_make_over_release_to_destroy,
        a_done_request_is_posted_again_with_the_notification_last_set,
        invalidating_a_peer_makes_what_was_made_for_it_unusable,
        runs_are_merged_unless_that_is_skipped,
        telemetry_is_captured_only_where_the_agent_was_told_to,
        a_request_tells_its_backend_and_its_cost,
        notifications_arrive_once_and_in_the_order_of_each_sender,
        what_was_not_read_goes_with_its_agent,
        agents_of_different_threads_use_one_peer,
    };
    RUN_ALL(tests)
    return 0;
}
