/* Each fault: what it does, what it leaves alone, how it ends. */
#include "worker.h"

#include <time.h>

#define LONG_US 3600000000U

static uint64_t now_us(void) {
    struct timespec now;
    CHECK(clock_gettime(CLOCK_MONOTONIC, &now) == 0);
    return (uint64_t)now.tv_sec * 1000000U + (uint64_t)now.tv_nsec / 1000U;
}

/* Polls until the request is no longer running; the test's own time limit ends a poll that never ends. */
static nixl_capi_status_t poll_to_the_end(const struct worker *by, nixl_capi_xfer_req_t polled) {
    nixl_capi_status_t status = NIXL_CAPI_IN_PROG;
    while (status == NIXL_CAPI_IN_PROG) {
        status = nixl_capi_get_xfer_status(by->agent, polled);
    }
    return status;
}

static void delayed_bytes_and_notifications_arrive_when_due_and_not_before(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_opt_args_t done = notification("done");
    nixl_capi_xfer_req_t made = request(&pair.a, NIXL_CAPI_XFER_OP_WRITE, &pair.b, WORKER_BYTES, done);
    OK(kvasir_loopback_delay("a", 20000, 0));
    const uint64_t start = now_us();
    IN_PROGRESS(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    CHECK(filled(pair.b.memory, 0, WORKER_BYTES, 'b'));
    expect_silence(&pair.b);
    struct nixl_capi_xfer_telemetry_s telemetry = {0};
    IN_PROGRESS(nixl_capi_get_xfer_telemetry(pair.a.agent, made, &telemetry));
    OK(poll_to_the_end(&pair.a, made));
    CHECK(now_us() - start >= 20000);
    CHECK(filled(pair.b.memory, 0, WORKER_BYTES, 'a'));
    expect_message(&pair.b, "a", "done");
    OK(nixl_capi_get_xfer_telemetry(pair.a.agent, made, &telemetry));
    CHECK(telemetry.xfer_duration_us >= 20000 && telemetry.post_duration_us <= telemetry.xfer_duration_us);
    request_end(&pair.a, made);
    OK(nixl_capi_destroy_opt_args(done));
    pair_stop(&pair);
}

static void bandwidth_makes_long_requests_last_longer(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_req_t one = request(&pair.a, NIXL_CAPI_XFER_OP_READ, &pair.b, 1, NULL);
    nixl_capi_xfer_req_t all = read_request(&pair);
    OK(kvasir_loopback_delay("b", 0, 2));
    OK(nixl_capi_post_xfer_req(pair.a.agent, one, NULL));
    const uint64_t start = now_us();
    IN_PROGRESS(nixl_capi_post_xfer_req(pair.a.agent, all, NULL));
    OK(poll_to_the_end(&pair.a, all));
    CHECK(now_us() - start >= WORKER_BYTES / 2);
    request_end(&pair.a, one);
    request_end(&pair.a, all);
    pair_stop(&pair);
}

static void the_longest_delay_counts_and_those_of_others_do_not(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_req_t made = read_request(&pair);
    int64_t duration = 0;
    int64_t margin = 0;
    nixl_capi_cost_t method = NIXL_CAPI_COST_ANALYTICAL_BACKEND;
    OK(kvasir_loopback_delay("c", 7000, 0));
    OK(nixl_capi_estimate_xfer_cost(pair.a.agent, made, NULL, &duration, &margin, &method));
    CHECK(duration == 0);
    OK(kvasir_loopback_delay(NULL, 10, 0));
    OK(kvasir_loopback_delay("a", 30, 0));
    OK(kvasir_loopback_delay("b", 20, 0));
    OK(nixl_capi_estimate_xfer_cost(pair.a.agent, made, NULL, &duration, &margin, &method));
    CHECK(duration == 30);
    OK(kvasir_loopback_delay("a", UINT64_MAX, 1));
    OK(nixl_capi_estimate_xfer_cost(pair.a.agent, made, NULL, &duration, &margin, &method));
    CHECK(duration == INT64_MAX);
    IN_PROGRESS(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    request_end(&pair.a, made);
    pair_stop(&pair);
}

static void a_running_request_is_not_posted_again(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_req_t made = read_request(&pair);
    OK(kvasir_loopback_stick("a", true));
    IN_PROGRESS(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    BACKEND_ERROR(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    IN_PROGRESS(nixl_capi_get_xfer_status(pair.a.agent, made));
    request_end(&pair.a, made);
    pair_stop(&pair);
}

static void a_stuck_request_goes_on_when_it_is_freed(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_req_t made = read_request(&pair);
    OK(kvasir_loopback_stick("b", true));
    IN_PROGRESS(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    for (int i = 0; i < 1000; i++) {
        IN_PROGRESS(nixl_capi_get_xfer_status(pair.a.agent, made));
    }
    CHECK(filled(pair.a.memory, 0, WORKER_BYTES, 'a'));
    OK(kvasir_loopback_stick("b", false));
    OK(nixl_capi_get_xfer_status(pair.a.agent, made));
    CHECK(filled(pair.a.memory, 0, WORKER_BYTES, 'b'));
    request_end(&pair.a, made);
    pair_stop(&pair);
}

static void a_request_posted_before_sticks_too(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_req_t made = read_request(&pair);
    OK(kvasir_loopback_delay(NULL, 1, 0));
    (void)nixl_capi_post_xfer_req(pair.a.agent, made, NULL);
    OK(kvasir_loopback_stick(NULL, true));
    OK(kvasir_loopback_delay(NULL, LONG_US, 0));
    nixl_capi_xfer_req_t second = read_request(&pair);
    IN_PROGRESS(nixl_capi_post_xfer_req(pair.a.agent, second, NULL));
    kvasir_loopback_heal();
    IN_PROGRESS(nixl_capi_get_xfer_status(pair.a.agent, second));
    OK(poll_to_the_end(&pair.a, made));
    request_end(&pair.a, made);
    request_end(&pair.a, second);
    pair_stop(&pair);
}

static void a_released_running_request_never_arrives(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_opt_args_t done = notification("done");
    nixl_capi_xfer_req_t stuck = request(&pair.a, NIXL_CAPI_XFER_OP_WRITE, &pair.b, WORKER_BYTES, done);
    nixl_capi_xfer_req_t slow = request(&pair.a, NIXL_CAPI_XFER_OP_WRITE, &pair.b, WORKER_BYTES, done);
    OK(kvasir_loopback_delay("a", LONG_US, 0));
    IN_PROGRESS(nixl_capi_post_xfer_req(pair.a.agent, slow, NULL));
    OK(kvasir_loopback_delay("a", 0, 0));
    OK(kvasir_loopback_stick("a", true));
    IN_PROGRESS(nixl_capi_post_xfer_req(pair.a.agent, stuck, NULL));
    request_end(&pair.a, stuck);
    request_end(&pair.a, slow);
    kvasir_loopback_heal();
    CHECK(filled(pair.b.memory, 0, WORKER_BYTES, 'b'));
    expect_silence(&pair.b);
    OK(nixl_capi_destroy_opt_args(done));
    pair_stop(&pair);
}

static void a_release_that_fails_keeps_the_handle_and_the_transfer(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_req_t made = read_request(&pair);
    OK(kvasir_loopback_stick("a", true));
    IN_PROGRESS(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    OK(kvasir_loopback_fail_releases("a", 2));
    BACKEND_ERROR(nixl_capi_release_xfer_req(pair.a.agent, made));
    IS(NIXL_CAPI_ERROR_INVALID_STATE, nixl_capi_destroy_xfer_req(made));
    BACKEND_ERROR(nixl_capi_release_xfer_req(pair.a.agent, made));
    OK(kvasir_loopback_stick("a", false));
    OK(nixl_capi_get_xfer_status(pair.a.agent, made));
    CHECK(filled(pair.a.memory, 0, WORKER_BYTES, 'b'));
    request_end(&pair.a, made);
    pair_stop(&pair);
}

static void failing_releases_of_everybody_are_shared(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_req_t made = read_request(&pair);
    OK(kvasir_loopback_fail_releases("b", 5));
    OK(kvasir_loopback_fail_releases(NULL, 1));
    BACKEND_ERROR(nixl_capi_release_xfer_req(pair.a.agent, made));
    request_end(&pair.a, made);
    pair_stop(&pair);
}

static void returns_that_fail_keep_memory_and_nothing_else(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_dlist_handle_t prepared = prepare(&pair.a, "", pair.a.memory, WORKER_BYTES, 1);
    nixl_capi_xfer_req_t made = read_request(&pair);
    nixl_capi_reg_dlist_t all = reg_list(pair.a.memory, WORKER_BYTES);
    OK(kvasir_loopback_fail_returns("a", 2));
    BACKEND_ERROR(nixl_capi_release_xfer_dlist_handle(pair.a.agent, prepared));
    BACKEND_ERROR(nixl_capi_deregister_mem(pair.a.agent, all, NULL));
    OK(nixl_capi_deregister_mem(pair.a.agent, all, NULL));
    OK(nixl_capi_register_mem(pair.a.agent, all, NULL));
    OK(nixl_capi_destroy_reg_dlist(all));
    OK(kvasir_loopback_fail_returns(NULL, 1));
    OK(nixl_capi_release_xfer_req(pair.a.agent, made));
    BACKEND_ERROR(nixl_capi_destroy_xfer_req(made));
    pair_stop(&pair);
}

static void a_cut_connection_fails_posts_polls_and_notifications_until_metadata_comes_again(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_req_t running = read_request(&pair);
    OK(kvasir_loopback_delay("a", LONG_US, 0));
    IN_PROGRESS(nixl_capi_post_xfer_req(pair.a.agent, running, NULL));
    OK(kvasir_loopback_delay("a", 0, 0));
    OK(kvasir_loopback_disconnect("b"));
    BACKEND_ERROR(nixl_capi_get_xfer_status(pair.a.agent, running));
    nixl_capi_xfer_req_t fresh = read_request(&pair);
    BACKEND_ERROR(nixl_capi_post_xfer_req(pair.a.agent, fresh, NULL));
    BACKEND_ERROR(nixl_capi_get_xfer_status(pair.a.agent, fresh));
    BACKEND_ERROR(nixl_capi_gen_notif(pair.a.agent, "b", "x", 1, NULL));
    BACKEND_ERROR(nixl_capi_agent_make_connection(pair.a.agent, "b", NULL));
    OK(nixl_capi_check_remote_md(pair.a.agent, "b", NULL));
    CHECK(filled(pair.a.memory, 0, WORKER_BYTES, 'a'));
    kvasir_loopback_heal();
    BACKEND_ERROR(nixl_capi_post_xfer_req(pair.a.agent, fresh, NULL));
    OK(introduce(&pair.b, &pair.a));
    BACKEND_ERROR(nixl_capi_get_xfer_status(pair.a.agent, running));
    OK(nixl_capi_post_xfer_req(pair.a.agent, fresh, NULL));
    OK(nixl_capi_gen_notif(pair.a.agent, "b", "x", 1, NULL));
    request_end(&pair.a, running);
    request_end(&pair.a, fresh);
    pair_stop(&pair);
}

static void a_cut_agent_itself_still_reaches_others(void) {
    struct pair pair;
    pair_start(&pair);
    OK(kvasir_loopback_disconnect("a"));
    OK(nixl_capi_gen_notif(pair.a.agent, "b", "x", 1, NULL));
    OK(nixl_capi_gen_notif(pair.a.agent, "a", "x", 1, NULL));
    NOT_FOUND(kvasir_loopback_disconnect("nobody"));
    INVALID(kvasir_loopback_disconnect(NULL));
    pair_stop(&pair);
}

static void a_destroyed_peer_is_gone_and_a_new_one_of_its_name_is_another(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_req_t running = read_request(&pair);
    OK(kvasir_loopback_stick("a", true));
    IN_PROGRESS(nixl_capi_post_xfer_req(pair.a.agent, running, NULL));
    worker_stop(&pair.b);
    BACKEND_ERROR(nixl_capi_get_xfer_status(pair.a.agent, running));
    BACKEND_ERROR(nixl_capi_gen_notif(pair.a.agent, "b", "x", 1, NULL));
    kvasir_loopback_heal();
    worker_start(&pair.b, "b", 'n');
    nixl_capi_xfer_req_t made = read_request(&pair);
    BACKEND_ERROR(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    BACKEND_ERROR(introduce(&pair.b, &pair.a));
    request_end(&pair.a, running);
    request_end(&pair.a, made);
    OK(nixl_capi_invalidate_remote_md(pair.a.agent, "b"));
    OK(introduce(&pair.b, &pair.a));
    made = read_request(&pair);
    OK(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    CHECK(filled(pair.a.memory, 0, WORKER_BYTES, 'n'));
    request_end(&pair.a, made);
    pair_stop(&pair);
}

static void metadata_of_a_dead_agent_loads_and_leads_nowhere(void) {
    struct pair pair;
    pair_start(&pair);
    OK(nixl_capi_invalidate_remote_md(pair.a.agent, "b"));
    void *metadata = NULL;
    size_t length = 0;
    OK(nixl_capi_get_local_md(pair.b.agent, &metadata, &length));
    worker_stop(&pair.b);
    char *name = NULL;
    OK(nixl_capi_load_remote_md(pair.a.agent, metadata, length, &name));
    nixl_capi_xfer_req_t made = read_request(&pair);
    BACKEND_ERROR(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    request_end(&pair.a, made);
    free(name);
    free(metadata);
    worker_stop(&pair.a);
}

static void lost_notifications_are_lost_without_a_word(void) {
    struct pair pair;
    pair_start(&pair);
    nixl_capi_opt_args_t done = notification("done");
    nixl_capi_xfer_req_t made = request(&pair.a, NIXL_CAPI_XFER_OP_WRITE, &pair.b, 16, done);
    OK(kvasir_loopback_lose_notifications("b", 2));
    OK(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    OK(nixl_capi_gen_notif(pair.a.agent, "a", "to another", 10, NULL));
    OK(nixl_capi_gen_notif(pair.a.agent, "b", "lost", 4, NULL));
    expect_silence(&pair.b);
    OK(nixl_capi_gen_notif(pair.a.agent, "b", "arrives", 7, NULL));
    expect_message(&pair.b, "a", "arrives");
    CHECK(filled(pair.b.memory, 0, 16, 'a'));
    CHECK(counter("a", KVASIR_LOOPBACK_NOTIFICATIONS_DROPPED) == 2);
    CHECK(counter("a", KVASIR_LOOPBACK_NOTIFICATIONS_SENT) == 2);
    OK(kvasir_loopback_lose_notifications(NULL, 1));
    OK(nixl_capi_gen_notif(pair.a.agent, "b", "lost", 4, NULL));
    expect_silence(&pair.b);
    request_end(&pair.a, made);
    OK(nixl_capi_destroy_opt_args(done));
    pair_stop(&pair);
}

static void counters_tell_what_each_agent_did(void) {
    const uint64_t posts = counter(NULL, KVASIR_LOOPBACK_POSTS);
    const uint64_t bytes = counter(NULL, KVASIR_LOOPBACK_BYTES);
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_req_t made = read_request(&pair);
    OK(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    OK(kvasir_loopback_disconnect("b"));
    BACKEND_ERROR(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    CHECK(counter("a", KVASIR_LOOPBACK_POSTS) == 2);
    CHECK(counter("a", KVASIR_LOOPBACK_BYTES) == WORKER_BYTES);
    CHECK(counter("b", KVASIR_LOOPBACK_POSTS) == 0);
    CHECK(counter("b", KVASIR_LOOPBACK_REGISTERED_BYTES) == WORKER_BYTES);
    CHECK(counter(NULL, KVASIR_LOOPBACK_REGISTERED_BYTES) == 2 * WORKER_BYTES);
    CHECK(counter(NULL, KVASIR_LOOPBACK_LIVE_HANDLES) == 7);
    request_end(&pair.a, made);
    pair_stop(&pair);
    CHECK(counter(NULL, KVASIR_LOOPBACK_POSTS) == posts + 2);
    CHECK(counter(NULL, KVASIR_LOOPBACK_BYTES) == bytes + WORKER_BYTES);
    uint64_t words[KVASIR_LOOPBACK_COUNTERS];
    NOT_FOUND(kvasir_loopback_counters("a", words));
    INVALID(kvasir_loopback_counters(NULL, NULL));
}

static void faults_are_set_before_the_agent_exists_and_end_by_healing(void) {
    OK(kvasir_loopback_stick("a", true));
    struct pair pair;
    pair_start(&pair);
    nixl_capi_xfer_req_t made = read_request(&pair);
    IN_PROGRESS(nixl_capi_post_xfer_req(pair.a.agent, made, NULL));
    kvasir_loopback_heal();
    OK(nixl_capi_get_xfer_status(pair.a.agent, made));
    request_end(&pair.a, made);
    pair_stop(&pair);
}

int main(void) {
    static void (*const tests[])(void) = {
        delayed_bytes_and_notifications_arrive_when_due_and_not_before,
        bandwidth_makes_long_requests_last_longer,
        the_longest_delay_counts_and_those_of_others_do_not,
        a_running_request_is_not_posted_again,
        a_stuck_request_goes_on_when_it_is_freed,
        a_request_posted_before_sticks_too,
        a_released_running_request_never_arrives,
        a_release_that_fails_keeps_the_handle_and_the_transfer,
        failing_releases_of_everybody_are_shared,
        returns_that_fail_keep_memory_and_nothing_else,
        a_cut_connection_fails_posts_polls_and_notifications_until_metadata_comes_again,
        a_cut_agent_itself_still_reaches_others,
        a_destroyed_peer_is_gone_and_a_new_one_of_its_name_is_another,
        metadata_of_a_dead_agent_loads_and_leads_nowhere,
        lost_notifications_are_lost_without_a_word,
        counters_tell_what_each_agent_did,
        faults_are_set_before_the_agent_exists_and_end_by_healing,
    };
    RUN_ALL(tests)
    return 0;
}
