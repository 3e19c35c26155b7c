package io.kvasir.panama.nixl;

import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Layout of the C struct {@code nixl_capi_agent_config_t}, equal in NIXL 1.0.1 to 1.5.1.
 *
 * <pre>
 *   0      1      2     4          8          12           16          24          32     33    40
 *   +------+------+-----+----------+----------+------------+-----------+-----------+------+-----+
 *   | prog | list | pad | port:i32 | sync:i32 | workers:u32| pthr:u64  | lthr:u64  | tele | pad |
 *   +------+------+-----+----------+----------+------------+-----------+-----------+------+-----+
 *   delays in microseconds; listener and workers stay zero: NIXL ignores workers here
 * </pre>
 */
final class AgentConfigDescriptor {
    static final int PROGRESS_THREAD_OFFSET = 0;
    static final int LISTEN_THREAD_OFFSET = 1;
    static final int LISTEN_PORT_OFFSET = 4;
    static final int THREAD_SYNC_OFFSET = 8;
    static final int WORKERS_OFFSET = 12;
    static final int PROGRESS_DELAY_OFFSET = 16;
    static final int LISTEN_DELAY_OFFSET = 24;
    static final int TELEMETRY_OFFSET = 32;
    static final int LENGTH = 40;

    private AgentConfigDescriptor() {}

    /**
     * Returns the struct in memory of {@code arena}; NIXL copies it, so it may go after the call.
     */
    static MemorySegment allocate(Arena arena, NixlAgentConfig config) {
        final MemorySegment struct = arena.allocate(LENGTH, Long.BYTES);
        struct.set(JAVA_BOOLEAN, PROGRESS_THREAD_OFFSET, config.progressThread());
        struct.set(JAVA_INT, THREAD_SYNC_OFFSET, config.threadSync().code());
        struct.set(JAVA_LONG, PROGRESS_DELAY_OFFSET, config.progressDelayMicros());
        struct.set(JAVA_BOOLEAN, TELEMETRY_OFFSET, config.captureTelemetry());
        return struct;
    }
}
