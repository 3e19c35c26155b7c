/* Agents, plugins, backends, parameters, layouts. */
#include "check.h"

static nixl_capi_agent_t agent_new(void) {
    nixl_capi_agent_t agent = NULL;
    CHECK(nixl_capi_create_agent("worker-0", &agent) == NIXL_CAPI_SUCCESS);
    CHECK(agent != NULL);
    return agent;
}

static void agents_are_made_with_and_without_a_configuration(void) {
    const nixl_capi_agent_config_t config = {
        .enable_prog_thread = true, .thread_sync = NIXL_CAPI_THREAD_SYNC_STRICT, .pthr_delay_us = 100};
    nixl_capi_agent_t configured = NULL;
    CHECK(nixl_capi_create_configured_agent("worker-1", &config, &configured) == NIXL_CAPI_SUCCESS);
    nixl_capi_agent_t plain = agent_new();
    CHECK(kvasir_loopback_live_handles() == 2);
    CHECK(nixl_capi_destroy_agent(plain) == NIXL_CAPI_SUCCESS);
    CHECK(nixl_capi_destroy_agent(configured) == NIXL_CAPI_SUCCESS);
}

static void missing_arguments_are_refused_and_make_nothing(void) {
    nixl_capi_agent_t agent = NULL;
    CHECK(nixl_capi_create_agent(NULL, &agent) == NIXL_CAPI_ERROR_INVALID_PARAM);
    CHECK(nixl_capi_create_agent("a", NULL) == NIXL_CAPI_ERROR_INVALID_PARAM);
    CHECK(nixl_capi_create_configured_agent("a", NULL, &agent) == NIXL_CAPI_ERROR_INVALID_PARAM);
    CHECK(nixl_capi_destroy_agent(NULL) == NIXL_CAPI_ERROR_INVALID_PARAM);
    CHECK(nixl_capi_destroy_params(NULL) == NIXL_CAPI_ERROR_INVALID_PARAM);
    CHECK(agent == NULL);
}

static void a_handle_of_another_kind_is_refused(void) {
    nixl_capi_agent_t agent = agent_new();
    CHECK(nixl_capi_destroy_params((nixl_capi_params_t)(void *)agent) == NIXL_CAPI_ERROR_INVALID_PARAM);
    CHECK(nixl_capi_destroy_string_list((nixl_capi_string_list_t)(void *)agent) == NIXL_CAPI_ERROR_INVALID_PARAM);
    CHECK(nixl_capi_destroy_agent(agent) == NIXL_CAPI_SUCCESS);
}

static void the_one_plugin_is_listed(void) {
    nixl_capi_agent_t agent = agent_new();
    nixl_capi_string_list_t plugins = NULL;
    CHECK(nixl_capi_get_available_plugins(agent, &plugins) == NIXL_CAPI_SUCCESS);
    size_t size = 0;
    CHECK(nixl_capi_string_list_size(plugins, &size) == NIXL_CAPI_SUCCESS && size == 1);
    const char *name = NULL;
    CHECK(nixl_capi_string_list_get(plugins, 0, &name) == NIXL_CAPI_SUCCESS && strcmp(name, "LOOPBACK") == 0);
    CHECK(nixl_capi_string_list_get(plugins, 1, &name) == NIXL_CAPI_ERROR_INVALID_PARAM);
    CHECK(nixl_capi_destroy_string_list(plugins) == NIXL_CAPI_SUCCESS);
    CHECK(nixl_capi_destroy_agent(agent) == NIXL_CAPI_SUCCESS);
}

