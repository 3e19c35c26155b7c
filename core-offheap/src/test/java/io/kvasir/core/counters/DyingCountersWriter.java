package io.kvasir.core.counters;

import java.nio.file.Path;

/** Sets a counter and dies. */
final class DyingCountersWriter {
    private DyingCountersWriter() {}

    public static void main(String[] arguments) {
        final CountersFile file = CountersFile.create(Path.of(arguments[0]), 4, 1 << 12, 1_000);
        file.set(file.allocate("last words", 1, 1_000), 42);
        file.errors().record(new IllegalStateException("why it died"), 1_000);
        Runtime.getRuntime().halt(0);
    }
}
