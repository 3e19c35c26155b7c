/*
 * Descriptor lists. The two kinds differ in nothing here but their names: what NIXL calls a descriptor's
 * metadata, bytes for the backend, means nothing to memcpy and is not kept.
 */
#include "loopback_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static nixl_capi_status_t remove_at(struct ranges *ranges, int index) {
    if (index < 0 || (size_t)index >= ranges->count) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    ranges_remove(ranges, (size_t)index);
    return NIXL_CAPI_SUCCESS;
}

static nixl_capi_status_t resize(struct ranges *ranges, size_t count) {
    while (ranges->count < count) {
        if (!ranges_add(ranges, (struct range){0})) {
            return NIXL_CAPI_ERROR_BACKEND;
        }
    }
    ranges->count = count;
    return NIXL_CAPI_SUCCESS;
}

static nixl_capi_status_t print(const char *kind, nixl_capi_mem_type_t memory, const struct ranges *ranges) {
    const char *name = "UNKNOWN";
    (void)nixl_capi_mem_type_to_string(memory, &name);
    (void)printf("%s list: memory=%s, descriptors=%zu\n", kind, name, ranges->count);
    for (size_t i = 0; i < ranges->count; i++) {
        const struct range range = ranges->items[i];
        (void)printf("  %zu: address=0x%" PRIxPTR ", length=%zu, device=%" PRIu64 "\n", i, range.address,
            range.length, range.device);
    }
    (void)fflush(stdout);
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_create_xfer_dlist(nixl_capi_mem_type_t memory, nixl_capi_xfer_dlist_t *list) {
    if (list == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    nixl_capi_xfer_dlist_t made = handle_new(sizeof *made, XFER_LIST);
    if (made == NULL) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    made->memory = memory;
    *list = made;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_destroy_xfer_dlist(nixl_capi_xfer_dlist_t list) {
    if (!handle_is(list, XFER_LIST)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    ranges_free(&list->ranges);
    handle_free(list);
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_xfer_dlist_get_type(nixl_capi_xfer_dlist_t list, nixl_capi_mem_type_t *memory) {
    if (!handle_is(list, XFER_LIST) || memory == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *memory = list->memory;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_xfer_dlist_add_desc(
    nixl_capi_xfer_dlist_t list, uintptr_t address, size_t length, uint64_t device) {
    if (!handle_is(list, XFER_LIST)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    const struct range range = {
        .memory = list->memory, .address = address, .length = length, .device = device};
    return ranges_add(&list->ranges, range) ? NIXL_CAPI_SUCCESS : NIXL_CAPI_ERROR_BACKEND;
}

nixl_capi_status_t nixl_capi_xfer_dlist_desc_count(nixl_capi_xfer_dlist_t list, size_t *count) {
    if (!handle_is(list, XFER_LIST) || count == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *count = list->ranges.count;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_xfer_dlist_len(nixl_capi_xfer_dlist_t list, size_t *count) {
    return nixl_capi_xfer_dlist_desc_count(list, count);
}

nixl_capi_status_t nixl_capi_xfer_dlist_is_empty(nixl_capi_xfer_dlist_t list, bool *is_empty) {
    if (!handle_is(list, XFER_LIST) || is_empty == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *is_empty = list->ranges.count == 0;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_xfer_dlist_trim(nixl_capi_xfer_dlist_t list) {
    return handle_is(list, XFER_LIST) ? NIXL_CAPI_SUCCESS : NIXL_CAPI_ERROR_INVALID_PARAM;
}

nixl_capi_status_t nixl_capi_xfer_dlist_rem_desc(nixl_capi_xfer_dlist_t list, int index) {
    return handle_is(list, XFER_LIST) ? remove_at(&list->ranges, index) : NIXL_CAPI_ERROR_INVALID_PARAM;
}

nixl_capi_status_t nixl_capi_xfer_dlist_clear(nixl_capi_xfer_dlist_t list) {
    return handle_is(list, XFER_LIST) ? resize(&list->ranges, 0) : NIXL_CAPI_ERROR_INVALID_PARAM;
}

nixl_capi_status_t nixl_capi_xfer_dlist_resize(nixl_capi_xfer_dlist_t list, size_t count) {
    return handle_is(list, XFER_LIST) ? resize(&list->ranges, count) : NIXL_CAPI_ERROR_INVALID_PARAM;
}

nixl_capi_status_t nixl_capi_xfer_dlist_print(nixl_capi_xfer_dlist_t list) {
    return handle_is(list, XFER_LIST) ? print("transfer", list->memory, &list->ranges)
                                      : NIXL_CAPI_ERROR_INVALID_PARAM;
}

nixl_capi_status_t nixl_capi_create_reg_dlist(nixl_capi_mem_type_t memory, nixl_capi_reg_dlist_t *list) {
    if (list == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    nixl_capi_reg_dlist_t made = handle_new(sizeof *made, REG_LIST);
    if (made == NULL) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    made->memory = memory;
    *list = made;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_destroy_reg_dlist(nixl_capi_reg_dlist_t list) {
    if (!handle_is(list, REG_LIST)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    ranges_free(&list->ranges);
    handle_free(list);
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_reg_dlist_get_type(nixl_capi_reg_dlist_t list, nixl_capi_mem_type_t *memory) {
    if (!handle_is(list, REG_LIST) || memory == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *memory = list->memory;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_reg_dlist_add_desc(
    nixl_capi_reg_dlist_t list, uintptr_t address, size_t length, uint64_t device, const void *metadata,
    size_t metadata_length) {
    (void)metadata;
    (void)metadata_length;
    if (!handle_is(list, REG_LIST)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    const struct range range = {
        .memory = list->memory, .address = address, .length = length, .device = device};
    return ranges_add(&list->ranges, range) ? NIXL_CAPI_SUCCESS : NIXL_CAPI_ERROR_BACKEND;
}

nixl_capi_status_t nixl_capi_reg_dlist_desc_count(nixl_capi_reg_dlist_t list, size_t *count) {
    if (!handle_is(list, REG_LIST) || count == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *count = list->ranges.count;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_reg_dlist_is_empty(nixl_capi_reg_dlist_t list, bool *is_empty) {
    if (!handle_is(list, REG_LIST) || is_empty == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *is_empty = list->ranges.count == 0;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_reg_dlist_trim(nixl_capi_reg_dlist_t list) {
    return handle_is(list, REG_LIST) ? NIXL_CAPI_SUCCESS : NIXL_CAPI_ERROR_INVALID_PARAM;
}

nixl_capi_status_t nixl_capi_reg_dlist_rem_desc(nixl_capi_reg_dlist_t list, int index) {
    return handle_is(list, REG_LIST) ? remove_at(&list->ranges, index) : NIXL_CAPI_ERROR_INVALID_PARAM;
}

nixl_capi_status_t nixl_capi_reg_dlist_clear(nixl_capi_reg_dlist_t list) {
    return handle_is(list, REG_LIST) ? resize(&list->ranges, 0) : NIXL_CAPI_ERROR_INVALID_PARAM;
}

nixl_capi_status_t nixl_capi_reg_dlist_resize(nixl_capi_reg_dlist_t list, size_t count) {
    return handle_is(list, REG_LIST) ? resize(&list->ranges, count) : NIXL_CAPI_ERROR_INVALID_PARAM;
}

nixl_capi_status_t nixl_capi_reg_dlist_print(nixl_capi_reg_dlist_t list) {
    return handle_is(list, REG_LIST) ? print("registration", list->memory, &list->ranges)
                                     : NIXL_CAPI_ERROR_INVALID_PARAM;
}
