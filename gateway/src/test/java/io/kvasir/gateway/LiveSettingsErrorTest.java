package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ch.qos.logback.classic.Level;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.metrics.SettingsCounts;
import io.kvasir.gateway.testing.CapturedLog;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;

/** What is read again, and fails. */
class LiveSettingsErrorTest {
    @Test
    void anErrorOfAReadingIsLoggedAndCountedAndChangesNothing() {
        final GatewayConfig config =
                GatewayConfig.builder()
                        .set(GatewaySettings.MODEL, "m")
                        .worker(WorkerConfig.parse("http://h:1"))
                        .build();
        final SettingsCounts counts = new SettingsCounts();
        final LiveSettings settings = new LiveSettings(config, counts);
        try (CapturedLog log = new CapturedLog(LiveSettings.class, Level.ERROR)) {
            settings.read(
                    () -> {
                        throw new OutOfMemoryError("of the test");
                    });
            assertTrue(log.textsFrom(Level.ERROR).getFirst().contains("of the test"));
        }
        assertEquals(1, counts.count(SettingsCounts.By.FILE, true));
        assertEquals(1, settings.version());
    }

    @Test
    void whatCannotBeReadAgainLeavesNothingElseUnread() {
        final List<String> read = new ArrayList<>();
        try (CapturedLog log = new CapturedLog(GatewayServer.class, Level.WARN)) {
            GatewayServer.reload(
                    List.of(
                            () -> read.add("first"),
                            () -> {
                                throw new GatewayException("no such file", null);
                            },
                            () -> read.add("second"),
                            () -> {
                                throw new OutOfMemoryError("of the test");
                            },
                            () -> {
                                throw new IllegalStateException("of the test");
                            },
                            () -> read.add("third")));
            assertEquals(List.of("first", "second", "third"), read);
            assertEquals(3, log.from(Level.WARN).size());
            assertEquals(2, log.from(Level.ERROR).size());
        }
    }
}
