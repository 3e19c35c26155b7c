package io.kvasir.nixl.engine;

import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.Transports;
import io.kvasir.panama.nixl.NixlMemory;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.List;

/**
 * The other process of a test: a pool of blocks that is read from and written to. Prints where its
 * pool lies and its metadata, reads the other side's, then answers each message {@code W version}
 * with pairs of a block and the block that it was written as by {@code OK version} or {@code BAD
 * ...}, until its input ends.
 */
final class TransferPeer {
    static final int BLOCKS = 256;
    static final int BLOCK_LENGTH = 16 << 10;
    static final int READ_ONLY = 128; // blocks below keep version 0
    static final long PATIENCE_NS = 60_000_000_000L;

    private TransferPeer() {}

    static KvRegion region(long base, String name) {
        return new KvRegion(name, 0, NixlMemory.DRAM, 0, base, BLOCK_LENGTH, BLOCK_LENGTH, BLOCKS);
    }

    static MemorySegment pool() {
        return Arena.global().allocate((long) BLOCKS * BLOCK_LENGTH, 4096);
    }

    public static void main(String[] args) throws IOException {
        final MemorySegment pool = pool();
        final KvRegion region = region(pool.address(), "peer");
        for (int block = 0; block < BLOCKS; block++) {
            Pattern.fill(pool, region, block, 0);
        }
        try (KvTransport transport = Transports.create(args[0], args[1])) {
            transport.register(List.of(region));
            System.out.println(pool.address());
            System.out.println(Base64.getEncoder().encodeToString(transport.metadata()));
            final BufferedReader in =
                    new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
            final String other = transport.connect(Base64.getDecoder().decode(in.readLine()));
            final Thread input =
                    Thread.ofPlatform()
                            .daemon()
                            .name("input")
                            .start(() -> in.lines().forEach(line -> {}));
            while (input.isAlive()) {
                transport.notifications(
                        (peer, message) ->
                                transport.send(other, answer(pool, region, text(message))));
                Thread.onSpinWait();
            }
        }
    }

    private static byte[] answer(MemorySegment pool, KvRegion region, String message) {
        final String[] words = message.split(" ", -1);
        final long version = Long.parseLong(words[1]);
        String answer = "OK " + version;
        for (int i = 2; i < words.length; i += 2) {
            final int block = Integer.parseInt(words[i]);
            if (!Pattern.holds(pool, region, block, version, Integer.parseInt(words[i + 1]))) {
                answer = "BAD " + version + " block " + block;
            }
        }
        return answer.getBytes(StandardCharsets.US_ASCII);
    }

    static String text(MemorySegment message) {
        return new String(message.toArray(ValueLayout.JAVA_BYTE), StandardCharsets.US_ASCII);
    }
}
