/*
 * A stand-in for libnixl_capi.so with the same names: agents, one plugin, its parameters and its backend.
 * It moves no bytes. Handles carry a tag, so that a handle of the wrong kind is INVALID_PARAM here where
 * NIXL itself would misread memory; a destroyed handle stays undefined, as it is there. Lists and
 * parameters belong to one thread; the count of live handles is the only shared state.
 */
#include "kvasir_loopback.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define PLUGIN "LOOPBACK"
#define MAX_PARAMS 32

enum tag { AGENT = 0x4b564147, BACKEND, STRINGS, MEMORIES, PARAMS, ITERATOR };

struct nixl_capi_agent_s {
    enum tag tag;
    bool has_backend;
    char *name;
    nixl_capi_agent_config_t config;
};

struct nixl_capi_backend_s {
    enum tag tag;
};

struct nixl_capi_string_list_s {
    enum tag tag;
};

struct nixl_capi_mem_list_s {
    enum tag tag;
};

struct nixl_capi_params_s {
    enum tag tag;
    size_t count;
    char *keys[MAX_PARAMS];
    char *values[MAX_PARAMS];
};

struct nixl_capi_param_iter_s {
    enum tag tag;
    nixl_capi_params_t params;
    size_t next;
};

static atomic_int_fast64_t live_handles;

/* Allocates a zeroed handle; its tag is the first member of every handle. */
static void *handle_new(size_t size, enum tag tag) {
    enum tag *handle = calloc(1, size);
    if (handle != NULL) {
        *handle = tag;
        atomic_fetch_add_explicit(&live_handles, 1, memory_order_relaxed);
    }
    return handle;
}

static bool handle_is(const void *handle, enum tag tag) {
    return handle != NULL && *(const enum tag *)handle == tag;
}

static void handle_free(void *handle) {
    free(handle);
    atomic_fetch_sub_explicit(&live_handles, 1, memory_order_relaxed);
}

