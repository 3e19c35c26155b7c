package io.kvasir.panama.nixl;

import java.lang.foreign.SymbolLookup;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * The names that {@code libnixl_capi.so} exports, as read from the wheels: 96 since 1.0.1, 8 more
 * since 1.5.0, none removed up to 1.5.1. The ABI has no version function, so the names are the
 * version.
 */
final class NixlSymbols {
    static final List<String> SINCE_1_0 =
            names(
                    """
                    agent_make_connection check_remote_md create_agent create_backend
                    create_configured_agent create_notif_map create_opt_args create_params
                    create_query_resp_list create_reg_dlist create_xfer_dlist create_xfer_req
                    deregister_mem destroy_agent destroy_backend destroy_mem_list destroy_notif_map
                    destroy_opt_args destroy_params destroy_query_resp_list destroy_reg_dlist
                    destroy_string_list destroy_xfer_dlist destroy_xfer_req estimate_xfer_cost
                    fetch_remote_md gen_notif get_available_plugins get_backend_params get_local_md
                    get_local_partial_md get_notifs get_plugin_params get_xfer_status
                    get_xfer_telemetry invalidate_local_md invalidate_remote_md is_stub
                    load_remote_md make_xfer_req mem_list_get mem_list_is_empty mem_list_size
                    mem_type_to_string notif_map_clear notif_map_get_agent_at notif_map_get_notif
                    notif_map_get_notifs_size notif_map_size opt_args_add_backend
                    opt_args_get_has_notif opt_args_get_notif_msg opt_args_get_skip_desc_merge
                    opt_args_set_has_notif opt_args_set_ip_addr opt_args_set_notif_msg
                    opt_args_set_port opt_args_set_skip_desc_merge params_add
                    params_create_iterator params_destroy_iterator params_is_empty
                    params_iterator_next post_xfer_req prep_xfer_dlist query_mem
                    query_resp_list_get_params query_resp_list_has_value query_resp_list_size
                    query_xfer_backend reg_dlist_add_desc reg_dlist_clear reg_dlist_desc_count
                    reg_dlist_get_type reg_dlist_is_empty reg_dlist_print reg_dlist_rem_desc
                    reg_dlist_resize reg_dlist_trim register_mem release_xfer_dlist_handle
                    release_xfer_req send_local_md send_local_partial_md string_list_get
                    string_list_size xfer_dlist_add_desc xfer_dlist_clear xfer_dlist_desc_count
                    xfer_dlist_get_type xfer_dlist_is_empty xfer_dlist_len xfer_dlist_print
                    xfer_dlist_rem_desc xfer_dlist_resize xfer_dlist_trim
                    """);

    static final List<String> SINCE_1_5 =
            names(
                    """
                    create_remote_dlist destroy_remote_dlist opt_args_get_custom_param
                    opt_args_set_custom_param prep_mem_view_local prep_mem_view_remote
                    release_mem_view remote_dlist_add_desc
                    """);

    /** Not one of NIXL's: the mark of the loopback library. */
    static final String LOOPBACK_MARK = "kvasir_loopback_abi";

    private NixlSymbols() {}

    private static List<String> names(String text) {
        return Stream.of(text.strip().split("\\s+")).map("nixl_capi_"::concat).toList();
    }

    /** Returns those of {@code wanted} that the library lacks, in order. */
    static List<String> missing(SymbolLookup library, List<String> wanted) {
        final List<String> missing = new ArrayList<>();
        for (String symbol : wanted) {
            if (library.find(symbol).isEmpty()) {
                missing.add(symbol);
            }
        }
        return List.copyOf(missing);
    }
}
