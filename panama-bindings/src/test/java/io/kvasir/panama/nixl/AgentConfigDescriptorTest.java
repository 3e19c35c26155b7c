package io.kvasir.panama.nixl;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Path;

class AgentConfigDescriptorTest {
    @Test
    void offsetsAreThoseOfTheCCompiler(@TempDir Path folder) {
        final long[] expected = {
            AgentConfigDescriptor.LENGTH,
            AgentConfigDescriptor.PROGRESS_THREAD_OFFSET,
            AgentConfigDescriptor.LISTEN_THREAD_OFFSET,
            AgentConfigDescriptor.LISTEN_PORT_OFFSET,
            AgentConfigDescriptor.THREAD_SYNC_OFFSET,
            AgentConfigDescriptor.WORKERS_OFFSET,
            AgentConfigDescriptor.PROGRESS_DELAY_OFFSET,
            AgentConfigDescriptor.LISTEN_DELAY_OFFSET,
            AgentConfigDescriptor.TELEMETRY_OFFSET
        };
        assertArrayEquals(expected, Loopback.agentConfigLayout(Loopback.load(folder)));
    }

    @Test
    void valuesLandInTheirFieldsAndTheRestIsZero() {
        final NixlAgentConfig config =
                new NixlAgentConfig(true, NixlAgentConfig.ThreadSync.READ_WRITE, 250, false);
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment struct = AgentConfigDescriptor.allocate(arena, config);
            assertTrue(struct.get(ValueLayout.JAVA_BOOLEAN, 0));
            assertEquals(2, struct.get(ValueLayout.JAVA_INT, 8));
            assertEquals(0, struct.get(ValueLayout.JAVA_INT, 12));
            assertEquals(250, struct.get(ValueLayout.JAVA_LONG, 16));
            assertEquals(0, struct.get(ValueLayout.JAVA_LONG, 24));
            assertFalse(struct.get(ValueLayout.JAVA_BOOLEAN, 32));
        }
    }

    @Test
    void aNegativeDelayIsRefusedWithItsValue() {
        final IllegalArgumentException e =
                assertThrows(
                        IllegalArgumentException.class,
                        () ->
                                new NixlAgentConfig(
                                        true, NixlAgentConfig.ThreadSync.NONE, -1, false));
        assertTrue(e.getMessage().contains("progressDelayMicros=-1"), e.getMessage());
    }
}
