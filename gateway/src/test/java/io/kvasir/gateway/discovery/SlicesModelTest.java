package io.kvasir.gateway.discovery;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.discovery.EndpointSlices.Condition;
import io.kvasir.gateway.discovery.FoundWorkers.Found;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;

import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.UUID;
import java.util.stream.Collectors;

/**
 * Slices that are written, deleted and listed anew while the watch lags; pods are in several of
 * them, at several addresses, and several pods have one name. Each name is one worker in the best
 * condition that is said of it, and stays the same one for as long as that is true of its pod.
 */
class SlicesModelTest {
    private static final int TRIALS = Trials.of(20, 300);
    private static final int STEPS = 40;
    private static final ObjectMapper JSON = new ObjectMapper();

    @Tag("trials")
    @Test
    void eachNameIsOneWorkerInItsBestCondition() throws Exception {
        final long seed = Seeds.next("SlicesModelTest");
        for (int trial = 0; trial < TRIALS; trial++) {
            new Model(new Random(seed + trial)).run();
        }
    }

    /** What a slice says of a pod. */
    private record Said(String pod, UUID uid, String address, Condition condition) {
        long generation() {
            return uid.getMostSignificantBits() & Long.MAX_VALUE;
        }

        boolean isOf(DiscoveredWorker worker) {
            return worker.generation() == generation();
        }

        boolean isAt(DiscoveredWorker worker) {
            return isOf(worker) && worker.worker().url().getHost().equals(address);
        }
    }

    /** One run. */
    private static final class Model {
        private static final List<String> SLICES = List.of("s1", "s2", "s3");
        private static final List<String> PODS = List.of("a", "b");
        private static final List<String> ADDRESSES = List.of("10.0.0.1", "10.0.0.2", "10.0.0.3");
        private static final Map<Condition, String> TEXTS =
                Map.of(
                        Condition.READY, Slice.READY,
                        Condition.DRAINING, "\"ready\":false",
                        Condition.GONE, "\"ready\":false,\"serving\":false,\"terminating\":true");

        private final Random random;
        private final Map<String, List<Said>> there = new TreeMap<>(); // by slice
        private final Map<String, List<Said>> reported = new TreeMap<>(); // what the watch has said
        private final Deque<Runnable> coming = new ArrayDeque<>();
        private final Slices slices =
                new Slices(
                        new EndpointSlices(
                                new EndpointSlices.Ports("m", "http", null, null, Map.of())),
                        () -> {},
                        _ -> {});
        private Map<String, Found> before = Map.of();
        private long version;

        Model(Random random) {
            this.random = random;
        }

        void run() throws JsonProcessingException {
            list();
            for (int step = 0; step < STEPS; step++) {
                step(SLICES.get(random.nextInt(SLICES.size())));
                check();
            }
            while (!coming.isEmpty()) {
                coming.remove().run();
            }
            check();
            assertEquals(there, reported);
        }

        private void step(String name) throws JsonProcessingException {
            switch (random.nextInt(8)) {
                case 0, 1, 2 -> write(name);
                case 3 -> delete(name);
                case 4 -> list();
                case 5 -> slices.lost("away");
                default -> {
                    if (!coming.isEmpty()) {
                        coming.remove().run();
                    }
                }
            }
        }

        private void write(String name) throws JsonProcessingException {
            final List<Said> all = new ArrayList<>();
            for (int i = random.nextInt(4); i > 0; i--) {
                all.add(
                        new Said(
                                one(PODS),
                                new UUID(1 + random.nextInt(2), 7),
                                one(ADDRESSES),
                                one(List.of(Condition.values()))));
            }
            there.put(name, all);
            final JsonNode object = json(name, all);
            coming.add(
                    () -> {
                        slices.changed(object);
                        reported.put(name, all);
                    });
        }

        private <T> T one(List<T> of) {
            return of.get(random.nextInt(of.size()));
        }

        private JsonNode json(String name, List<Said> all) throws JsonProcessingException {
            final Slice slice = new Slice(name).port("http", 8000);
            for (Said each : all) {
                slice.uid(each.uid.toString())
                        .endpoint(each.pod, each.address, TEXTS.get(each.condition));
            }
            return JSON.readTree(slice.json(++version));
        }

        private void delete(String name) throws JsonProcessingException {
            final List<Said> former = there.remove(name);
            if (former != null) {
                final JsonNode object = json(name, former);
                coming.add(
                        () -> {
                            slices.deleted(object);
                            reported.remove(name);
                        });
            }
        }

        /** All that is there, after which the watch says only what is later. */
        private void list() throws JsonProcessingException {
            coming.clear();
            final List<JsonNode> all = new ArrayList<>();
            for (Map.Entry<String, List<Said>> each : there.entrySet()) {
                all.add(json(each.getKey(), each.getValue()));
            }
            slices.view(all);
            reported.clear();
            reported.putAll(there);
        }

        private void check() {
            final Map<String, String> problems = new HashMap<>();
            final Map<String, Found> now = slices.workers(problems);
            assertEquals(Map.of(), problems);
            final Set<String> names = new TreeSet<>();
            for (String pod : PODS) {
                final List<Said> said = said(pod);
                final Condition best = best(said);
                if (best != Condition.GONE) {
                    names.add(pod);
                    check(now.get(pod), before.get(pod), said, best);
                }
            }
            assertEquals(names, now.keySet());
            before = now;
            checkConditions();
        }

        private List<Said> said(String pod) {
            return reported.values().stream()
                    .flatMap(List::stream)
                    .filter(each -> each.pod.equals(pod))
                    .toList();
        }

        private static Condition best(List<Said> said) {
            return said.stream()
                    .map(Said::condition)
                    .min(Condition::compareTo)
                    .orElse(Condition.GONE);
        }

        private static void check(Found now, Found was, List<Said> said, Condition best) {
            assertEquals(best == Condition.READY, now.ready(), said::toString);
            final List<Said> bestPods =
                    said.stream().filter(each -> best(ofPod(said, each)) == best).toList();
            assertTrue(
                    bestPods.stream().anyMatch(each -> each.isAt(now.worker())),
                    () -> now + " of " + said);
            if (was == null) {
                return;
            }
            if (bestPods.stream().anyMatch(each -> each.isOf(was.worker()))) {
                assertEquals(
                        was.worker().generation(),
                        now.worker().generation(),
                        () -> "another pod though the former is as good: " + said);
                if (said.stream().anyMatch(each -> each.isAt(was.worker()))) {
                    assertEquals(was.worker(), now.worker(), said::toString);
                }
            }
        }

        private static List<Said> ofPod(List<Said> said, Said pod) {
            return said.stream().filter(each -> each.uid.equals(pod.uid)).toList();
        }

        private void checkConditions() {
            final Map<String, Condition> all =
                    reported.values().stream()
                            .flatMap(List::stream)
                            .collect(
                                    Collectors.toMap(
                                            each -> each.uid.toString(),
                                            Said::condition,
                                            (a, b) -> a.compareTo(b) <= 0 ? a : b));
            assertEquals(all, slices.conditions());
        }
    }
}
