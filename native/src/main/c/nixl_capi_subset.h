/*
 * The part of NIXL's C ABI (nixl_capi_*, NIXL 1.0.1 to 1.5.1) that Kvasir needs: same names, argument
 * types and values as libnixl_capi.so, so that one set of Java bindings serves that library and the
 * loopback library built here. The ABI is plain C: opaque handles, out parameters, a status result.
 * Left out: metadata by etcd or by NIXL's own listener, queries of storage, views for device code.
 *
 * Ownership: every handle returned through an out parameter is destroyed by its own destroy function.
 * Strings handed out belong to the list, iterator, map or library they came from and live as long as it;
 * only metadata, names of loaded agents and messages of optional arguments are the caller's, to free().
 * No function may be called twice with a handle that it destroys.
 *
 * Life times: agent, then backends, registrations, metadata, prepared lists, requests; they end in reverse.
 * Optional arguments may be NULL everywhere.
 */
#ifndef KVASIR_NIXL_CAPI_SUBSET_H
#define KVASIR_NIXL_CAPI_SUBSET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KVASIR_EXPORT __attribute__((visibility("default")))

#ifndef KVASIR_NIXL_TYPES_GIVEN /* the conformance check declares the functions below with NIXL's own types */

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

/* Which way the bytes of a request go: READ pulls from the peer, WRITE pushes to it. */
typedef enum {
    NIXL_CAPI_XFER_OP_READ = 0,
    NIXL_CAPI_XFER_OP_WRITE = 1
} nixl_capi_xfer_op_t;

/* How the cost of a request was estimated. */
typedef enum {
    NIXL_CAPI_COST_ANALYTICAL_BACKEND = 0
} nixl_capi_cost_t;

/*
 *   0               8              16             24            32             40
 *   +---------------+--------------+--------------+-------------+--------------+
 *   | start us:u64  | post us:u64  | xfer us:u64  | bytes:u64   | descs:u64    |
 *   +---------------+--------------+--------------+-------------+--------------+
 */
struct nixl_capi_xfer_telemetry_s {
    uint64_t start_time_us;    /* of the steady clock */
    uint64_t post_duration_us; /* inside the post */
    uint64_t xfer_duration_us; /* from the post to the poll that saw the end */
    uint64_t total_bytes;
    uint64_t desc_count; /* after merging */
};

typedef struct nixl_capi_agent_s *nixl_capi_agent_t;
typedef struct nixl_capi_backend_s *nixl_capi_backend_t;
typedef struct nixl_capi_mem_list_s *nixl_capi_mem_list_t;
typedef struct nixl_capi_notif_map_s *nixl_capi_notif_map_t;
typedef struct nixl_capi_opt_args_s *nixl_capi_opt_args_t;
typedef struct nixl_capi_param_iter_s *nixl_capi_param_iter_t;
typedef struct nixl_capi_params_s *nixl_capi_params_t;
typedef struct nixl_capi_reg_dlist_s *nixl_capi_reg_dlist_t;
typedef struct nixl_capi_string_list_s *nixl_capi_string_list_t;
typedef struct nixl_capi_xfer_dlist_s *nixl_capi_xfer_dlist_t;
typedef struct nixl_capi_xfer_dlist_handle_s *nixl_capi_xfer_dlist_handle_t;
typedef struct nixl_capi_xfer_req_s *nixl_capi_xfer_req_t;
typedef struct nixl_capi_xfer_telemetry_s *nixl_capi_xfer_telemetry_t;

#endif /* KVASIR_NIXL_TYPES_GIVEN */

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
KVASIR_EXPORT nixl_capi_status_t nixl_capi_get_backend_params(
    nixl_capi_agent_t agent, nixl_capi_backend_t backend, nixl_capi_mem_list_t *memories,
    nixl_capi_params_t *params);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_destroy_backend(nixl_capi_backend_t backend);

/* String lists. */
KVASIR_EXPORT nixl_capi_status_t nixl_capi_string_list_size(nixl_capi_string_list_t list, size_t *size);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_string_list_get(
    nixl_capi_string_list_t list, size_t index, const char **string);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_destroy_string_list(nixl_capi_string_list_t list);

/* Lists of memory kinds. */
KVASIR_EXPORT nixl_capi_status_t nixl_capi_mem_list_is_empty(nixl_capi_mem_list_t list, bool *is_empty);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_mem_list_size(nixl_capi_mem_list_t list, size_t *size);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_mem_list_get(
    nixl_capi_mem_list_t list, size_t index, nixl_capi_mem_type_t *memory);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_destroy_mem_list(nixl_capi_mem_list_t list);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_mem_type_to_string(nixl_capi_mem_type_t memory, const char **string);

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

