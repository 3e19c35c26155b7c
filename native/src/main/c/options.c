/* Optional arguments: backends to use, a notification, and what the loopback library takes and ignores. */
#include "loopback_internal.h"

#include <stdlib.h>

bool options_fit(const struct nixl_capi_opt_args_s *options) {
    return options == NULL || handle_is(options, OPTIONS);
}

bool options_allow(const struct nixl_capi_opt_args_s *options, const struct nixl_capi_agent_s *agent) {
    bool named = options == NULL || options->backend_count == 0;
    for (size_t i = 0; !named && i < options->backend_count; i++) {
        named = options->backends[i] == agent->instance;
    }
    return named && agent->has_backend;
}

nixl_capi_status_t nixl_capi_create_opt_args(nixl_capi_opt_args_t *args) {
    if (args == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    nixl_capi_opt_args_t made = handle_new(sizeof *made, OPTIONS);
    if (made == NULL) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    *args = made;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_destroy_opt_args(nixl_capi_opt_args_t args) {
    if (!handle_is(args, OPTIONS)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    bytes_free(&args->notification);
    free(args->backends);
    handle_free(args);
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_opt_args_add_backend(nixl_capi_opt_args_t args, nixl_capi_backend_t backend) {
    if (!handle_is(args, OPTIONS) || !handle_is(backend, BACKEND)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    uint64_t *backends = realloc(args->backends, (args->backend_count + 1) * sizeof *backends);
    if (backends == NULL) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    backends[args->backend_count++] = backend->instance;
    args->backends = backends;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_opt_args_set_notif_msg(nixl_capi_opt_args_t args, const void *data, size_t length) {
    if (!handle_is(args, OPTIONS) || (data == NULL && length > 0)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    return bytes_set(&args->notification, data, length) ? NIXL_CAPI_SUCCESS : NIXL_CAPI_ERROR_BACKEND;
}

nixl_capi_status_t nixl_capi_opt_args_get_notif_msg(nixl_capi_opt_args_t args, void **data, size_t *length) {
    if (!handle_is(args, OPTIONS) || data == NULL || length == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    struct bytes copy = {0};
    if (!bytes_set(&copy, args->notification.data, args->notification.length)) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    *data = copy.data;
    *length = copy.length;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_opt_args_set_has_notif(nixl_capi_opt_args_t args, bool has_notification) {
    if (!handle_is(args, OPTIONS)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    args->has_notification = has_notification;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_opt_args_get_has_notif(nixl_capi_opt_args_t args, bool *has_notification) {
    if (!handle_is(args, OPTIONS) || has_notification == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *has_notification = args->has_notification;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_opt_args_set_skip_desc_merge(nixl_capi_opt_args_t args, bool skip_merge) {
    if (!handle_is(args, OPTIONS)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    args->skip_merge = skip_merge;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_opt_args_get_skip_desc_merge(nixl_capi_opt_args_t args, bool *skip_merge) {
    if (!handle_is(args, OPTIONS) || skip_merge == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *skip_merge = args->skip_merge;
    return NIXL_CAPI_SUCCESS;
}

/* Where metadata is sent or fetched by wire, which the loopback library does not do. */
nixl_capi_status_t nixl_capi_opt_args_set_ip_addr(nixl_capi_opt_args_t args, const char *address) {
    return handle_is(args, OPTIONS) && address != NULL ? NIXL_CAPI_SUCCESS : NIXL_CAPI_ERROR_INVALID_PARAM;
}

nixl_capi_status_t nixl_capi_opt_args_set_port(nixl_capi_opt_args_t args, uint16_t port) {
    (void)port;
    return handle_is(args, OPTIONS) ? NIXL_CAPI_SUCCESS : NIXL_CAPI_ERROR_INVALID_PARAM;
}
