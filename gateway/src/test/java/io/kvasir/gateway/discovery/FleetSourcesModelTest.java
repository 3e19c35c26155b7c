package io.kvasir.gateway.discovery;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.core.closing.Closing;
import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.WorkerConfig;
import io.kvasir.gateway.discovery.FoundWorkers.Found;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.upstream.Fleet;
import io.kvasir.gateway.upstream.PoolRouters;
import io.kvasir.gateway.upstream.Upstream;
import io.kvasir.gateway.upstream.UpstreamRegistry;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;

/**
 * Two sources with the same names, by one description or by several, some of which find no room;
 * each drains its workers, and operators drain some. The last word on a name counts, and a worker
 * is drained while one of them wants it so, and no longer.
 */
class FleetSourcesModelTest {
    private static final int STEPS = 1_000;
    private static final int NAMES = 3;
    private static final int ROOM = 8;

    private final List<GatewayConfig> models =
            Gateways.config().set(RouterSettings.MAX_WORKERS, ROOM).build().models();
    private final List<PoolRouters> routers = PoolRouters.open(models);
    private final Fleet fleet =
            new Fleet(List.of(new UpstreamRegistry(models.getFirst(), routers.getFirst())));
    private final Random random = new Random(Seeds.next("FleetSourcesModelTest"));
    private final List<Source> sources = List.of(new Source("a"), new Source("b"));
    private final Set<Long> drained = new HashSet<>(); // by operators, ids
    private final Set<Long> resumed = new HashSet<>(); // by them, also where sources wanted none

    /** A source, and what it has. */
    private final class Source {
        private final String name;
        private final FoundWorkers found;
        private final Map<String, Found> has = new TreeMap<>(); // by name
        private final Set<Long> owned = new HashSet<>(); // ids

        Source(String name) {
            this.name = name;
            found = new FoundWorkers(fleet.listener(name));
            has.put(name, new Found(described(name, 0), true)); // else views wait for one in use
        }

        void change() {
            final String worker = "w" + random.nextInt(NAMES);
            if (random.nextInt(4) == 0) {
                has.remove(worker);
                return;
            }
            final Found before = has.get(worker);
            has.put(
                    worker,
                    new Found(
                            before == null || random.nextInt(3) == 0
                                    ? described(worker, random.nextInt(4))
                                    : before.worker(),
                            random.nextBoolean()));
        }

        void publish() {
            found.publish(has.values());
            fleet.upstreams().stream()
                    .filter(upstream -> upstream.source().equals(name))
                    .forEach(upstream -> owned.add(upstream.id()));
            for (Found each : has.values()) {
                final Upstream there = namedOrNull(each.worker().name());
                if (each.ready() && hasRoom(each.worker())) {
                    assertEquals(name, there.source());
                    assertEquals(label(each.worker()), there.labels().get("is"));
                } else if (there != null && isOf(there, each) && there.source().equals(name)) {
                    assertTrue(
                            each.ready() || there.draining() || resumed.contains(there.id()),
                            () -> name + ": " + each);
                }
            }
        }

        boolean drains(Upstream worker) {
            final Found mine = has.get(worker.name());
            return mine != null
                    && !mine.ready()
                    && (isOf(worker, mine) || owned.contains(worker.id()));
        }
    }

    @AfterEach
    void close() {
        fleet.close();
        Closing.all(routers);
    }

    @Test
    void aWorkerIsDrainedWhileSomebodyWantsItSo() {
        for (int step = 0; step < STEPS; step++) {
            final Source source = sources.get(random.nextInt(2));
            if (random.nextInt(5) == 0) {
                operate();
            } else {
                source.change();
                source.publish();
            }
            check();
        }
    }

    private void operate() {
        final Upstream one = namedOrNull("w" + random.nextInt(NAMES));
        if (one == null) {
            return;
        }
        final boolean begin = random.nextInt(3) > 0;
        fleet.drain(one.name(), begin);
        assertEquals(begin, one.draining());
        if (begin) {
            drained.add(one.id());
        } else {
            drained.remove(one.id());
            resumed.add(one.id());
        }
    }

    private void check() {
        for (Upstream each : fleet.upstreams()) {
            final boolean isWanted =
                    drained.contains(each.id())
                            || sources.stream().anyMatch(source -> source.drains(each));
            assertTrue(
                    isWanted || !each.draining(), () -> each.name() + ": none of them drains it");
            assertTrue(each.draining() || !drained.contains(each.id()), "an operator does");
        }
    }

    private Upstream namedOrNull(String name) {
        return fleet.upstreams().stream()
                .filter(upstream -> upstream.name().equals(name))
                .findFirst()
                .orElse(null);
    }

    private static DiscoveredWorker described(String name, int version) {
        return DiscoveredWorker.of(
                "m",
                WorkerConfig.parse(
                        "http://h:1,name=%s,labels=is:%d,dp=%d"
                                .formatted(name, version, version == 3 ? ROOM + 1 : 1)));
    }

    private static boolean hasRoom(DiscoveredWorker worker) {
        return !label(worker).equals("3");
    }

    private static String label(DiscoveredWorker worker) {
        return worker.worker().labels().get("is");
    }

    private static boolean isOf(Upstream upstream, Found found) {
        return label(found.worker()).equals(upstream.labels().get("is"));
    }
}
