package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewayException;
import io.kvasir.gateway.config.GatewaySettings;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.testing.Gateways;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;

/** What a gateway refuses to start with: before it warms up, which may take an hour here. */
class StartTest {
    private static GatewayConfig.Builder config() {
        return Gateways.config(WorkerConfig.parse("http://127.0.0.1:1,name=w"))
                .set(GatewaySettings.WARM_UP, Duration.ofHours(1));
    }

    private static void assertRefused(GatewayConfig.Builder config, String... parts) {
        final String message =
                assertThrows(GatewayException.class, () -> GatewayServer.start(config.build()))
                        .getMessage();
        for (String part : parts) {
            assertTrue(message.contains(part), message);
        }
    }

    @Test
    void aPortThatIsInUse() throws Exception {
        try (ServerSocket taken = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            final int port = taken.getLocalPort();
            assertRefused(
                    config().set(GatewaySettings.PORT, port),
                    "127.0.0.1:" + port,
                    "in use",
                    "another --port");
            assertRefused(
                    config().set(GatewaySettings.ADMIN_PORT, (long) port),
                    "127.0.0.1:" + port,
                    "another --admin-port");
        }
    }

    @Test
    void anAddressOfAnotherMachine() {
        assertRefused(
                config().set(GatewaySettings.HOST, "192.0.2.1"), "192.0.2.1:0", "another --host");
        assertRefused(
                config().set(GatewaySettings.HOST, "2001:db8::1"), "[2001:db8::1]:0", "--host");
        assertRefused(
                config().set(GatewaySettings.HOST, "no such name"), "no such name:0", "--host");
    }

    @Test
    void filesThatAreNotThere(@TempDir Path dir) {
        final Path missing = dir.resolve("missing");
        for (GatewayConfig.Builder config :
                List.of(
                        config().set(GatewaySettings.WORKERS_FILE, missing),
                        config().set(GatewaySettings.ADMIN_TOKEN_FILE, missing),
                        config().set(GatewaySettings.TRUSTED_TOKEN_FILE, missing),
                        config().set(GatewaySettings.WORKER_KEY_FILE, missing),
                        config().set(GatewaySettings.WORKER_TRUST_STORE, missing),
                        config().set(GatewaySettings.TOKENIZER, missing))) {
            assertRefused(config, missing.toString());
        }
    }
}