static void a_plugin_tells_its_memory_kinds_and_parameters(void) {
    nixl_capi_agent_t agent = agent_new();
    nixl_capi_mem_list_t memories = NULL;
    nixl_capi_params_t params = NULL;
    CHECK(nixl_capi_get_plugin_params(agent, "UCX", &memories, &params) == NIXL_CAPI_ERROR_BACKEND);
    CHECK(nixl_capi_get_plugin_params(agent, "LOOPBACK", &memories, &params) == NIXL_CAPI_SUCCESS);
    size_t size = 0;
    nixl_capi_mem_type_t memory = NIXL_CAPI_MEM_UNKNOWN;
    CHECK(nixl_capi_mem_list_size(memories, &size) == NIXL_CAPI_SUCCESS && size == 2);
    CHECK(nixl_capi_mem_list_get(memories, 0, &memory) == NIXL_CAPI_SUCCESS && memory == NIXL_CAPI_MEM_DRAM);
    CHECK(nixl_capi_mem_list_get(memories, 1, &memory) == NIXL_CAPI_SUCCESS && memory == NIXL_CAPI_MEM_VRAM);
    CHECK(nixl_capi_mem_list_get(memories, 2, &memory) == NIXL_CAPI_ERROR_INVALID_PARAM);
    CHECK(nixl_capi_destroy_mem_list(memories) == NIXL_CAPI_SUCCESS);
    CHECK(nixl_capi_destroy_params(params) == NIXL_CAPI_SUCCESS);
    CHECK(nixl_capi_destroy_agent(agent) == NIXL_CAPI_SUCCESS);
}

static void parameters_keep_the_last_value_of_a_key_and_iterate_once_each(void) {
    nixl_capi_params_t params = NULL;
    CHECK(nixl_capi_create_params(&params) == NIXL_CAPI_SUCCESS);
    bool flag = false;
    CHECK(nixl_capi_params_is_empty(params, &flag) == NIXL_CAPI_SUCCESS && flag);
    CHECK(nixl_capi_params_add(params, "a", "1") == NIXL_CAPI_SUCCESS);
    CHECK(nixl_capi_params_add(params, "b", "2") == NIXL_CAPI_SUCCESS);
    CHECK(nixl_capi_params_add(params, "a", "3") == NIXL_CAPI_SUCCESS);
    nixl_capi_param_iter_t iterator = NULL;
    CHECK(nixl_capi_params_create_iterator(params, &iterator) == NIXL_CAPI_SUCCESS);
    const char *key = NULL;
    const char *value = NULL;
    CHECK(nixl_capi_params_iterator_next(iterator, &key, &value, &flag) == NIXL_CAPI_SUCCESS);
    CHECK(strcmp(key, "a") == 0 && strcmp(value, "3") == 0 && flag);
    CHECK(nixl_capi_params_iterator_next(iterator, &key, &value, &flag) == NIXL_CAPI_SUCCESS);
    CHECK(strcmp(key, "b") == 0 && strcmp(value, "2") == 0 && !flag);
    CHECK(nixl_capi_params_destroy_iterator(iterator) == NIXL_CAPI_SUCCESS);
    CHECK(nixl_capi_destroy_params(params) == NIXL_CAPI_SUCCESS);
}

static void a_full_parameter_list_refuses_a_new_key_and_still_takes_a_known_one(void) {
    nixl_capi_params_t params = NULL;
    CHECK(nixl_capi_create_params(&params) == NIXL_CAPI_SUCCESS);
    for (int i = 0; i < 32; i++) {
        char key[16];
        (void)snprintf(key, sizeof key, "key-%d", i);
        CHECK(nixl_capi_params_add(params, key, "v") == NIXL_CAPI_SUCCESS);
    }
    CHECK(nixl_capi_params_add(params, "one too many", "v") == NIXL_CAPI_ERROR_BACKEND);
    CHECK(nixl_capi_params_add(params, "key-31", "w") == NIXL_CAPI_SUCCESS);
    CHECK(nixl_capi_destroy_params(params) == NIXL_CAPI_SUCCESS);
}

static void an_agent_makes_one_backend(void) {
    nixl_capi_agent_t agent = agent_new();
    nixl_capi_params_t params = NULL;
    CHECK(nixl_capi_create_params(&params) == NIXL_CAPI_SUCCESS);
    nixl_capi_backend_t backend = NULL;
    CHECK(nixl_capi_create_backend(agent, "LOOPBACK", NULL, &backend) == NIXL_CAPI_ERROR_INVALID_PARAM);
    CHECK(nixl_capi_create_backend(agent, "UCX", params, &backend) == NIXL_CAPI_ERROR_BACKEND);
    CHECK(nixl_capi_create_backend(agent, "LOOPBACK", params, &backend) == NIXL_CAPI_SUCCESS);
    nixl_capi_backend_t second = NULL;
    CHECK(nixl_capi_create_backend(agent, "LOOPBACK", params, &second) == NIXL_CAPI_ERROR_BACKEND);
    CHECK(nixl_capi_destroy_backend(backend) == NIXL_CAPI_SUCCESS);
    CHECK(nixl_capi_destroy_params(params) == NIXL_CAPI_SUCCESS);
    CHECK(nixl_capi_destroy_agent(agent) == NIXL_CAPI_SUCCESS);
}

