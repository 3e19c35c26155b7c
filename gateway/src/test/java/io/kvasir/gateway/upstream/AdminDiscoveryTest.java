package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.gateway.config.DiscoveredWorker;

import org.junit.jupiter.api.Test;

import java.util.List;

class AdminDiscoveryTest extends DiscoveryContract {
    @Override
    protected AdminDiscovery started(Discovery.Listener listener, List<DiscoveredWorker> workers) {
        final AdminDiscovery discovery = new AdminDiscovery();
        discovery.start(listener);
        workers.forEach(discovery::add);
        return discovery;
    }

    @Test
    void whatIsAddedAndRemovedIsPassedOn() {
        try (AdminDiscovery discovery = started(known, List.of())) {
            assertTrue(discovery.add(worker("http://h:1,name=a")));
            assertFalse(discovery.add(worker("http://h:1,name=a")));
            assertTrue(discovery.add(worker("http://h:2,name=a")));
            assertEquals(List.of(worker("http://h:2,name=a")), known.all());
            assertTrue(discovery.remove("a"));
            assertFalse(discovery.remove("a"));
            assertEquals(List.of(), known.all());
        }
    }
}
