/*
 * The part of NIXL's C ABI (nixl_capi_*, NIXL 1.0.1 to 1.5.1) that Kvasir binds: same names, argument
 * types and values as libnixl_capi.so, so that one set of Java bindings serves that library and the
 * loopback library built here. The ABI is plain C: opaque handles, out parameters, a status result.
 *
 * Ownership: every handle returned through an out parameter is destroyed by its own destroy function.
 * Strings handed out belong to the list, iterator or library they came from and live as long as it.
 * No function may be called twice with a handle that it destroys.
 */
#ifndef KVASIR_NIXL_CAPI_SUBSET_H
#define KVASIR_NIXL_CAPI_SUBSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KVASIR_EXPORT __attribute__((visibility("default")))

/* Results: 0 done, 1 still running, negative failed. NOT_FOUND exists from 1.5.0; before, BACKEND. */
typedef enum {
    NIXL_CAPI_SUCCESS = 0,
    NIXL_CAPI_IN_PROG = 1,
    NIXL_CAPI_ERROR_INVALID_PARAM = -1,
    NIXL_CAPI_ERROR_BACKEND = -2,
    NIXL_CAPI_ERROR_INVALID_STATE = -3,
    NIXL_CAPI_ERROR_EXCEPTION = -4,
    NIXL_CAPI_ERROR_NO_TELEMETRY = -5,
    NIXL_CAPI_ERROR_NOT_FOUND = -6
} nixl_capi_status_t;

/* Kinds of memory a descriptor list may hold; one kind per list. */
typedef enum {
    NIXL_CAPI_MEM_DRAM = 0,
    NIXL_CAPI_MEM_VRAM = 1,
    NIXL_CAPI_MEM_BLOCK = 2,
    NIXL_CAPI_MEM_OBJECT = 3,
    NIXL_CAPI_MEM_FILE = 4,
    NIXL_CAPI_MEM_UNKNOWN = 5
} nixl_capi_mem_type_t;

/* Locking inside an agent: none (the caller serialises), one lock for everything, readers and writers. */
typedef enum {
    NIXL_CAPI_THREAD_SYNC_NONE = 0,
    NIXL_CAPI_THREAD_SYNC_STRICT = 1,
    NIXL_CAPI_THREAD_SYNC_RW = 2
} nixl_capi_thread_sync_t;

/*
 *   0      1      2     4            8             12           16              24              32     33    40
 *   +------+------+-----+------------+-------------+------------+---------------+---------------+------+-----+
 *   | prog | list | pad | port:int   | sync:int    | workers:u32| pthr us:u64   | lthr us:u64   | tele | pad |
 *   +------+------+-----+------------+-------------+------------+---------------+---------------+------+-----+
 */
typedef struct nixl_capi_agent_config_s {
    bool enable_prog_thread;
    bool enable_listen_thread;
    int listen_port;
    nixl_capi_thread_sync_t thread_sync;
    unsigned int num_workers; /* ignored by NIXL: given as a parameter of the backend instead */
    uint64_t pthr_delay_us;
    uint64_t lthr_delay_us;
    bool capture_telemetry;
} nixl_capi_agent_config_t;

typedef struct nixl_capi_agent_s *nixl_capi_agent_t;
typedef struct nixl_capi_backend_s *nixl_capi_backend_t;
typedef struct nixl_capi_mem_list_s *nixl_capi_mem_list_t;
typedef struct nixl_capi_param_iter_s *nixl_capi_param_iter_t;
typedef struct nixl_capi_params_s *nixl_capi_params_t;
typedef struct nixl_capi_string_list_s *nixl_capi_string_list_t;

KVASIR_EXPORT bool nixl_capi_is_stub(void);

/* Agents. */
KVASIR_EXPORT nixl_capi_status_t nixl_capi_create_agent(const char *name, nixl_capi_agent_t *agent);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_create_configured_agent(
    const char *name, const nixl_capi_agent_config_t *config, nixl_capi_agent_t *agent);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_destroy_agent(nixl_capi_agent_t agent);

/* Plugins: what lies in the plugin folder. Asking for a plugin's parameters loads it. */
KVASIR_EXPORT nixl_capi_status_t nixl_capi_get_available_plugins(
    nixl_capi_agent_t agent, nixl_capi_string_list_t *plugins);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_get_plugin_params(
    nixl_capi_agent_t agent, const char *plugin, nixl_capi_mem_list_t *memories, nixl_capi_params_t *params);

/* Backends: the proof that a plugin works. The backend ends with its agent; destroy frees the handle. */
KVASIR_EXPORT nixl_capi_status_t nixl_capi_create_backend(
    nixl_capi_agent_t agent, const char *plugin, nixl_capi_params_t params, nixl_capi_backend_t *backend);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_destroy_backend(nixl_capi_backend_t backend);

/* String lists. */
KVASIR_EXPORT nixl_capi_status_t nixl_capi_string_list_size(nixl_capi_string_list_t list, size_t *size);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_string_list_get(
    nixl_capi_string_list_t list, size_t index, const char **string);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_destroy_string_list(nixl_capi_string_list_t list);

/* Lists of memory kinds. */
KVASIR_EXPORT nixl_capi_status_t nixl_capi_mem_list_size(nixl_capi_mem_list_t list, size_t *size);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_mem_list_get(
    nixl_capi_mem_list_t list, size_t index, nixl_capi_mem_type_t *memory);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_destroy_mem_list(nixl_capi_mem_list_t list);

/* Parameters: unique keys. has_next of an iterator step tells whether one more pair follows the one returned. */
KVASIR_EXPORT nixl_capi_status_t nixl_capi_create_params(nixl_capi_params_t *params);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_params_add(nixl_capi_params_t params, const char *key, const char *value);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_params_is_empty(nixl_capi_params_t params, bool *is_empty);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_params_create_iterator(
    nixl_capi_params_t params, nixl_capi_param_iter_t *iterator);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_params_iterator_next(
    nixl_capi_param_iter_t iterator, const char **key, const char **value, bool *has_next);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_params_destroy_iterator(nixl_capi_param_iter_t iterator);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_destroy_params(nixl_capi_params_t params);

#endif
