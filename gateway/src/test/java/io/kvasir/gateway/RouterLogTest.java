package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.spi.ILoggingEvent;

import io.kvasir.gateway.testing.CapturedLog;
import io.kvasir.router.KvRouter;
import io.kvasir.router.policy.SelectionPolicy;
import io.kvasir.router.policy.SelectionPolicyProvider;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/** What the log has of an embedder's own parts of a router that fail. */
@Isolated // captures the log of the process
class RouterLogTest {
    private final CapturedLog log = new CapturedLog(Level.WARN);

    @TempDir Path temp;

    @AfterEach
    void stop() {
        log.close();
    }

    private List<ILoggingEvent> lines(String words) {
        return log.from(Level.WARN).stream()
                .filter(event -> event.getFormattedMessage().contains(words))
                .toList();
    }

    /** One that fails. */
    public static final class Failing implements SelectionPolicyProvider {
        /** For the loader. */
        public Failing() {}

        @Override
        public Iterable<SelectionPolicy> policies() {
            throw new IllegalStateException("no table");
        }
    }

    @Test
    void aProviderThatFailsIsLoggedOnce() throws Exception {
        final Path services = Files.createDirectories(temp.resolve("META-INF/services"));
        Files.writeString(
                services.resolve(SelectionPolicyProvider.class.getName()), Failing.class.getName());
        final Thread thread = Thread.currentThread();
        final ClassLoader before = thread.getContextClassLoader();
        try (URLClassLoader loader =
                new URLClassLoader(new URL[] {temp.toUri().toURL()}, getClass().getClassLoader())) {
            thread.setContextClassLoader(loader);
            for (int i = 0; i < 3; i++) {
                assertThrows(
                        IllegalArgumentException.class,
                        () -> KvRouter.builder().set("selection-policy", "best"));
            }
        } finally {
            thread.setContextClassLoader(before);
        }
        final List<ILoggingEvent> lines = lines(Failing.class.getName());
        assertEquals(1, lines.size(), lines::toString);
        assertEquals(Level.WARN, lines.getFirst().getLevel());
        assertTrue(lines.getFirst().getFormattedMessage().endsWith("no table"), lines::toString);
    }
}
