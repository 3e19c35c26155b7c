package io.kvasir.cli;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.nixl.KvTransferParams;
import io.kvasir.nixl.RemoteBlocks;
import io.kvasir.nixl.VerbatimJson;
import io.kvasir.nixl.VllmHandoff;
import io.kvasir.nixl.transfer.Descriptors;
import io.kvasir.nixl.transfer.KvRegion;
import io.kvasir.nixl.transfer.KvTransport;
import io.kvasir.nixl.transfer.KvTransport.Progress;
import io.kvasir.nixl.transfer.NixlTransport;
import io.kvasir.nixl.vllm.LeaseTerms;
import io.kvasir.nixl.vllm.PrefillLease;
import io.kvasir.nixl.vllm.VllmAgent;
import io.kvasir.nixl.vllm.VllmBlocks;
import io.kvasir.nixl.vllm.VllmHandshake;
import io.kvasir.nixl.vllm.VllmPeerException;
import io.kvasir.nixl.vllm.VllmPrefillPeer;
import io.kvasir.panama.NixlAgentConfig;
import io.kvasir.panama.NixlAvailability;
import io.kvasir.panama.NixlMemory;
import io.kvasir.panama.NixlProbe;

import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.CleanupMode;
import org.junit.jupiter.api.io.TempDir;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** This JVM as a peer of real vLLM prefill servers: it reads their blocks and gives them back. */
@Tag("real-engine")
class RealPrefillPeerTest {
    private static final int PROMPT = 7 * VllmServer.BLOCK_SIZE + 1;
    private static final int FULL_BLOCKS = PROMPT / VllmServer.BLOCK_SIZE;
    private static final long PATIENCE_NS = TimeUnit.SECONDS.toNanos(20);
    private static final long PAUSE_NS = TimeUnit.MILLISECONDS.toNanos(1);
    private static final HttpClient HTTP =
            HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    @TempDir(cleanup = CleanupMode.ON_SUCCESS)
    static Path logs;

    private static VllmServer first;
    private static VllmServer second;
    private static KvTransport transport;
    private static VllmPrefillPeer peer;
    private static int requests;

    private static MemorySegment memory;
    private static List<KvRegion> regions;
    private static VllmBlocks own;
    private static long ownList;

    @BeforeAll
    static void start() throws Exception {
        final Path folder = VllmServer.installed();
        final NixlAvailability nixl =
                NixlProbe.probe(
                        Map.of(NixlProbe.PREFIX_PROPERTY, folder.resolve("venv").toString())::get,
                        variable -> null,
                        List.of());
        assumeTrue(nixl instanceof NixlAvailability.Available, "skipped: " + nixl.describe());
        first = new VllmServer(folder, logs.resolve("first.log")).transferring();
        second = new VllmServer(folder, logs.resolve("second.log")).transferring();
        first.start();
        second.start();
        first.awaitHealthy();
        second.awaitHealthy();
        transport =
                NixlTransport.create(
                        ((NixlAvailability.Available) nixl).library(),
                        UUID.randomUUID().toString(),
                        NixlAgentConfig.DEFAULT,
                        "UCX",
                        Map.of());
        peer =
                new VllmPrefillPeer(
                        transport,
                        new VllmPrefillPeer.Options(Optional.empty(), LeaseTerms.DEFAULT, 100));
    }

    @AfterAll
    static void stop() {
        if (peer != null) {
            peer.close();
            transport.close();
        }
        if (first != null) {
            first.close();
            second.close();
        }
    }

