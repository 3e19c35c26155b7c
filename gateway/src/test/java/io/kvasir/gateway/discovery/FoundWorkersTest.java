package io.kvasir.gateway.discovery;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.discovery.FoundWorkers.Found;
import io.kvasir.gateway.upstream.Discovery;

import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.List;

class FoundWorkersTest {
    private final List<String> heard = new ArrayList<>();
    private final FoundWorkers found = new FoundWorkers(new Hearing());

    private static Found worker(String name, boolean ready) {
        return new Found(
                DiscoveredWorker.of("m", WorkerConfig.parse("http://h:1,name=" + name)), ready);
    }

    @Test
    void oneThatIsReadyAgainIsUsedBeforeAViewWaitsForSuccessors() {
        found.publish(List.of(worker("x", true), worker("y", true)));
        found.publish(List.of(worker("x", false), worker("y", true)));
        found.publish(List.of(worker("x", true), worker("z", true)));
        assertEquals(List.of("x y", "x is drained", "x y", "x is used", "x z"), heard);
    }

    /** A line for each thing that a listener is told. */
    private final class Hearing implements Discovery.Listener {
        @Override
        public void view(List<DiscoveredWorker> workers) {
            heard.add(String.join(" ", workers.stream().map(DiscoveredWorker::name).toList()));
        }

        @Override
        public boolean added(DiscoveredWorker worker) {
            throw new UnsupportedOperationException("views alone");
        }

        @Override
        public boolean removed(String name) {
            throw new UnsupportedOperationException("views alone");
        }

        @Override
        public void draining(String name, boolean draining) {
            heard.add(name + (draining ? " is drained" : " is used"));
        }

        @Override
        public void failed(String cause) {
            heard.add(cause);
        }
    }
}
