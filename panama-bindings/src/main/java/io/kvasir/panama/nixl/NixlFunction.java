package io.kvasir.panama.nixl;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;

/**
 * The C functions that are bound: symbol and signature, in the order of the C header. Equal in NIXL
 * 1.0.1 to 1.5.1.
 */
@SuppressWarnings("ImmutableEnumChecker") // a FunctionDescriptor cannot change, by its contract
enum NixlFunction {
    IS_STUB("nixl_capi_is_stub", FunctionDescriptor.of(JAVA_BOOLEAN)),
    CREATE_CONFIGURED_AGENT("nixl_capi_create_configured_agent", ADDRESS, ADDRESS, ADDRESS),
    DESTROY_AGENT("nixl_capi_destroy_agent", ADDRESS),
    GET_AVAILABLE_PLUGINS("nixl_capi_get_available_plugins", ADDRESS, ADDRESS),
    GET_PLUGIN_PARAMS("nixl_capi_get_plugin_params", ADDRESS, ADDRESS, ADDRESS, ADDRESS),
    CREATE_BACKEND("nixl_capi_create_backend", ADDRESS, ADDRESS, ADDRESS, ADDRESS),
    DESTROY_BACKEND("nixl_capi_destroy_backend", ADDRESS),
    STRING_LIST_SIZE("nixl_capi_string_list_size", ADDRESS, ADDRESS),
    STRING_LIST_GET("nixl_capi_string_list_get", ADDRESS, JAVA_LONG, ADDRESS),
    DESTROY_STRING_LIST("nixl_capi_destroy_string_list", ADDRESS),
    MEM_LIST_SIZE("nixl_capi_mem_list_size", ADDRESS, ADDRESS),
    MEM_LIST_GET("nixl_capi_mem_list_get", ADDRESS, JAVA_LONG, ADDRESS),
    DESTROY_MEM_LIST("nixl_capi_destroy_mem_list", ADDRESS),
    CREATE_PARAMS("nixl_capi_create_params", ADDRESS),
    PARAMS_ADD("nixl_capi_params_add", ADDRESS, ADDRESS, ADDRESS),
    PARAMS_IS_EMPTY("nixl_capi_params_is_empty", ADDRESS, ADDRESS),
    PARAMS_CREATE_ITERATOR("nixl_capi_params_create_iterator", ADDRESS, ADDRESS),
    PARAMS_ITERATOR_NEXT("nixl_capi_params_iterator_next", ADDRESS, ADDRESS, ADDRESS, ADDRESS),
    PARAMS_DESTROY_ITERATOR("nixl_capi_params_destroy_iterator", ADDRESS),
    DESTROY_PARAMS("nixl_capi_destroy_params", ADDRESS),

    CREATE_OPT_ARGS("nixl_capi_create_opt_args", ADDRESS),
    DESTROY_OPT_ARGS("nixl_capi_destroy_opt_args", ADDRESS),
    OPT_ARGS_ADD_BACKEND("nixl_capi_opt_args_add_backend", ADDRESS, ADDRESS),
    OPT_ARGS_SET_NOTIF_MSG("nixl_capi_opt_args_set_notif_msg", ADDRESS, ADDRESS, JAVA_LONG),
    OPT_ARGS_SET_HAS_NOTIF("nixl_capi_opt_args_set_has_notif", ADDRESS, JAVA_BOOLEAN),
    OPT_ARGS_SET_SKIP_DESC_MERGE("nixl_capi_opt_args_set_skip_desc_merge", ADDRESS, JAVA_BOOLEAN),

    CREATE_REG_DLIST("nixl_capi_create_reg_dlist", JAVA_INT, ADDRESS),
    REG_DLIST_ADD_DESC(
            "nixl_capi_reg_dlist_add_desc",
            ADDRESS,
            JAVA_LONG,
            JAVA_LONG,
            JAVA_LONG,
            ADDRESS,
            JAVA_LONG),
    DESTROY_REG_DLIST("nixl_capi_destroy_reg_dlist", ADDRESS),
    REGISTER_MEM("nixl_capi_register_mem", ADDRESS, ADDRESS, ADDRESS),
    DEREGISTER_MEM("nixl_capi_deregister_mem", ADDRESS, ADDRESS, ADDRESS),

