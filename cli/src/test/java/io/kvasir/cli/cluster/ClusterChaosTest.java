package io.kvasir.cli.cluster;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.abort;

import io.kvasir.testsupport.FreePorts;
import io.kvasir.testsupport.NatsCluster;
import io.kvasir.testsupport.NatsServer;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.TcpProxy;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;
import java.util.stream.Collectors;

/**
 * Two gateways that share bookings, four engines with a relay each, and three NATS servers that
 * keep the stream of events together: each a process, under load. At random moments of each round
 * some of them are killed, stopped, or cut off from NATS; afterwards both gateways must know what
 * the engines hold, and agree on the load.
 *
 * <p>{@code -Dchaos.rounds=50 -Dseed=N} runs more of them, or the same again.
 */
@Tag("integration") // starts servers and JVMs
class ClusterChaosTest {
    private static final int ROUNDS = Integer.getInteger("chaos.rounds", 5);
    private static final int ENGINES = 4;
    private static final int REPLICAS = 2;
    private static final int MOST_GAP_MS = 1_500;
    private static final int MOST_HOLD_MS = 6_000;
    private static final int HELD_REQUESTS = 6;
    private static final long LIMIT_NS = TimeUnit.MINUTES.toNanos(3);
    private static final long POLL_MS = 100;

    @TempDir Path folder;

    private final Random random = new Random(Seeds.next("ClusterChaosTest"));
    private final List<TcpProxy> proxies = new ArrayList<>();
    private final List<List<TcpProxy>> linksOfReplicas = new ArrayList<>();
    private final List<List<TcpProxy>> linksOfEngines = new ArrayList<>();
    private final List<Child> engines = new ArrayList<>();
    private final List<Child> replicas = new ArrayList<>();
    private final int[] ports = new int[REPLICAS];
    private final int[] enginePorts = new int[ENGINES];
    private NatsCluster nats;
    private Load load;

    /** Something that can go wrong for a while. */
    private record Fault(String name, Action begin, Action end) {
        /** A step of it. */
        @FunctionalInterface
        interface Action {
            void run() throws Exception;
        }
    }

    @BeforeEach
    void start() throws Exception {
        try {
            nats = new NatsCluster(NatsServer.program(), folder);
        } catch (IOException e) {
            abort("skipped: no NATS: " + e.getMessage());
        }
        final List<String> workers = new ArrayList<>();
        for (int i = 0; i < ENGINES; i++) {
            final int port = FreePorts.run(3);
            enginePorts[i] = port;
            final List<TcpProxy> links = links();
            linksOfEngines.add(links);
            final long id = 100L + i;
            engines.add(
                    new Child(
                            folder.resolve("engine-" + i + ".log"),
                            EngineProcess.class,
                            Integer.toString(port),
                            urls(links),
                            Long.toString(id)));
            engines.get(i).start();
            workers.add("http://127.0.0.1:" + port + ",name=w" + i + ",event-worker=" + id);
        }
        for (int i = 0; i < REPLICAS; i++) {
            ports[i] = FreePorts.run(1);
            final List<TcpProxy> links = links();
            linksOfReplicas.add(links);
            final List<String> arguments =
                    new ArrayList<>(
                            List.of(
                                    Integer.toString(ports[i]),
                                    urls(links),
                                    Integer.toString(i + 1)));
            arguments.addAll(workers);
            replicas.add(
                    new Child(
                            folder.resolve("replica-" + i + ".log"),
                            ReplicaProcess.class,
                            arguments.toArray(String[]::new)));
            replicas.get(i).start();
        }
        for (Child child : all()) {
            child.awaitReady();
        }
        load = new Load(ports, random.nextLong());
    }

    private List<Child> all() {
        final List<Child> all = new ArrayList<>(engines);
        all.addAll(replicas);
        return all;
    }

    /** A way to each server for one process, which can be cut. */
    private List<TcpProxy> links() throws IOException {
        final List<TcpProxy> links = new ArrayList<>();
        for (NatsServer server : nats.servers()) {
            links.add(new TcpProxy(server.port()));
        }
        proxies.addAll(links);
        return links;
    }

    private static String urls(List<TcpProxy> links) {
        return links.stream()
                .map(link -> "nats://127.0.0.1:" + link.port())
                .collect(Collectors.joining(","));
    }

    @AfterEach
    void stop() throws IOException {
        if (load != null) {
            load.close();
        }
        all().forEach(Child::end);
        for (TcpProxy proxy : proxies) {
            proxy.close();
        }
        if (nats != null) {
            nats.close();
        }
    }

    @Test
    void whateverDiesGatewaysKnowWhatEnginesHoldAndAgreeOnTheLoad() throws Exception {
        awaitTruth("before the first round");
        for (int round = 0; round < ROUNDS; round++) {
            final String what = "round " + round + " " + trouble();
            System.out.println(what + ": " + load.outcomes());
            awaitTruth(what);
            awaitEqualLoad(what);
            assertEquals(List.of(), load.failures(), what);
        }
    }

    /** Puts the cluster to some trouble under load, and ends it; says what it was. */
    private List<String> trouble() throws Exception {
        load.begin();
        final List<Fault> faults = possible();
        final List<Thread> running = new ArrayList<>();
        final List<Throwable> errors = Collections.synchronizedList(new ArrayList<>());
        for (Fault fault : faults) {
            Thread.sleep(random.nextInt(MOST_GAP_MS));
            final int holdMs = random.nextInt(MOST_HOLD_MS);
            running.add(
                    Thread.ofPlatform()
                            .start(
                                    () -> {
                                        try {
                                            fault.begin.run();
                                            Thread.sleep(holdMs);
                                            fault.end.run();
                                        } catch (Throwable t) {
                                            errors.add(t);
                                        }
                                    }));
        }
        for (Thread thread : running) {
            thread.join();
        }
        Thread.sleep(random.nextInt(MOST_GAP_MS));
        load.end();
        assertEquals(List.of(), errors);
        return faults.stream().map(Fault::name).toList();
    }

