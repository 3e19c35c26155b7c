package io.kvasir.panama;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;

/** The C functions that are bound: symbol and signature. Equal in NIXL 1.0.1 to 1.5.1. */
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
    DESTROY_PARAMS("nixl_capi_destroy_params", ADDRESS);

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
}
