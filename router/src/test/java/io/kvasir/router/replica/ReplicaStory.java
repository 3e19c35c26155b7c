package io.kvasir.router.replica;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.pipeline.ring.WaitMode;
import io.kvasir.router.Decision;
import io.kvasir.router.KvRouter;
import io.kvasir.router.Lease;
import io.kvasir.router.RouteException;
import io.kvasir.router.Worker;
import io.kvasir.router.WorkerSpec;
import io.kvasir.router.policy.RandomSource;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.testsupport.Cores;

import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Routers over the same workers that share their bookings over a hub that loses and doubles, in
 * virtual time; and what their load has to be in the end, from the leases alone.
 */
final class ReplicaStory implements AutoCloseable {
    static final Duration DIGEST = Duration.ofMillis(500);
    static final Duration LEASE = Duration.ofSeconds(3);

    private static final int BLOCK = 16;
    private static final long TICK_NS = TimeUnit.MILLISECONDS.toNanos(100);
    private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(60);

    /** A router that lives, with what is booked through it. */
    final class Replica {
        final long id;
        final ReplicaHub.HubLink link;
        final KvRouter router;
        final List<Open> open = new ArrayList<>();
        private final Decision decision = new Decision();

        Replica(long id) {
            this.id = id;
            link = hub.open();
            router =
                    KvRouter.builder()
                            .maxWorkers(8)
                            .maxBlocks(1 << 12, 1 << 12)
                            .maxActiveRequests(256)
                            .bookingWait(WaitMode.BLOCKING)
                            .random(RandomSource.seeded(random.nextLong()))
                            .set(RouterSettings.ROUTER_ID, id)
                            .set(RouterSettings.REPLICA_DIGEST, digest)
                            .set(RouterSettings.REPLICA_LEASE, lease)
                            .set(RouterSettings.REPLICA_MAX_BOOKINGS, 512)
                            .tickedBy(clock::get)
                            .replicaLink(link)
                            .build();
            for (int i = 0; i < WORKERS; i++) {
                addWorker(i);
            }
        }

        void addWorker(int i) {
            router.addWorker(WorkerSpec.of(100 + i, "w" + i, "http://w" + i));
        }

        Worker worker(int i) {
            return router.workers().stream()
                    .filter(w -> w.name().equals("w" + i))
                    .findAny()
                    .orElse(null);
        }

        void reserve(int[] prompt) throws RouteException {
            final Lease lease =
                    router.reserve(router.newRequest().tokens(prompt, prompt.length), decision);
            open.add(
                    new Open(
                            lease,
                            decision.worker().name(),
                            prompt,
                            prompt.length)); // no engine announces what it holds
        }

        void settle() {
            final long start = System.nanoTime();
            while (router.bookingPipeline().backlog() > 0) {
                assertTrue(System.nanoTime() - start < PATIENCE_NS, "bookings are applied");
                Cores.giveWay();
            }
        }
    }

    /** A lease and what it weighs. */
    static final class Open {
        final Lease lease;
        final String worker;
        final int[] prompt;
        long prefill;
        int output; // tokens

        Open(Lease lease, String worker, int[] prompt, long prefill) {
            this.lease = lease;
            this.worker = worker;
            this.prompt = prompt;
            this.prefill = prefill;
        }
    }

    static final int WORKERS = 3;

    final Random random;
    final ReplicaHub hub;
    final List<Replica> replicas = new ArrayList<>();
    private final Duration digest;
    private final Duration lease;
    private final int[][] prefixes;
    private final AtomicLong clock = new AtomicLong(1_000); // alone: routers outlive the story
    private long lastId;

    ReplicaStory(long seed, Duration digest, Duration lease) {
        random = new Random(seed);
        hub = new ReplicaHub(random);
        this.digest = digest;
        this.lease = lease;
        prefixes = new int[4][];
        Arrays.setAll(prefixes, _ -> random.ints(4L * BLOCK, 0, 1000).toArray());
    }

    Replica join() {
        final Replica joined = new Replica(++lastId);
        replicas.add(joined);
        return joined;
    }

    /** Ends a router without a word: its process is killed. */
    void kill(Replica killed) {
        replicas.remove(killed);
        killed.link.close();
        killed.router.close();
    }

