/*
 * Does nixl_capi_subset.h agree with the header that NIXL publishes? This file is compiled twice. With
 * CONFORMANCE_PUBLISHED it sees NIXL's header first and then declares the subset's functions again on NIXL's
 * types: the compiler refuses any other type, and any function that NIXL does not have. Both programs print
 * the values and layouts they were compiled with; the test compares what they print.
 */
#ifdef CONFORMANCE_PUBLISHED
#include <wrapper.h>
#define NAME(function) _Static_assert(sizeof(&function) == sizeof(void (*)(void)), #function);
#include "conformance_names.def"
#define KVASIR_NIXL_TYPES_GIVEN
#endif

#include "nixl_capi_subset.h"

#include <inttypes.h>
#include <stdio.h>

#define TYPE_NAME(value)                                                                          \
    _Generic((value), bool : "bool", int : "int", unsigned int : "unsigned int", uint64_t : "uint64_t", \
        default : "other")

static void print_constant(const char *name, int64_t value) { (void)printf("%s = %" PRId64 "\n", name, value); }

static void print_field(const char *name, size_t offset, size_t size, const char *type) {
    (void)printf("%s at %zu, %zu bytes, %s\n", name, offset, size, type);
}

#define FIELD(structure, field)                                                                   \
    print_field(#structure "." #field, offsetof(structure, field), sizeof(((structure *)0)->field), \
        TYPE_NAME(((structure *)0)->field))
#define SIZE(type) (void)printf("%s has %zu bytes\n", #type, sizeof(type))

int main(void) {
#define CONSTANT(name) print_constant(#name, name);
#include "nixl_capi_constants.def"
    SIZE(nixl_capi_status_t);
    SIZE(nixl_capi_mem_type_t);
    SIZE(nixl_capi_thread_sync_t);
    SIZE(nixl_capi_xfer_op_t);
    SIZE(nixl_capi_cost_t);
    SIZE(nixl_capi_agent_config_t);
    FIELD(nixl_capi_agent_config_t, enable_prog_thread);
    FIELD(nixl_capi_agent_config_t, enable_listen_thread);
    FIELD(nixl_capi_agent_config_t, listen_port);
    FIELD(nixl_capi_agent_config_t, thread_sync);
    FIELD(nixl_capi_agent_config_t, num_workers);
    FIELD(nixl_capi_agent_config_t, pthr_delay_us);
    FIELD(nixl_capi_agent_config_t, lthr_delay_us);
    FIELD(nixl_capi_agent_config_t, capture_telemetry);
    SIZE(struct nixl_capi_xfer_telemetry_s);
    FIELD(struct nixl_capi_xfer_telemetry_s, start_time_us);
    FIELD(struct nixl_capi_xfer_telemetry_s, post_duration_us);
    FIELD(struct nixl_capi_xfer_telemetry_s, xfer_duration_us);
    FIELD(struct nixl_capi_xfer_telemetry_s, total_bytes);
    FIELD(struct nixl_capi_xfer_telemetry_s, desc_count);
    return 0;
}
