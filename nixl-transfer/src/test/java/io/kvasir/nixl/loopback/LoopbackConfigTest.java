package io.kvasir.nixl.loopback;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.nio.file.Path;
import java.time.Duration;

class LoopbackConfigTest {
    @ParameterizedTest
    @CsvSource({
        "0, 1, 1, 1, 65536, 4096, 0, maxPeers",
        "4097, 1, 1, 1, 65536, 4096, 0, maxPeers",
        "1, 0, 1, 1, 65536, 4096, 0, maxRegions",
        "1, 1, 0, 1, 65536, 4096, 0, maxLists",
        "1, 1, 1, 0, 65536, 4096, 0, maxRequests",
        "1, 1, 1, 1, 16384, 4096, 0, inboxBytes",
        "1, 1, 1, 1, 65544, 4096, 0, power of two",
        "1, 1, 1, 1, 65536, 4095, 0, chunkBytes",
        "1, 1, 1, 1, 65536, 4096, -1, livenessInterval"
    })
    void whatIsOutsideItsLimitsIsNamed(
            int peers,
            int regions,
            int lists,
            int requests,
            int inbox,
            long chunk,
            long liveness,
            String named) {
        final String message =
                assertThrows(
                                IllegalArgumentException.class,
                                () ->
                                        new LoopbackConfig(
                                                Path.of("x"),
                                                peers,
                                                regions,
                                                lists,
                                                requests,
                                                inbox,
                                                chunk,
                                                Duration.ofNanos(liveness),
                                                Duration.ZERO))
                        .getMessage();

        assertTrue(message.contains(named), message);
    }

    @Test
    void theLongestTimesAreTakenAndThoseBelowZeroNamed() {
        final Duration longest = Duration.ofSeconds(Long.MAX_VALUE);
        final LoopbackConfig config = withTimes(longest, longest);
        assertEquals(Long.MAX_VALUE, config.livenessNs());
        assertEquals(Long.MAX_VALUE, config.sendTimeoutNs());
        final Duration least = Duration.ofSeconds(Long.MIN_VALUE);
        assertEquals(
                "livenessInterval=" + least + ", at least 0",
                assertThrows(IllegalArgumentException.class, () -> withTimes(least, longest))
                        .getMessage());
        assertEquals(
                "sendTimeout=PT-1S, at least 0",
                assertThrows(
                                IllegalArgumentException.class,
                                () -> withTimes(longest, Duration.ofSeconds(-1)))
                        .getMessage());
    }

    private static LoopbackConfig withTimes(Duration liveness, Duration sendTimeout) {
        return new LoopbackConfig(Path.of("x"), 1, 1, 1, 1, 65_536, 4096, liveness, sendTimeout);
    }

    @Test
    void theDefaultFolderIsTheUsersOwn() {
        final Path folder = LoopbackConfig.defaults().folder();

        assertTrue(folder.getFileName().toString().startsWith("kvasir-"), folder.toString());
        assertTrue(folder.isAbsolute());
    }

    @Test
    void aNameHasALength() {
        final LoopbackConfig config = LoopbackConfig.defaults().withFolder(Path.of("x"));

        assertEquals(Path.of("x"), config.folder());
        for (String name : new String[] {"", " ", "ä".repeat(49)}) {
            assertThrows(IllegalArgumentException.class, () -> new LoopbackTransport(name, config));
        }
    }
}