    GET_LOCAL_MD("nixl_capi_get_local_md", ADDRESS, ADDRESS, ADDRESS),
    LOAD_REMOTE_MD("nixl_capi_load_remote_md", ADDRESS, ADDRESS, JAVA_LONG, ADDRESS),
    INVALIDATE_REMOTE_MD("nixl_capi_invalidate_remote_md", ADDRESS, ADDRESS),
    CHECK_REMOTE_MD("nixl_capi_check_remote_md", ADDRESS, ADDRESS, ADDRESS),
    MAKE_CONNECTION("nixl_capi_agent_make_connection", ADDRESS, ADDRESS, ADDRESS),

    CREATE_XFER_DLIST("nixl_capi_create_xfer_dlist", JAVA_INT, ADDRESS),
    XFER_DLIST_ADD_DESC("nixl_capi_xfer_dlist_add_desc", ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG),
    DESTROY_XFER_DLIST("nixl_capi_destroy_xfer_dlist", ADDRESS),
    PREP_XFER_DLIST("nixl_capi_prep_xfer_dlist", ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS),
    RELEASE_XFER_DLIST_HANDLE("nixl_capi_release_xfer_dlist_handle", ADDRESS, ADDRESS),

    MAKE_XFER_REQ(
            "nixl_capi_make_xfer_req",
            ADDRESS,
            JAVA_INT,
            ADDRESS,
            ADDRESS,
            JAVA_LONG,
            ADDRESS,
            ADDRESS,
            JAVA_LONG,
            ADDRESS,
            ADDRESS),
    POST_XFER_REQ("nixl_capi_post_xfer_req", ADDRESS, ADDRESS, ADDRESS),
    GET_XFER_STATUS("nixl_capi_get_xfer_status", ADDRESS, ADDRESS),
    ESTIMATE_XFER_COST(
            "nixl_capi_estimate_xfer_cost", ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS, ADDRESS),
    GET_XFER_TELEMETRY("nixl_capi_get_xfer_telemetry", ADDRESS, ADDRESS, ADDRESS),
    RELEASE_XFER_REQ("nixl_capi_release_xfer_req", ADDRESS, ADDRESS),
    DESTROY_XFER_REQ("nixl_capi_destroy_xfer_req", ADDRESS),

    CREATE_NOTIF_MAP("nixl_capi_create_notif_map", ADDRESS),
    DESTROY_NOTIF_MAP("nixl_capi_destroy_notif_map", ADDRESS),
    GET_NOTIFS("nixl_capi_get_notifs", ADDRESS, ADDRESS, ADDRESS),
    GEN_NOTIF("nixl_capi_gen_notif", ADDRESS, ADDRESS, ADDRESS, JAVA_LONG, ADDRESS),
    NOTIF_MAP_SIZE("nixl_capi_notif_map_size", ADDRESS, ADDRESS),
    NOTIF_MAP_GET_AGENT_AT("nixl_capi_notif_map_get_agent_at", ADDRESS, JAVA_LONG, ADDRESS),
    NOTIF_MAP_GET_NOTIFS_SIZE("nixl_capi_notif_map_get_notifs_size", ADDRESS, ADDRESS, ADDRESS),
    NOTIF_MAP_GET_NOTIF(
            "nixl_capi_notif_map_get_notif", ADDRESS, ADDRESS, JAVA_LONG, ADDRESS, ADDRESS),
    NOTIF_MAP_CLEAR("nixl_capi_notif_map_clear", ADDRESS);

    private final String symbol;
    private final FunctionDescriptor descriptor;

    /** A function that returns a status. */
    NixlFunction(String symbol, MemoryLayout... arguments) {
        this(symbol, FunctionDescriptor.of(JAVA_INT, arguments));
    }

    NixlFunction(String symbol, FunctionDescriptor descriptor) {
        this.symbol = symbol;
        this.descriptor = descriptor;
    }

    String symbol() {
        return symbol;
    }

    FunctionDescriptor descriptor() {
        return descriptor;
    }

    /**
     * The signature with pointers as numbers: a call with a segment of a shared arena costs 13 ns
     * more, to keep the arena open meanwhile.
     */
    FunctionDescriptor withAddresses() {
        final MemoryLayout[] arguments =
                descriptor.argumentLayouts().stream()
                        .map(layout -> layout.equals(ADDRESS) ? JAVA_LONG : layout)
                        .toArray(MemoryLayout[]::new);
        return FunctionDescriptor.of(descriptor.returnLayout().orElseThrow(), arguments);
    }
}