    /** Kills a router and starts it again under its number. */
    Replica restart(Replica killed) {
        kill(killed);
        final Replica again = new Replica(killed.id);
        replicas.add(again);
        return again;
    }

    /** A prompt that shares a prefix with others, of a random length. */
    int[] prompt() {
        return prompt(random);
    }

    /** The same by chance of a thread's own. */
    int[] prompt(Random by) {
        final int[] prefix = prefixes[by.nextInt(prefixes.length)];
        final int shared = BLOCK * (1 + by.nextInt(4));
        final int tail = by.nextInt(5 * BLOCK);
        final int[] prompt = Arrays.copyOf(prefix, shared + tail);
        for (int i = shared; i < prompt.length; i++) {
            prompt[i] = by.nextInt(1000);
        }
        return prompt;
    }

    /** Does something that happens to one request. */
    void act() throws RouteException {
        final Replica at = replicas.get(random.nextInt(replicas.size()));
        final int what = random.nextInt(10);
        if (what < 4 && at.open.size() < 60) {
            at.reserve(prompt());
        } else if (!at.open.isEmpty()) {
            final Open open = at.open.get(random.nextInt(at.open.size()));
            switch (what) {
                case 4, 5 -> {
                    open.lease.prefillComplete();
                    open.prefill = 0;
                }
                case 6, 7 -> {
                    open.output += random.nextInt(40);
                    open.lease.outputTokens(open.output);
                }
                default -> {
                    open.lease.close();
                    at.open.remove(open);
                }
            }
        }
    }

    /** Takes a worker out of a router and registers it again: its bookings there end. */
    void replaceWorker(Replica at) {
        final int i = random.nextInt(WORKERS);
        removeWorker(at, i);
        at.addWorker(i);
    }

    /** Takes a worker out of a router: its bookings there end. */
    void removeWorker(Replica at, int i) {
        at.router.removeWorker(at.worker(i));
        at.open.removeIf(open -> open.worker.equals("w" + i));
        at.settle();
    }

    /** Lets time pass: messages arrive, routers send and apply. */
    void pass(int ticks) {
        for (int i = 0; i < ticks; i++) {
            final long nowNs = clock.addAndGet(TICK_NS);
            hub.advance(nowNs);
            for (Replica replica : replicas) {
                replica.settle();
                replica.router.tick(nowNs);
                replica.settle();
            }
        }
    }

    /** Nothing disturbs any more, and nothing happens for longer than a lease. */
    void quiesce() {
        hub.heal();
        hub.faults(0, 0, 0);
        pass(80);
    }

    /** What every worker bears in truth: requests, prefill tokens, blocks. */
    Map<String, String> truth() {
        final Map<String, String> loads = new TreeMap<>();
        for (int i = 0; i < WORKERS; i++) {
            final String name = "w" + i;
            long requests = 0;
            long prefill = 0;
            long blocks = 0;
            final Set<List<Integer>> shared = new HashSet<>();
            for (Replica replica : replicas) {
                for (Open open : replica.open) {
                    if (open.worker.equals(name)) {
                        requests++;
                        prefill += open.prefill;
                        final int tail = open.prompt.length % BLOCK;
                        blocks += (tail + open.output) / BLOCK;
                        final List<Integer> tokens = Arrays.stream(open.prompt).boxed().toList();
                        for (int end = BLOCK; end <= tokens.size(); end += BLOCK) {
                            shared.add(tokens.subList(0, end));
                        }
                    }
                }
            }
            loads.put(name, text(requests, prefill, blocks + shared.size()));
        }
        return loads;
    }

    /** What a router takes for it. */
    static Map<String, String> seen(KvRouter router) {
        final Map<String, String> loads = new HashMap<>();
        for (Worker w : router.workers()) {
            loads.put(w.name(), text(w.activeRequests(), w.prefillTokens(), w.activeBlocks()));
        }
        return new TreeMap<>(loads);
    }

    private static String text(long requests, long prefill, long blocks) {
        return requests + " requests, " + prefill + " tokens, " + blocks + " blocks";
    }

    @Override
    public void close() {
        replicas.forEach(replica -> replica.router.close());
    }
}
