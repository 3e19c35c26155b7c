package io.kvasir.router.state;

import io.kvasir.pipeline.snapshot.SlotMark;
import io.kvasir.pipeline.snapshot.SnapshotWriter;
import io.kvasir.pipeline.source.RemovalRule;
import io.kvasir.pipeline.source.StreamMemory;
import io.kvasir.pipeline.wire.DecoderMemory;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.atomic.AtomicInteger;

/** Puts a second snapshot beside a first one, and dies after one of its steps. */
final class DyingPut {
    static final String FIRST = "prefixes-0.snapshot";
    static final String SECOND = "prefixes-1.snapshot";
    private static final int CHUNKS = 20;

    private DyingPut() {}

    /** A snapshot of one worker at a message. */
    static void write(OutputStream out, long sequence) throws IOException {
        final SnapshotWriter writer = new SnapshotWriter(out, 16, 1337, 0);
        writer.beginWorker("w", 0, new SlotMark(sequence, 1, true, 0, 0, 0));
        for (int i = 0; i < CHUNKS; i++) {
            writer.records(new byte[16_000]);
        }
        writer.endWorker(new StreamMemory(RemovalRule.PHYSICAL, DecoderMemory.NONE));
        writer.end();
    }

    /** Folder, and the step after which to die, from 1 on; "torn" = dies without the protection. */
    public static void main(String[] args) throws IOException {
        final Path folder = Path.of(args[0]);
        if (args[1].equals("torn")) {
            final ByteArrayOutputStream whole = new ByteArrayOutputStream();
            write(whole, 2);
            try (OutputStream out = Files.newOutputStream(folder.resolve(SECOND))) {
                out.write(whole.toByteArray(), 0, whole.size() / 2);
                Runtime.getRuntime().halt(0);
            }
        }
        final int last = Integer.parseInt(args[1]);
        final AtomicInteger steps = new AtomicInteger();
        final FileStateStore store =
                new FileStateStore(
                        folder,
                        step -> {
                            if (steps.incrementAndGet() == last) {
                                System.out.println("died after " + step);
                                System.out.flush();
                                Runtime.getRuntime().halt(0);
                            }
                        });
        if (!store.lock()) {
            throw new IllegalStateException("the lock of a dead process is held");
        }
        store.put(SECOND, out -> write(out, 2));
        store.delete(FIRST);
        System.out.println("done");
        store.close();
    }
}
