package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.WorkerConfig;

import org.junit.jupiter.api.Test;

import java.time.Duration;
import java.util.HashSet;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CopyOnWriteArrayList;

/** What every {@link Discovery} keeps to. */
public abstract class DiscoveryContract {
    public static final String MODEL = "m";

    /** A listener that remembers what is there by the source's word. */
    public static class Known implements Discovery.Listener {
        private final Map<String, DiscoveredWorker> workers = new LinkedHashMap<>();
        private final Set<String> draining = new HashSet<>();
        public final List<String> failures = new CopyOnWriteArrayList<>();
        public final List<Duration> recoveries = new CopyOnWriteArrayList<>();

        @Override
        public synchronized void view(List<DiscoveredWorker> all) {
            workers.clear();
            all.forEach(w -> workers.put(w.name(), w));
        }

        @Override
        public synchronized boolean added(DiscoveredWorker worker) {
            return !worker.equals(workers.put(worker.name(), worker));
        }

        @Override
        public synchronized boolean removed(String name) {
            return workers.remove(name) != null;
        }

        @Override
        public synchronized void draining(String name, boolean begin) {
            if (begin) {
                draining.add(name);
            } else {
                draining.remove(name);
            }
        }

        /** Names of those that get no new request. */
        public synchronized Set<String> draining() {
            return Set.copyOf(draining);
        }

        @Override
        public synchronized void failed(String cause) {
            failures.add(cause);
        }

        @Override
        public void recovered(Duration away) {
            recoveries.add(away);
        }

        public synchronized List<DiscoveredWorker> all() {
            return List.copyOf(workers.values());
        }

        public synchronized int failureCount() {
            return failures.size();
        }
    }

    public final Known known = new Known();

    /** A source that is started with {@code listener} and then knows the workers. */
    protected abstract Discovery started(
            Discovery.Listener listener, List<DiscoveredWorker> workers) throws Exception;

    protected static DiscoveredWorker worker(String text) {
        return DiscoveredWorker.of(MODEL, WorkerConfig.parse(text));
    }

    /** What is known, without generations that the source gives by itself. */
    private List<DiscoveredWorker> seen() {
        return known.all().stream()
                .map(w -> new DiscoveredWorker(w.model(), 0, w.worker()))
                .toList();
    }

    @Test
    void whatItKnowsIsPublishedWithAllThatIsSaidOfIt() throws Exception {
        final List<DiscoveredWorker> workers =
                List.of(
                        worker("http://h:1,name=a"),
                        worker("http://h:2,name=b,events=tcp://h:3,replay=tcp://h:5,dp=2,topic=t"));
        try (Discovery discovery = started(known, workers)) {
            assertEquals(workers, seen());
            assertEquals(List.of(), known.failures);
            assertTrue(discovery.source().matches("[a-z]+"), discovery.source());
        }
    }

    @Test
    void lookingAgainChangesNothingWhereNothingHasChanged() throws Exception {
        final List<DiscoveredWorker> workers = List.of(worker("http://h:1,name=a"));
        try (Discovery discovery = started(known, workers)) {
            discovery.reload();
            discovery.reload();
            assertEquals(workers, seen());
            assertEquals(List.of(), known.failures);
        }
    }

    @Test
    void noWorkersAreAViewToo() throws Exception {
        try (Discovery discovery = started(known, List.of())) {
            discovery.reload();
            assertEquals(List.of(), known.all());
            assertEquals(List.of(), known.failures);
        }
    }
}