static nixl_capi_status_t handle_destroy(void *handle, enum tag tag) {
    if (!handle_is(handle, tag)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    handle_free(handle);
    return NIXL_CAPI_SUCCESS;
}

int kvasir_loopback_abi(void) { return KVASIR_LOOPBACK_ABI; }

int64_t kvasir_loopback_live_handles(void) { return atomic_load_explicit(&live_handles, memory_order_relaxed); }

void kvasir_loopback_agent_config_layout(uint64_t words[KVASIR_LOOPBACK_LAYOUT_WORDS]) {
    words[0] = sizeof(nixl_capi_agent_config_t);
    words[1] = offsetof(nixl_capi_agent_config_t, enable_prog_thread);
    words[2] = offsetof(nixl_capi_agent_config_t, enable_listen_thread);
    words[3] = offsetof(nixl_capi_agent_config_t, listen_port);
    words[4] = offsetof(nixl_capi_agent_config_t, thread_sync);
    words[5] = offsetof(nixl_capi_agent_config_t, num_workers);
    words[6] = offsetof(nixl_capi_agent_config_t, pthr_delay_us);
    words[7] = offsetof(nixl_capi_agent_config_t, lthr_delay_us);
    words[8] = offsetof(nixl_capi_agent_config_t, capture_telemetry);
}

bool nixl_capi_is_stub(void) { return false; }

nixl_capi_status_t nixl_capi_create_agent(const char *name, nixl_capi_agent_t *agent) {
    const nixl_capi_agent_config_t defaults = {.thread_sync = NIXL_CAPI_THREAD_SYNC_NONE};
    return nixl_capi_create_configured_agent(name, &defaults, agent);
}

nixl_capi_status_t nixl_capi_create_configured_agent(
    const char *name, const nixl_capi_agent_config_t *config, nixl_capi_agent_t *agent) {
    if (name == NULL || config == NULL || agent == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    nixl_capi_agent_t made = handle_new(sizeof *made, AGENT);
    if (made == NULL) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    made->config = *config;
    made->name = strdup(name);
    if (made->name == NULL) {
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
    free(agent->name);
    handle_free(agent);
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_get_available_plugins(nixl_capi_agent_t agent, nixl_capi_string_list_t *plugins) {
    if (!handle_is(agent, AGENT) || plugins == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *plugins = handle_new(sizeof **plugins, STRINGS);
    return *plugins == NULL ? NIXL_CAPI_ERROR_BACKEND : NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_string_list_size(nixl_capi_string_list_t list, size_t *size) {
    if (!handle_is(list, STRINGS) || size == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *size = 1;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_string_list_get(nixl_capi_string_list_t list, size_t index, const char **string) {
    if (!handle_is(list, STRINGS) || string == NULL || index != 0) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *string = PLUGIN;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_destroy_string_list(nixl_capi_string_list_t list) {
    return handle_destroy(list, STRINGS);
}

nixl_capi_status_t nixl_capi_get_plugin_params(
    nixl_capi_agent_t agent, const char *plugin, nixl_capi_mem_list_t *memories, nixl_capi_params_t *params) {
    if (!handle_is(agent, AGENT) || plugin == NULL || memories == NULL || params == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    if (strcmp(plugin, PLUGIN) != 0) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    nixl_capi_mem_list_t made_memories = handle_new(sizeof *made_memories, MEMORIES);
    nixl_capi_params_t made_params = NULL;
    nixl_capi_status_t status =
        made_memories == NULL ? NIXL_CAPI_ERROR_BACKEND : nixl_capi_create_params(&made_params);
    if (status == NIXL_CAPI_SUCCESS) {
        status = nixl_capi_params_add(made_params, "copy", "memcpy");
    }
    if (status != NIXL_CAPI_SUCCESS) {
        (void)nixl_capi_destroy_mem_list(made_memories);
        (void)nixl_capi_destroy_params(made_params);
        return status;
    }
    *memories = made_memories;
    *params = made_params;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_mem_list_size(nixl_capi_mem_list_t list, size_t *size) {
    if (!handle_is(list, MEMORIES) || size == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *size = 1;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_mem_list_get(nixl_capi_mem_list_t list, size_t index, nixl_capi_mem_type_t *memory) {
    if (!handle_is(list, MEMORIES) || memory == NULL || index != 0) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *memory = NIXL_CAPI_MEM_DRAM;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_destroy_mem_list(nixl_capi_mem_list_t list) { return handle_destroy(list, MEMORIES); }

nixl_capi_status_t nixl_capi_create_backend(
    nixl_capi_agent_t agent, const char *plugin, nixl_capi_params_t params, nixl_capi_backend_t *backend) {
    if (!handle_is(agent, AGENT) || plugin == NULL || !handle_is(params, PARAMS) || backend == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    /* NIXL too makes one backend of a type per agent and calls every failure BACKEND */
    if (strcmp(plugin, PLUGIN) != 0 || agent->has_backend) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    nixl_capi_backend_t made = handle_new(sizeof *made, BACKEND);
    if (made == NULL) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    agent->has_backend = true;
    *backend = made;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_destroy_backend(nixl_capi_backend_t backend) {
    return handle_destroy(backend, BACKEND);
}

nixl_capi_status_t nixl_capi_create_params(nixl_capi_params_t *params) {
    if (params == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *params = handle_new(sizeof **params, PARAMS);
    return *params == NULL ? NIXL_CAPI_ERROR_BACKEND : NIXL_CAPI_SUCCESS;
}

/* Returns the place of the key, or count when it is not there. */
static size_t params_find(const struct nixl_capi_params_s *params, const char *key) {
    size_t place = 0;
    while (place < params->count && strcmp(params->keys[place], key) != 0) {
        place++;
    }
    return place;
}

nixl_capi_status_t nixl_capi_params_add(nixl_capi_params_t params, const char *key, const char *value) {
    if (!handle_is(params, PARAMS) || key == NULL || value == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    const size_t place = params_find(params, key);
    if (place == MAX_PARAMS) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    char *copied_value = strdup(value);
    if (copied_value == NULL) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    if (place == params->count) {
        char *copied_key = strdup(key);
        if (copied_key == NULL) {
            free(copied_value);
            return NIXL_CAPI_ERROR_BACKEND;
        }
        params->keys[place] = copied_key;
        params->count++;
    }
    free(params->values[place]);
    params->values[place] = copied_value;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_params_is_empty(nixl_capi_params_t params, bool *is_empty) {
    if (!handle_is(params, PARAMS) || is_empty == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *is_empty = params->count == 0;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_params_create_iterator(nixl_capi_params_t params, nixl_capi_param_iter_t *iterator) {
    if (!handle_is(params, PARAMS) || iterator == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    nixl_capi_param_iter_t made = handle_new(sizeof *made, ITERATOR);
    if (made == NULL) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    made->params = params;
    *iterator = made;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_params_iterator_next(
    nixl_capi_param_iter_t iterator, const char **key, const char **value, bool *has_next) {
    if (!handle_is(iterator, ITERATOR) || key == NULL || value == NULL || has_next == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    /* past the end NIXL answers SUCCESS, sets has_next alone and leaves key and value as they were */
    if (iterator->next < iterator->params->count) {
        *key = iterator->params->keys[iterator->next];
        *value = iterator->params->values[iterator->next];
        iterator->next++;
    }
    *has_next = iterator->next < iterator->params->count;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_params_destroy_iterator(nixl_capi_param_iter_t iterator) {
    return handle_destroy(iterator, ITERATOR);
}

nixl_capi_status_t nixl_capi_destroy_params(nixl_capi_params_t params) {
    if (!handle_is(params, PARAMS)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    for (size_t i = 0; i < params->count; i++) {
        free(params->keys[i]);
        free(params->values[i]);
    }
    handle_free(params);
    return NIXL_CAPI_SUCCESS;
}
