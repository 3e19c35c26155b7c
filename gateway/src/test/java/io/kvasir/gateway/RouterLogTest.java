package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import ch.qos.logback.classic.Level;
import ch.qos.logback.classic.spi.ILoggingEvent;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.gateway.testing.CapturedLog;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.router.Decision;
import io.kvasir.router.EventPlaneWorker;
import io.kvasir.router.KvRouter;
import io.kvasir.router.PlaneState;
import io.kvasir.router.RouteException;
import io.kvasir.router.RouteRequest;
import io.kvasir.router.RouterConfig;
import io.kvasir.router.WorkerSpec;
import io.kvasir.router.policy.Eligibility;
import io.kvasir.router.policy.PolicyFailures;
import io.kvasir.router.policy.SelectionPolicy;
import io.kvasir.router.policy.SelectionPolicyProvider;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.spi.StateStore;
import io.kvasir.router.state.SnapshotCounts;
import io.kvasir.router.state.SnapshotStatus;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.api.parallel.Isolated;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
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

    private interface Step {
        void run() throws Exception;
    }

    /** Runs a step where the class path has this provider, too. */
    private void with(Class<? extends SelectionPolicyProvider> provider, Step step)
            throws Exception {
        final Path services = Files.createDirectories(temp.resolve("META-INF/services"));
        Files.writeString(
                services.resolve(SelectionPolicyProvider.class.getName()), provider.getName());
        final Thread thread = Thread.currentThread();
        final ClassLoader before = thread.getContextClassLoader();
        try (URLClassLoader loader =
                new URLClassLoader(new URL[] {temp.toUri().toURL()}, getClass().getClassLoader())) {
            thread.setContextClassLoader(loader);
            step.run();
        } finally {
            thread.setContextClassLoader(before);
        }
    }

    private static RouterConfig.Builder builder() {
        return KvRouter.builder().blockSize(16).maxWorkers(4).maxBlocks(1_024, 1_024);
    }

    @Test
    void aProviderThatFailsIsLoggedOnce() throws Exception {
        with(
                Failing.class,
                () -> {
                    for (int i = 0; i < 3; i++) {
                        assertThrows(
                                IllegalArgumentException.class,
                                () -> builder().set("selection-policy", "best"));
                    }
                });
        final List<ILoggingEvent> lines = lines(Failing.class.getName());
        assertEquals(1, lines.size(), lines::toString);
        assertEquals(Level.WARN, lines.getFirst().getLevel());
        assertTrue(lines.getFirst().getFormattedMessage().endsWith("no table"), lines::toString);
    }

    /** Two policies that fail in each part. */
    public static final class Broken implements SelectionPolicyProvider {
        /** For the loader. */
        public Broken() {}

        private static SelectionPolicy policy(String name) {
            return new SelectionPolicy(
                    name,
                    one -> {
                        if (one.worker().id() == 0) {
                            throw new IllegalStateException("no zone");
                        }
                        return Eligibility.Verdict.ELIGIBLE;
                    },
                    (all, costs) -> {
                        throw new IllegalStateException("no price");
                    },
                    (all, costs, random) -> all.count());
        }

        @Override
        public Iterable<SelectionPolicy> policies() {
            return List.of(policy("broken-a"), policy("broken-b"));
        }
    }

    @Test
    void theFirstFailureOfEachPartOfAPolicyIsLogged() throws Exception {
        with(
                Broken.class,
                () -> {
                    try (KvRouter router = builder().set("selection-policy", "broken-a").build()) {
                        for (int i = 0; i < 3; i++) {
                            router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i));
                        }
                        routeOften(router);
                        assertLogged("broken-a");
                        assertEquals(0, lines("broken-b").size());
                        router.change(
                                router.settings()
                                        .with(RouterSettings.SELECTION_POLICY, "broken-b"));
                        routeOften(router);
                        assertLogged("broken-a");
                        assertLogged("broken-b");
                        assertEquals(
                                new PolicyFailures(6, 6, 0, 6), router.status().policyFailures());
                    }
                });
    }

    private static void routeOften(KvRouter router) throws RouteException {
        for (int i = 0; i < 3; i++) {
            router.select(router.newRequest().tokens(new int[70], 70), new Decision());
        }
    }

    private void assertLogged(String policy) {
        final List<String> lines =
                lines("selection-policy=" + policy + " failed").stream()
                        .map(
                                line ->
                                        line.getLevel()
                                                + " "
                                                + line.getFormattedMessage()
                                                + ": "
                                                + line.getThrowableProxy().getMessage())
                        .toList();
        final String after =
                " of selection-policy="
                        + policy
                        + " failed; RouterStatus.policyFailures counts further ones: ";
        assertEquals(
                List.of(
                        "ERROR the eligibility" + after + "no zone",
                        "ERROR the cost model" + after + "no price",
                        "ERROR the picker" + after + "picked 2 of 2 candidates"),
                lines);
    }

    @Test
    void theFirstCostThatIsNoNumberIsLogged() throws Exception {
        try (KvRouter router =
                builder()
                        .costModel(
                                (all, costs) -> {
                                    costs[0] = 1;
                                    costs[1] = Double.NaN;
                                })
                        .build()) {
            for (int i = 0; i < 3; i++) {
                router.addWorker(WorkerSpec.of(i, "w" + i, "http://w" + i));
            }
            final RouteRequest request = router.newRequest().tokens(new int[70], 70).id("req-1");
            for (int i = 0; i < 3; i++) {
                router.select(request, new Decision());
            }
            assertEquals(new PolicyFailures(0, 0, 6, 0), router.status().policyFailures());
        }
        final List<ILoggingEvent> lines = lines("selection-policy=custom");
        assertEquals(1, lines.size(), lines::toString);
        assertEquals(Level.ERROR, lines.getFirst().getLevel());
        final String line = lines.getFirst().getFormattedMessage();
        assertEquals(
                "the cost model of selection-policy=custom gave worker w1/0, and 1 more, no number"
                        + " as its cost for request req-1 of 70 tokens, which counts as the"
                        + " dearest; RouterStatus.policyFailures counts further ones",
                line.replaceFirst(" \\(of further ones.*", ""));
    }

    /** One that has nothing, and cannot be closed. */
    private static final class UnclosedStore implements StateStore {
        @Override
        public boolean lock() {
            return true;
        }

        @Override
        public void put(String name, Content content) throws IOException {
            content.writeTo(OutputStream.nullOutputStream());
        }

        @Override
        public InputStream get(String name, long offset) {
            return null;
        }

        @Override
        public List<String> list() {
            return List.of();
        }

        @Override
        public void delete(String name) {
            throw new AssertionError("there is none");
        }

        @Override
        public void close() {
            throw new IllegalStateException("not closed");
        }
    }

    @Test
    void aStoreThatCannotBeClosedIsLogged() {
        builder().stateStore(new UnclosedStore()).build().close();
        final List<ILoggingEvent> lines = lines("the given StateStore");
        assertEquals(1, lines.size(), lines::toString);
        assertEquals(
                "the given StateStore could not be closed", lines.getFirst().getFormattedMessage());
        assertEquals(Level.ERROR, lines.getFirst().getLevel());
        assertEquals("not closed", lines.getFirst().getThrowableProxy().getMessage());
    }

    /** What is saved of a worker's second life cannot be restored. */
    private static final class FailingState implements PlaneState {
        private boolean joined;

        @Override
        public Restored restore(
                EventPlaneWorker worker, int slot, IndexPipeline pipeline, PrefixIndex index) {
            if (joined) {
                throw new IllegalStateException("no snapshot of " + worker);
            }
            joined = true;
            return null;
        }

        @Override
        public void start(KvRouter router) {}

        @Override
        public SnapshotStatus status() {
            return new SnapshotCounts().status();
        }

        @Override
        public void close() {}
    }

    @Test
    void aWorkerThatJoinsItsPlaneWithoutWhatWasSavedIsLoggedOnce() throws Exception {
        try (KvRouter router =
                builder().planeState(new FailingState()).eventPlane(plane -> () -> {}).build()) {
            router.rejoinPlane(
                    router.addWorker(
                            WorkerSpec.of(7, "one", "http://w")
                                    .onEventPlane(new EventPlaneWorker(7, 0))));
        }
        final List<ILoggingEvent> lines = lines("worker one/0 ");
        assertEquals(1, lines.size(), lines::toString);
        assertEquals(
                "worker one/0 joins the event plane without what was saved of it, which cannot be"
                        + " restored",
                lines.getFirst().getFormattedMessage());
        assertEquals("no snapshot of 7/0", lines.getFirst().getThrowableProxy().getMessage());
    }
}
