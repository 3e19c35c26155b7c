/*
 * Plugins, backends and parameters of the loopback library: one plugin for DRAM and VRAM, one backend of it per agent.
 * A handle of the wrong kind is INVALID_PARAM here where NIXL itself would misread memory; a destroyed
 * handle stays undefined, as it is there.
 */
#include "loopback_internal.h"

#include <stdlib.h>
#include <string.h>

#define MAX_PARAMS 32

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

int kvasir_loopback_abi(void) { return KVASIR_LOOPBACK_ABI; }

bool nixl_capi_is_stub(void) { return false; }

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
    *string = LOOPBACK_PLUGIN;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_destroy_string_list(nixl_capi_string_list_t list) {
    return handle_destroy(list, STRINGS);
}

/* VRAM is moved as if it were the host's, which it is where a stand-in for the CUDA driver allocated it. */
static const nixl_capi_mem_type_t MOVED[] = {NIXL_CAPI_MEM_DRAM, NIXL_CAPI_MEM_VRAM};

bool memory_moves(nixl_capi_mem_type_t memory) { return memory == MOVED[0] || memory == MOVED[1]; }

/* The memory kinds and parameters of the plugin, and of every backend made of it. */
static nixl_capi_status_t describe(nixl_capi_mem_list_t *memories, nixl_capi_params_t *params) {
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

nixl_capi_status_t nixl_capi_get_plugin_params(
    nixl_capi_agent_t agent, const char *plugin, nixl_capi_mem_list_t *memories, nixl_capi_params_t *params) {
    if (!handle_is(agent, AGENT) || plugin == NULL || memories == NULL || params == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    return strcmp(plugin, LOOPBACK_PLUGIN) == 0 ? describe(memories, params) : NIXL_CAPI_ERROR_BACKEND;
}

nixl_capi_status_t nixl_capi_get_backend_params(
    nixl_capi_agent_t agent, nixl_capi_backend_t backend, nixl_capi_mem_list_t *memories,
    nixl_capi_params_t *params) {
    if (!handle_is(agent, AGENT) || !handle_is(backend, BACKEND) || memories == NULL || params == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    return backend->instance == agent->instance ? describe(memories, params) : NIXL_CAPI_ERROR_BACKEND;
}

nixl_capi_status_t nixl_capi_mem_type_to_string(nixl_capi_mem_type_t memory, const char **string) {
    static const char *const names[] = {"DRAM", "VRAM", "BLOCK", "OBJECT", "FILE", "UNKNOWN"};
    if (string == NULL || (size_t)memory >= sizeof names / sizeof names[0]) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *string = names[memory];
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_mem_list_is_empty(nixl_capi_mem_list_t list, bool *is_empty) {
    if (!handle_is(list, MEMORIES) || is_empty == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *is_empty = false;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_mem_list_size(nixl_capi_mem_list_t list, size_t *size) {
    if (!handle_is(list, MEMORIES) || size == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *size = sizeof MOVED / sizeof MOVED[0];
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_mem_list_get(nixl_capi_mem_list_t list, size_t index, nixl_capi_mem_type_t *memory) {
    if (!handle_is(list, MEMORIES) || memory == NULL || index >= sizeof MOVED / sizeof MOVED[0]) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *memory = MOVED[index];
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_destroy_mem_list(nixl_capi_mem_list_t list) { return handle_destroy(list, MEMORIES); }

nixl_capi_status_t nixl_capi_create_backend(
    nixl_capi_agent_t agent, const char *plugin, nixl_capi_params_t params, nixl_capi_backend_t *backend) {
    if (!handle_is(agent, AGENT) || plugin == NULL || !handle_is(params, PARAMS) || backend == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    nixl_capi_backend_t made = handle_new(sizeof *made, BACKEND);
    if (made == NULL) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    world_lock();
    /* NIXL too makes one backend of a type per agent and calls every failure BACKEND */
    const bool allowed = strcmp(plugin, LOOPBACK_PLUGIN) == 0 && !agent->has_backend;
    agent->has_backend |= allowed;
    made->instance = agent->instance;
    world_unlock();
    if (!allowed) {
        handle_free(made);
        return NIXL_CAPI_ERROR_BACKEND;
    }
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
