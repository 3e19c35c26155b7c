package io.kvasir.bench.gpu;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.time.Duration;
import java.util.Optional;

/**
 * The folder where two processes meet: each message is a file of text that appears whole. One
 * writer for each name.
 */
final class Exchange {
    /** What a target says that cannot go on. */
    static final String FAILED = "failed";

    private static final Duration PAUSE = Duration.ofMillis(1);

    private final Path folder;

    /** Uses an existing folder. */
    Exchange(Path folder) {
        this.folder = folder;
    }

    void put(String name, String text) {
        try {
            final Path part = folder.resolve(name + ".part");
            Files.writeString(part, text);
            Files.move(part, folder.resolve(name), StandardCopyOption.ATOMIC_MOVE);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot write " + name + " in " + folder, e);
        }
    }

    /** Takes a message away, if it is there. */
    Optional<String> poll(String name) {
        final Path file = folder.resolve(name);
        if (!Files.exists(file)) {
            return Optional.empty();
        }
        try {
            final String text = Files.readString(file);
            Files.delete(file);
            return Optional.of(text);
        } catch (IOException e) {
            throw new UncheckedIOException("cannot read " + file, e);
        }
    }

    /** Waits a moment, where there is nothing to do but to look again. */
    static void pause() {
        try {
            Thread.sleep(PAUSE);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new BenchFailure("interrupted");
        }
    }
}
