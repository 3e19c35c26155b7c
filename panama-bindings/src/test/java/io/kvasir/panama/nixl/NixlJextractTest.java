package io.kvasir.panama.nixl;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.panama.jextract.GeneratedBindings;
import io.kvasir.panama.jextract.Jextract;
import io.kvasir.testsupport.Gcc;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.lang.foreign.FunctionDescriptor;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** The bindings of NIXL against what an installed jextract generates. */
@Tag("integration")
class NixlJextractTest {
    private static final String HEADER = "native/src/main/c/nixl_capi_subset.h";
    private static final String HEADER_CLASS = "io.kvasir.panama.generated.nixl.NixlHeader";

    @Test
    void theBindingsEqualWhatJextractGenerates() throws IOException {
        final Jextract jextract = Jextract.wanted();
        final Path folder =
                Files.createDirectories(Path.of("target/jextract/nixl")).toAbsolutePath();
        final GeneratedBindings generated =
                jextract.generate(
                        folder, Gcc.source(HEADER), HEADER_CLASS, Loopback.unpack(folder));
        final List<String> differences = new ArrayList<>();
        differences.addAll(generated.functionDifferences(functions()));
        differences.addAll(generated.constantDifferences(constants()));
        differences.addAll(
                generated.structDifferences(
                        "nixl_capi_agent_config_s",
                        AgentConfigDescriptor.LENGTH,
                        agentConfigOffsets()));
        differences.addAll(
                generated.structDifferences(
                        "nixl_capi_xfer_telemetry_s",
                        TelemetryDescriptor.LENGTH,
                        telemetryOffsets()));
        assertEquals("", String.join("\n", differences));
    }

    private static Map<String, FunctionDescriptor> functions() {
        final Map<String, FunctionDescriptor> functions = new TreeMap<>();
        for (NixlFunction function : NixlFunction.values()) {
            functions.put(function.symbol(), function.descriptor());
        }
        return functions;
    }

    private static Map<String, Integer> constants() {
        final Map<String, Integer> constants = new TreeMap<>();
        for (NixlStatus status : NixlStatus.values()) {
            constants.put("NIXL_CAPI_" + cName(status), status.code());
        }
        for (NixlMemory memory : NixlMemory.values()) {
            constants.put("NIXL_CAPI_MEM_" + memory, memory.code());
        }
        for (NixlAgentConfig.ThreadSync sync : NixlAgentConfig.ThreadSync.values()) {
            final String name =
                    sync == NixlAgentConfig.ThreadSync.READ_WRITE ? "RW" : sync.toString();
            constants.put("NIXL_CAPI_THREAD_SYNC_" + name, sync.code());
        }
        constants.put("NIXL_CAPI_XFER_OP_READ", NixlTransfers.READ);
        constants.put("NIXL_CAPI_XFER_OP_WRITE", NixlTransfers.WRITE);
        return constants;
    }

    private static String cName(NixlStatus status) {
        return switch (status) {
            case SUCCESS -> "SUCCESS";
            case IN_PROGRESS -> "IN_PROG";
            default -> "ERROR_" + status;
        };
    }

    private static Map<String, Integer> agentConfigOffsets() {
        return Map.of(
                "enable_prog_thread", AgentConfigDescriptor.PROGRESS_THREAD_OFFSET,
                "enable_listen_thread", AgentConfigDescriptor.LISTEN_THREAD_OFFSET,
                "listen_port", AgentConfigDescriptor.LISTEN_PORT_OFFSET,
                "thread_sync", AgentConfigDescriptor.THREAD_SYNC_OFFSET,
                "num_workers", AgentConfigDescriptor.WORKERS_OFFSET,
                "pthr_delay_us", AgentConfigDescriptor.PROGRESS_DELAY_OFFSET,
                "lthr_delay_us", AgentConfigDescriptor.LISTEN_DELAY_OFFSET,
                "capture_telemetry", AgentConfigDescriptor.TELEMETRY_OFFSET);
    }

    private static Map<String, Integer> telemetryOffsets() {
        return Map.of(
                "start_time_us", TelemetryDescriptor.START_OFFSET,
                "post_duration_us", TelemetryDescriptor.POST_OFFSET,
                "xfer_duration_us", TelemetryDescriptor.TRANSFER_OFFSET,
                "total_bytes", TelemetryDescriptor.BYTES_OFFSET,
                "desc_count", TelemetryDescriptor.DESCRIPTORS_OFFSET);
    }
}
