/* Layouts and values as the C compiler sees them, for bindings that must agree with it. */
#include "kvasir_loopback.h"

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

void kvasir_loopback_telemetry_layout(uint64_t words[KVASIR_LOOPBACK_TELEMETRY_WORDS]) {
    words[0] = sizeof(struct nixl_capi_xfer_telemetry_s);
    words[1] = offsetof(struct nixl_capi_xfer_telemetry_s, start_time_us);
    words[2] = offsetof(struct nixl_capi_xfer_telemetry_s, post_duration_us);
    words[3] = offsetof(struct nixl_capi_xfer_telemetry_s, xfer_duration_us);
    words[4] = offsetof(struct nixl_capi_xfer_telemetry_s, total_bytes);
    words[5] = offsetof(struct nixl_capi_xfer_telemetry_s, desc_count);
}

struct constant {
    const char *name;
    int64_t value;
};

#define CONSTANT(name) {#name, name},

static const struct constant constants[] = {
#include "nixl_capi_constants.def"
};

bool kvasir_loopback_constant(size_t index, const char **name, int64_t *value) {
    if (index >= sizeof constants / sizeof constants[0] || name == NULL || value == NULL) {
        return false;
    }
    *name = constants[index].name;
    *value = constants[index].value;
    return true;
}