    private static KvTransferParams prefill(VllmServer server, int from) throws Exception {
        final String prompt =
                IntStream.range(from, from + PROMPT)
                        .mapToObj(i -> Integer.toString(5 + (i + 30 * from) % 250))
                        .collect(Collectors.joining(",", "[", "]"));
        final VerbatimJson body =
                VllmHandoff.prefillBody(
                        VerbatimJson.parse(
                                "{\"model\":\""
                                        + VllmServer.MODEL
                                        + "\",\"prompt\":"
                                        + prompt
                                        + ",\"temperature\":0}"));
        final HttpResponse<byte[]> answer =
                HTTP.send(
                        HttpRequest.newBuilder(server.uri().resolve("/v1/completions"))
                                .header("content-type", "application/json")
                                .header("X-Request-Id", "prefill-" + requests++)
                                .POST(HttpRequest.BodyPublishers.ofByteArray(body.bytes()))
                                .build(),
                        HttpResponse.BodyHandlers.ofByteArray());
        assertEquals(200, answer.statusCode(), new String(answer.body(), StandardCharsets.UTF_8));
        return KvTransferParams.in(VerbatimJson.parse(answer.body())).orElseThrow();
    }

    private static double cacheUsage(VllmServer server) throws Exception {
        return HTTP.send(
                        HttpRequest.newBuilder(server.uri().resolve("/metrics")).build(),
                        HttpResponse.BodyHandlers.ofString())
                .body()
                .lines()
                .filter(line -> line.startsWith("vllm:kv_cache_usage_perc"))
                .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1)))
                .max()
                .orElseThrow();
    }

    private static void awaitUsage(VllmServer server, boolean held) throws Exception {
        final long startNs = System.nanoTime();
        while (cacheUsage(server) > 0 != held) {
            assertTrue(
                    System.nanoTime() - startNs < PATIENCE_NS,
                    "cache usage " + cacheUsage(server) + ", should be held: " + held);
            LockSupport.parkNanos(20 * PAUSE_NS);
        }
        System.out.printf(
                "%s after %d ms%n",
                held ? "blocks are held" : "blocks are free",
                TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - startNs));
    }

    /** Shakes hands with the server of a prefill, if this is the first of it. */
    private static VllmAgent meet(KvTransferParams params) {
        final VllmAgent agent = new VllmHandshake().ask(params);
        if (!peer.isConnected(agent.engineId())) {
            peer.connect(agent);
        }
        if (memory == null) {
            allocateLike(agent);
        }
        return agent;
    }

    /** Memory of the shape of the engine's, for as many blocks as a prompt has. */
    private static void allocateLike(VllmAgent agent) {
        final int blocks = FULL_BLOCKS + 1;
        final List<KvRegion> theirs = agent.metadata().regions();
        final long bytes = theirs.stream().mapToLong(r -> r.blockLength() * blocks).sum();
        memory = Arena.global().allocate(bytes, 4096);
        final long[] at = {memory.address()};
        regions =
                theirs.stream()
                        .map(
                                r -> {
                                    final long base = at[0];
                                    at[0] += r.blockLength() * blocks;
                                    return new KvRegion(
                                            r.name(),
                                            r.group(),
                                            NixlMemory.DRAM,
                                            0,
                                            base,
                                            r.blockLength(),
                                            r.blockLength(),
                                            blocks);
                                })
                        .toList();
        transport.register(regions);
        own = VllmBlocks.of(regions);
        ownList = transport.prepare(null, Descriptors.ofBlocks(regions));
    }

    /** Pulls the blocks of a prefill and returns the bytes of the full ones. */
    private static byte[] pull(VllmServer server, int from) throws Exception {
        final KvTransferParams params = prefill(server, from);
        meet(params);
        final PrefillLease lease = peer.hold(params, System.nanoTime());
        awaitUsage(server, true);
        memory.fill((byte) 0);
        final int count = lease.blocks().count();
        final long startNs = System.nanoTime();
        final long request =
                peer.pull(lease.requestId(), ownList, ownPlaces(lease), System.nanoTime());
        Progress progress = transport.post(request);
        while (progress == Progress.RUNNING) {
            assertTrue(System.nanoTime() - startNs < PATIENCE_NS, "the pull ends");
            LockSupport.parkNanos(PAUSE_NS);
            progress = transport.status(request);
        }
        assertEquals(Progress.DONE, progress);
        System.out.printf(
                "pulled %d blocks in %d us%n", count, (System.nanoTime() - startNs) / 1000);
        peer.pullEnded(lease.requestId(), progress, System.nanoTime());
        assertTrue(transport.release(request));
        awaitUsage(server, false); // at once, long before the lease of 30 s ends
        return fullBlocks();
    }

    /** The first blocks of own memory, as many as the prefill has. */
    private static int[] ownPlaces(PrefillLease lease) {
        final List<Integer> blocks = IntStream.range(0, lease.blocks().count()).boxed().toList();
        return own.places(lease.requestId(), new RemoteBlocks(List.of(blocks), true));
    }

    private static byte[] fullBlocks() {
        final byte[] bytes =
                new byte
                        [Math.toIntExact(
                                regions.stream()
                                        .mapToLong(r -> r.blockLength() * FULL_BLOCKS)
                                        .sum())];
        int at = 0;
        for (KvRegion region : regions) {
            final int length = Math.toIntExact(region.blockLength() * FULL_BLOCKS);
            MemorySegment.copy(
                    memory,
                    ValueLayout.JAVA_BYTE,
                    region.base() - memory.address(),
                    bytes,
                    at,
                    length);
            at += length;
        }
        return bytes;
    }

    @Test
    void blocksOfTwoServersAreEqualForOnePromptAndDifferForAnother() throws Exception {
        final byte[] fromFirst = pull(first, 0);
        final byte[] fromSecond = pull(second, 0);
        final byte[] another = pull(first, 300);
        assertArrayEquals(fromFirst, fromSecond);
        assertFalse(Arrays.equals(fromFirst, another), "another prompt, other bytes");
        int zeros = 0;
        for (byte b : fromFirst) {
            zeros += b == 0 ? 1 : 0;
        }
        assertTrue(zeros < fromFirst.length / 4, zeros + " zeros of " + fromFirst.length);
    }

    @Test
    void aPrefillWhoseDecodeNeverComesIsFreedByOneMessage() throws Exception {
        final KvTransferParams params = prefill(first, 100);
        meet(params);
        final PrefillLease lease = peer.hold(params, System.nanoTime());
        awaitUsage(first, true);
        assertTrue(peer.release(lease.requestId(), System.nanoTime()));
        awaitUsage(first, false);
        final VllmPeerException e =
                assertThrows(
                        VllmPeerException.class,
                        () -> peer.pull(lease.requestId(), ownList, new int[0], System.nanoTime()));
        assertEquals(VllmPeerException.Kind.UNKNOWN_REQUEST, e.kind());
    }

    @Test
    void refusalsHaveNames() throws Exception {
        final KvTransferParams params = prefill(first, 200);
        final VllmAgent agent = meet(params);
        final VllmHandshake picky =
                new VllmHandshake(VllmHandshake.Patience.DEFAULT, Optional.of("another hash"));
        final VllmPeerException incompatible =
                assertThrows(VllmPeerException.class, () -> picky.ask(params));
        assertEquals(VllmPeerException.Kind.INCOMPATIBLE, incompatible.kind());
        assertTrue(
                incompatible.getMessage().contains(agent.compatibilityHash()),
                incompatible.getMessage());
        final VllmPeerException unknown =
                assertThrows(
                        VllmPeerException.class,
                        () -> peer.release("never-was", System.nanoTime()));
        assertEquals(VllmPeerException.Kind.UNKNOWN_REQUEST, unknown.kind());
        final PrefillLease lease = peer.hold(params, System.nanoTime());
        final long later = System.nanoTime() + TimeUnit.SECONDS.toNanos(31);
        final VllmPeerException expired =
                assertThrows(
                        VllmPeerException.class,
                        () -> peer.pull(lease.requestId(), ownList, ownPlaces(lease), later));
        assertEquals(VllmPeerException.Kind.EXPIRED, expired.kind());
        assertFalse(peer.release(lease.requestId(), System.nanoTime()), "expired for good");
        peer.hold(params, System.nanoTime()); // for the server it is still early
        assertTrue(peer.release(lease.requestId(), System.nanoTime()));
        awaitUsage(first, false);
    }
}