/*
 * Optional arguments. The message set becomes a request's notification once has_notif is set too; given to
 * a post, arguments without it take away the one that the request was made with.
 */
KVASIR_EXPORT nixl_capi_status_t nixl_capi_create_opt_args(nixl_capi_opt_args_t *args);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_destroy_opt_args(nixl_capi_opt_args_t args);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_opt_args_add_backend(
    nixl_capi_opt_args_t args, nixl_capi_backend_t backend);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_opt_args_set_notif_msg(
    nixl_capi_opt_args_t args, const void *data, size_t length);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_opt_args_get_notif_msg(
    nixl_capi_opt_args_t args, void **data, size_t *length);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_opt_args_set_has_notif(nixl_capi_opt_args_t args, bool has_notification);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_opt_args_get_has_notif(nixl_capi_opt_args_t args, bool *has_notification);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_opt_args_set_skip_desc_merge(nixl_capi_opt_args_t args, bool skip_merge);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_opt_args_get_skip_desc_merge(nixl_capi_opt_args_t args, bool *skip_merge);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_opt_args_set_ip_addr(nixl_capi_opt_args_t args, const char *address);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_opt_args_set_port(nixl_capi_opt_args_t args, uint16_t port);

/* Lists of descriptors for transfers: address, length in bytes, device. */
KVASIR_EXPORT nixl_capi_status_t nixl_capi_create_xfer_dlist(
    nixl_capi_mem_type_t memory, nixl_capi_xfer_dlist_t *list);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_destroy_xfer_dlist(nixl_capi_xfer_dlist_t list);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_xfer_dlist_get_type(
    nixl_capi_xfer_dlist_t list, nixl_capi_mem_type_t *memory);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_xfer_dlist_add_desc(
    nixl_capi_xfer_dlist_t list, uintptr_t address, size_t length, uint64_t device);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_xfer_dlist_desc_count(nixl_capi_xfer_dlist_t list, size_t *count);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_xfer_dlist_len(nixl_capi_xfer_dlist_t list, size_t *count);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_xfer_dlist_is_empty(nixl_capi_xfer_dlist_t list, bool *is_empty);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_xfer_dlist_trim(nixl_capi_xfer_dlist_t list);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_xfer_dlist_rem_desc(nixl_capi_xfer_dlist_t list, int index);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_xfer_dlist_clear(nixl_capi_xfer_dlist_t list);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_xfer_dlist_resize(nixl_capi_xfer_dlist_t list, size_t count);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_xfer_dlist_print(nixl_capi_xfer_dlist_t list);

/* Lists of descriptors for registration: the same, with bytes for the backend. */
KVASIR_EXPORT nixl_capi_status_t nixl_capi_create_reg_dlist(
    nixl_capi_mem_type_t memory, nixl_capi_reg_dlist_t *list);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_destroy_reg_dlist(nixl_capi_reg_dlist_t list);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_reg_dlist_get_type(
    nixl_capi_reg_dlist_t list, nixl_capi_mem_type_t *memory);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_reg_dlist_add_desc(
    nixl_capi_reg_dlist_t list, uintptr_t address, size_t length, uint64_t device, const void *metadata,
    size_t metadata_length);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_reg_dlist_desc_count(nixl_capi_reg_dlist_t list, size_t *count);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_reg_dlist_is_empty(nixl_capi_reg_dlist_t list, bool *is_empty);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_reg_dlist_trim(nixl_capi_reg_dlist_t list);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_reg_dlist_rem_desc(nixl_capi_reg_dlist_t list, int index);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_reg_dlist_clear(nixl_capi_reg_dlist_t list);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_reg_dlist_resize(nixl_capi_reg_dlist_t list, size_t count);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_reg_dlist_print(nixl_capi_reg_dlist_t list);

/* Registration. Deregistering takes exactly the descriptors that were registered. */
KVASIR_EXPORT nixl_capi_status_t nixl_capi_register_mem(
    nixl_capi_agent_t agent, nixl_capi_reg_dlist_t list, nixl_capi_opt_args_t args);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_deregister_mem(
    nixl_capi_agent_t agent, nixl_capi_reg_dlist_t list, nixl_capi_opt_args_t args);

