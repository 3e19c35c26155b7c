package io.kvasir.core.memory;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/** Allocates and closes memory of many lengths; prints how many mappings that has left. */
final class MappingsCounter {
    private static final int ROUNDS = 1_000;
    private static final long LARGE = 2L << 20;

    private MappingsCounter() {}

    public static void main(String[] arguments) throws IOException {
        final long[] lengths = {100, LARGE - 1, LARGE, LARGE + 100, LARGE + 60_000, 2 * LARGE + 1};
        churn(lengths, 10);
        final long before = mappings();
        churn(lengths, ROUNDS);
        System.out.println(mappings() - before);
    }

    private static void churn(long[] lengths, int rounds) {
        for (int i = 0; i < rounds; i++) {
            for (long length : lengths) {
                OffHeap.allocate(length).close();
            }
        }
    }

    private static long mappings() throws IOException {
        return Files.readAllLines(Path.of("/proc/self/maps")).size();
    }
}