static void a_backend_tells_what_its_plugin_tells(void) {
    nixl_capi_agent_t agent = agent_new();
    nixl_capi_params_t params = NULL;
    OK(nixl_capi_create_params(&params));
    nixl_capi_backend_t backend = NULL;
    OK(nixl_capi_create_backend(agent, "LOOPBACK", params, &backend));
    OK(nixl_capi_destroy_params(params));
    nixl_capi_mem_list_t memories = NULL;
    OK(nixl_capi_get_backend_params(agent, backend, &memories, &params));
    bool flag = true;
    OK(nixl_capi_mem_list_is_empty(memories, &flag));
    CHECK(!flag);
    OK(nixl_capi_params_is_empty(params, &flag));
    CHECK(!flag);
    OK(nixl_capi_destroy_mem_list(memories));
    OK(nixl_capi_destroy_params(params));
    OK(nixl_capi_destroy_backend(backend));
    OK(nixl_capi_destroy_agent(agent));
}

static void a_name_is_taken_as_long_as_its_agent_lives(void) {
    nixl_capi_agent_t agent = agent_new();
    nixl_capi_agent_t second = NULL;
    BACKEND_ERROR(nixl_capi_create_agent("worker-0", &second));
    BACKEND_ERROR(nixl_capi_create_agent("", &second));
    CHECK(second == NULL);
    OK(nixl_capi_destroy_agent(agent));
    OK(nixl_capi_create_agent("worker-0", &second));
    OK(nixl_capi_destroy_agent(second));
}

static void memory_kinds_have_names(void) {
    const char *name = NULL;
    OK(nixl_capi_mem_type_to_string(NIXL_CAPI_MEM_VRAM, &name));
    CHECK(strcmp(name, "VRAM") == 0);
    INVALID(nixl_capi_mem_type_to_string((nixl_capi_mem_type_t)6, &name));
}

static void layouts_are_those_of_nixl(void) {
    const uint64_t expected[KVASIR_LOOPBACK_LAYOUT_WORDS] = {40, 0, 1, 4, 8, 12, 16, 24, 32};
    uint64_t words[KVASIR_LOOPBACK_LAYOUT_WORDS] = {0};
    kvasir_loopback_agent_config_layout(words);
    CHECK(memcmp(words, expected, sizeof expected) == 0);
    const uint64_t telemetry[KVASIR_LOOPBACK_TELEMETRY_WORDS] = {40, 0, 8, 16, 24, 32};
    kvasir_loopback_telemetry_layout(words);
    CHECK(memcmp(words, telemetry, sizeof telemetry) == 0);
}

static void every_constant_can_be_asked_for(void) {
    const char *name = NULL;
    int64_t value = 0;
    size_t count = 0;
    bool seen = false;
    while (kvasir_loopback_constant(count, &name, &value)) {
        seen = seen || (strcmp(name, "NIXL_CAPI_ERROR_NOT_FOUND") == 0 && value == -6);
        count++;
    }
    CHECK(seen);
    CHECK(count == 20);
}

int main(void) {
    static void (*const tests[])(void) = {
        agents_are_made_with_and_without_a_configuration,
        missing_arguments_are_refused_and_make_nothing,
        a_handle_of_another_kind_is_refused,
        the_one_plugin_is_listed,
        a_plugin_tells_its_memory_kinds_and_parameters,
        parameters_keep_the_last_value_of_a_key_and_iterate_once_each,
        a_full_parameter_list_refuses_a_new_key_and_still_takes_a_known_one,
        an_agent_makes_one_backend,
        a_backend_tells_what_its_plugin_tells,
        a_name_is_taken_as_long_as_its_agent_lives,
        memory_kinds_have_names,
        layouts_are_those_of_nixl,
        every_constant_can_be_asked_for,
    };
    CHECK(kvasir_loopback_abi() == KVASIR_LOOPBACK_ABI);
    CHECK(!nixl_capi_is_stub());
    RUN_ALL(tests)
    return 0;
}
