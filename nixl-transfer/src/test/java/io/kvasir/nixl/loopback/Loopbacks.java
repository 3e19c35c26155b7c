package io.kvasir.nixl.loopback;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.nixl.transport.KvTransport;
import io.kvasir.nixl.transport.KvTransport.Progress;
import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.transport.KvTransportException.Kind;

import org.junit.jupiter.api.function.Executable;

import java.io.IOException;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;

/** What tests of the loopback transport share. */
public final class Loopbacks {
    public static final long DEADLINE_NS = 60_000_000_000L;

    private Loopbacks() {}

    /** Small limits; peers are looked for at every call. */
    public static LoopbackConfig config(Path folder) {
        return new LoopbackConfig(
                folder, 4, 256, 64, 64, 32 << 10, 64 << 10, Duration.ZERO, Duration.ofMillis(50));
    }

    /** A folder in memory where there is one: a child's pages must not be written to a disk. */
    public static Path folder() throws IOException {
        final Path memory = Path.of("/dev/shm");
        return Files.isWritable(memory)
                ? Files.createTempDirectory(memory, "kvasir-test-")
                : Files.createTempDirectory("kvasir-test-");
    }

    static List<String> files(Path folder) throws IOException {
        try (Stream<Path> files = Files.list(folder)) {
            return files.map(file -> file.getFileName().toString()).sorted().toList();
        }
    }

    /** Fails if it is not empty. */
    public static void deleteEmpty(Path folder) throws IOException {
        assertEquals(List.of(), files(folder), "files are left");
        Files.delete(folder);
    }

    /** Polls until a request has ended. */
    public static Progress end(KvTransport transport, long request) {
        final long deadline = System.nanoTime() + DEADLINE_NS;
        Progress progress = transport.post(request);
        while (progress == Progress.RUNNING) {
            assertTrue(System.nanoTime() < deadline, "the request does not end");
            progress = transport.status(request);
        }
        return progress;
    }

    /** Bytes that follow from a block's owner and number. */
    public static void fill(MemorySegment block, long seed) {
        for (long offset = 0; offset < block.byteSize(); offset += Long.BYTES) {
            block.set(ValueLayout.JAVA_LONG_UNALIGNED, offset, word(seed, offset));
        }
    }

    /** Whether they are what {@link #fill} wrote. */
    public static boolean isFilled(MemorySegment block, long seed) {
        for (long offset = 0; offset < block.byteSize(); offset += Long.BYTES) {
            if (block.get(ValueLayout.JAVA_LONG_UNALIGNED, offset) != word(seed, offset)) {
                return false;
            }
        }
        return true;
    }

    private static long word(long seed, long offset) {
        return (seed * 0x9E3779B97F4A7C15L + offset) * 0xBF58476D1CE4E5B9L;
    }

    public static KvTransportException refused(Kind kind, String part, Executable call) {
        final KvTransportException refusal = assertThrows(KvTransportException.class, call);
        assertEquals(kind, refusal.kind(), refusal.getMessage());
        assertTrue(refusal.getMessage().contains(part), refusal.getMessage());
        return refusal;
    }
}