/* Metadata: how to connect and what is registered; partial is the one for an empty list, else the other. */
KVASIR_EXPORT nixl_capi_status_t nixl_capi_get_local_md(nixl_capi_agent_t agent, void **data, size_t *length);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_get_local_partial_md(
    nixl_capi_agent_t agent, nixl_capi_reg_dlist_t list, void **data, size_t *length, nixl_capi_opt_args_t args);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_load_remote_md(
    nixl_capi_agent_t agent, const void *data, size_t length, char **agent_name);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_invalidate_remote_md(nixl_capi_agent_t agent, const char *remote_agent);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_check_remote_md(
    nixl_capi_agent_t agent, const char *remote_agent, nixl_capi_xfer_dlist_t list);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_agent_make_connection(
    nixl_capi_agent_t agent, const char *remote_agent, nixl_capi_opt_args_t args);

/* Prepared lists: "" for own memory as the near side, a peer's name or the own name for the far side. */
KVASIR_EXPORT nixl_capi_status_t nixl_capi_prep_xfer_dlist(
    nixl_capi_agent_t agent, const char *agent_name, nixl_capi_xfer_dlist_t list,
    nixl_capi_xfer_dlist_handle_t *handle, nixl_capi_opt_args_t args);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_release_xfer_dlist_handle(
    nixl_capi_agent_t agent, nixl_capi_xfer_dlist_handle_t handle);

/*
 * Requests: made of two prepared lists, or created of two plain ones. A request may be posted again when it
 * is done. Every posted one needs polling: the poll that sees it done sends its notification. Release ends
 * it, and may fail: then the handle and the memory of both sides are still in use. Destroy frees the handle
 * of a released one.
 */
KVASIR_EXPORT nixl_capi_status_t nixl_capi_make_xfer_req(
    nixl_capi_agent_t agent, nixl_capi_xfer_op_t operation, nixl_capi_xfer_dlist_handle_t local,
    const int *local_indices, size_t local_count, nixl_capi_xfer_dlist_handle_t remote, const int *remote_indices,
    size_t remote_count, nixl_capi_xfer_req_t *request, nixl_capi_opt_args_t args);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_create_xfer_req(
    nixl_capi_agent_t agent, nixl_capi_xfer_op_t operation, nixl_capi_xfer_dlist_t local,
    nixl_capi_xfer_dlist_t remote, const char *remote_agent, nixl_capi_xfer_req_t *request,
    nixl_capi_opt_args_t args);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_post_xfer_req(
    nixl_capi_agent_t agent, nixl_capi_xfer_req_t request, nixl_capi_opt_args_t args);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_get_xfer_status(nixl_capi_agent_t agent, nixl_capi_xfer_req_t request);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_release_xfer_req(nixl_capi_agent_t agent, nixl_capi_xfer_req_t request);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_destroy_xfer_req(nixl_capi_xfer_req_t request);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_query_xfer_backend(
    nixl_capi_agent_t agent, nixl_capi_xfer_req_t request, nixl_capi_backend_t *backend);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_estimate_xfer_cost(
    nixl_capi_agent_t agent, nixl_capi_xfer_req_t request, nixl_capi_opt_args_t args, int64_t *duration_us,
    int64_t *margin_us, nixl_capi_cost_t *method);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_get_xfer_telemetry(
    nixl_capi_agent_t agent, nixl_capi_xfer_req_t request, nixl_capi_xfer_telemetry_t telemetry);

/* Notifications: get_notifs adds what has arrived to a map from sender to messages. */
KVASIR_EXPORT nixl_capi_status_t nixl_capi_create_notif_map(nixl_capi_notif_map_t *map);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_destroy_notif_map(nixl_capi_notif_map_t map);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_get_notifs(
    nixl_capi_agent_t agent, nixl_capi_notif_map_t map, nixl_capi_opt_args_t args);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_gen_notif(
    nixl_capi_agent_t agent, const char *remote_agent, const void *data, size_t length, nixl_capi_opt_args_t args);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_notif_map_size(nixl_capi_notif_map_t map, size_t *size);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_notif_map_get_agent_at(
    nixl_capi_notif_map_t map, size_t index, const char **agent);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_notif_map_get_notifs_size(
    nixl_capi_notif_map_t map, const char *agent, size_t *size);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_notif_map_get_notif(
    nixl_capi_notif_map_t map, const char *agent, size_t index, const void **data, size_t *length);
KVASIR_EXPORT nixl_capi_status_t nixl_capi_notif_map_clear(nixl_capi_notif_map_t map);

#endif