    /** A fault of a gateway, one of an engine and one of a server, in a random order. */
    private List<Fault> possible() {
        final List<Fault> all = new ArrayList<>();
        final int replica = random.nextInt(REPLICAS);
        all.add(ofChild("replica " + replica, replicas.get(replica), linksOfReplicas.get(replica)));
        final int engine = random.nextInt(ENGINES);
        all.add(ofChild("engine " + engine, engines.get(engine), linksOfEngines.get(engine)));
        final int server = random.nextInt(nats.servers().size());
        all.add(ofServer(server, nats.servers().get(server)));
        Collections.shuffle(all, random);
        return all;
    }

    private Fault ofChild(String name, Child child, List<TcpProxy> links) {
        return switch (random.nextInt(3)) {
            case 0 ->
                    new Fault(
                            "kill " + name,
                            () -> {
                                load.dies(replicas.indexOf(child));
                                child.kill();
                            },
                            () -> {
                                child.start();
                                child.awaitReady();
                                load.lives(replicas.indexOf(child));
                            });
            case 1 -> new Fault("stop " + name, child::hang, child::goOn);
            default ->
                    new Fault(
                            "cut off " + name,
                            () -> links.forEach(TcpProxy::cut),
                            () -> links.forEach(TcpProxy::heal));
        };
    }

    private Fault ofServer(int number, NatsServer server) {
        return random.nextInt(3) > 0
                ? new Fault("kill nats " + number, server::stop, server::start)
                : new Fault("stop nats " + number, server::hang, server::goOn);
    }

    // -- what must be true afterwards

    private void awaitTruth(String what) throws Exception {
        for (int port : enginePorts) {
            load.ask(port); // what is announced from now on comes through as well
        }
        await(
                what,
                () -> {
                    final Map<String, String> truth = new TreeMap<>();
                    for (int i = 0; i < ENGINES; i++) {
                        truth.put("w" + i, "EXACT:" + engines.get(i).ask("held"));
                    }
                    for (Child replica : replicas) {
                        final Map<String, String> known = new TreeMap<>();
                        for (String part : replica.ask(ReplicaProcess.INDEX).split(" ", -1)) {
                            final int colon = part.indexOf(':');
                            known.put(part.substring(0, colon), part.substring(colon + 1));
                        }
                        if (!known.equals(truth)) {
                            return difference(truth, known)
                                    + "; "
                                    + replica.ask(ReplicaProcess.STATUS);
                        }
                    }
                    return null;
                });
    }

    private static String difference(Map<String, String> truth, Map<String, String> known) {
        return truth.keySet().stream()
                .filter(worker -> !truth.get(worker).equals(known.get(worker)))
                .map(worker -> worker + ": " + summary(truth, known, worker))
                .collect(Collectors.joining("; "));
    }

    private static String summary(
            Map<String, String> truth, Map<String, String> known, String worker) {
        final List<String> holds = hashes(truth.get(worker));
        final List<String> believed = hashes(known.getOrDefault(worker, "none:"));
        final List<String> missing = new ArrayList<>(holds);
        missing.removeAll(believed);
        final List<String> tooMany = new ArrayList<>(believed);
        tooMany.removeAll(holds);
        return known.getOrDefault(worker, "none:").split(":", -1)[0]
                + ", of "
                + holds.size()
                + " blocks "
                + missing.size()
                + " are missing and "
                + tooMany.size()
                + " are not held";
    }

    private static List<String> hashes(String part) {
        return Arrays.asList(part.substring(part.indexOf(':') + 1).split(",", -1));
    }

    /** Requests that run are seen by both, and no more when they have ended. */
    private void awaitEqualLoad(String what) throws Exception {
        awaitLoad(what + ", nothing runs", 0);
        load.hold(HELD_REQUESTS);
        awaitLoad(what + ", requests run", HELD_REQUESTS);
        load.release();
        awaitLoad(what + ", they have ended", 0);
    }

    private void awaitLoad(String what, int requests) throws Exception {
        await(
                what,
                () -> {
                    final String first = replicas.get(0).ask(ReplicaProcess.LOADS);
                    final String second = replicas.get(1).ask(ReplicaProcess.LOADS);
                    int sum = 0;
                    boolean zero = true;
                    for (String part : first.split(" ", -1)) {
                        if (part.startsWith("w")) {
                            final String[] values = part.split("[=/]", -1);
                            sum += Integer.parseInt(values[1]);
                            zero &= part.endsWith("=0/0/0");
                        }
                    }
                    final boolean right =
                            first.startsWith("peers=1 ")
                                    && first.equals(second)
                                    && sum == requests
                                    && (requests > 0 || zero);
                    return right ? null : first + " and " + second + "; " + load.failures();
                });
    }

    /** Waits until there is no difference any more. */
    private void await(String what, Callable<String> difference) throws Exception {
        final long since = System.nanoTime();
        for (String found = difference.call(); found != null; found = difference.call()) {
            if (System.nanoTime() - since >= LIMIT_NS) {
                final String url = nats.servers().getFirst().url();
                fail(
                        what
                                + ": "
                                + found
                                + "; "
                                + StreamContents.missing(url, EngineProcess.EVENTS));
            }
            Thread.sleep(POLL_MS);
        }
    }
}
