package io.kvasir.cli.commands;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.cli.CommandRun;
import io.kvasir.gateway.GatewayServer;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.router.settings.RouterSettings;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;

/** Settings of a running gateway, by its command. */
class SettingsCommandTest {
    @TempDir private Path dir;

    private static GatewayConfig.Builder config() {
        return GatewayConfig.builder()
                .set(GatewaySettings.MODEL, "m")
                .set(GatewaySettings.HOST, "127.0.0.1")
                .set(GatewaySettings.PORT, 0)
                .set(GatewaySettings.ADMIN_PORT, 0L)
                .set(GatewaySettings.DRAIN_TIMEOUT, Duration.ZERO)
                .set(GatewaySettings.NIXL_LIBRARY, GatewaySettings.NIXL_OFF)
                .set(RouterSettings.MAX_BLOCKS, 1024L);
    }

    private static CommandRun settings(GatewayServer gateway, String... words) {
        final String[] all = new String[words.length + 2];
        all[0] = "settings";
        all[1] = "--url=" + gateway.adminUrl();
        System.arraycopy(words, 0, all, 2, words.length);
        return CommandRun.of(all);
    }

    @Test
    void settingsAreShownChangedAndWithdrawn() throws IOException {
        try (GatewayServer gateway = GatewayServer.start(config().build())) {
            final CommandRun dry = settings(gateway, "temperature=2", "--dry-run");
            assertEquals(0, dry.exitCode(), dry.err());
            assertTrue(dry.out().contains("temperature: 0 -> 2"), dry.out());
            assertTrue(dry.out().contains("nothing is changed"), dry.out());
            final CommandRun set = settings(gateway, "temperature=2", "mode=random");
            assertEquals(0, set.exitCode(), set.err());
            assertTrue(set.out().contains("settings version 2"), set.out());
            final CommandRun shown = settings(gateway);
            assertTrue(
                    shown.out().lines().anyMatch(l -> l.matches("temperature +2 +PATCH.* +yes")),
                    shown.out());
            assertTrue(shown.out().lines().noneMatch(l -> l.startsWith("retries")), shown.out());
            assertTrue(settings(gateway, "--all").out().contains("\nretries "));
            assertEquals(1, settings(gateway, "temperature=3", "--if-version=1").exitCode());
            final CommandRun wrong = settings(gateway, "block-size=3", "temperature=-1");
            assertEquals(1, wrong.exitCode());
            assertTrue(wrong.err().contains("block-size cannot be changed"), wrong.err());
            assertTrue(wrong.err().contains("temperature=-1"), wrong.err());
            assertEquals(0, settings(gateway, "temperature=", "mode=").exitCode());
            assertEquals(0, gateway.router().settings().get(RouterSettings.TEMPERATURE));
            final Path file = Files.writeString(dir.resolve("g.yaml"), "max-head-bytes: 65536\n");
            gateway.reload(() -> config().file(file).build());
            assertTrue(
                    settings(gateway).out().contains("! max-head-bytes is 65536 in the file now"));
            assertTrue(settings(gateway, "--json").out().contains("\"waiting_for_start\""));
        }
    }

    @Test
    void aWrongCommandLineIsSaid() {
        assertEquals(2, CommandRun.of("settings", "temperature").exitCode());
        assertEquals(2, CommandRun.of("settings", "--dry-run").exitCode());
        assertEquals(
                3, CommandRun.of("settings", "--url=http://127.0.0.1:1", "mode=kv").exitCode());
    }

    @Test
    void allThatIsWrongIsSaidAtOnceAndWhatHasNoEffectIsWarnedOf() throws IOException {
        final Path file =
                Files.writeString(dir.resolve("g.yaml"), "model: m\nmodle: x\nretries: -1\n");
        final CommandRun wrong =
                CommandRun.of("serve", "--config=" + file, "--check-config", "--worker=http://h:1");
        assertEquals(3, wrong.exitCode());
        assertTrue(wrong.err().contains("unknown setting 'modle'"), wrong.err());
        assertTrue(wrong.err().contains("retries=-1"), wrong.err());
        final CommandRun both =
                CommandRun.of("serve", "--config=" + file, "--check-config", "--port=-1");
        assertEquals(2, both.exitCode());
        assertTrue(both.err().contains("port=-1"), both.err());
        assertTrue(both.err().contains("retries=-1"), both.err());
        final CommandRun warned =
                CommandRun.of(
                        "serve",
                        "--check-config",
                        "--model=m",
                        "--worker=http://h:1",
                        "--ttl-secs=9");
        assertEquals(0, warned.exitCode(), warned.err());
        assertTrue(warned.out().startsWith("warning: ttl-secs has no effect"), warned.out());
        assertTrue(warned.out().endsWith("ok\n"), warned.out());
    }
}
