package io.kvasir.core.memory;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.load.ActiveRequests;
import io.kvasir.core.load.ActiveRequestsConfig;
import io.kvasir.core.load.LoadBoard;
import io.kvasir.core.load.PredictedPrefixes;
import io.kvasir.core.load.PredictedPrefixesConfig;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

import java.util.function.Supplier;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/** A structure that cannot be made gives back what it has taken, whichever step failed. */
class ConstructorsTest {
    private static final String LIMIT = "kvasir.memory.limit";
    private static final Pattern REFUSAL = Pattern.compile("length=(\\d+), allocated=(\\d+)");
    private static final int SLOTS = 8;

    private static Arguments structure(
            String name, int steps, Supplier<? extends AutoCloseable> made) {
        return arguments(name, steps, made);
    }

    static Stream<Arguments> structures() {
        return Stream.of(
                structure("BuddyArena", 2, () -> new BuddyArena(1 << 20)),
                structure(
                        "PrefixIndex",
                        2,
                        () -> new PrefixIndex(new PrefixIndexConfig(SLOTS, 1024, 1024))),
                structure(
                        "ActiveRequests",
                        6,
                        () ->
                                new ActiveRequests(
                                        new ActiveRequestsConfig(SLOTS, 64, 1024, 128),
                                        new LoadBoard(SLOTS))),
                structure(
                        "PredictedPrefixes",
                        4,
                        () -> new PredictedPrefixes(PredictedPrefixesConfig.of(SLOTS))));
    }

    /**
     * The limit goes up by what was refused last, so that each attempt fails one allocation later.
     */
    @ParameterizedTest(name = "{0}")
    @MethodSource("structures")
    void aStructureRefusedAtAnyOfItsAllocationsGivesTheOthersBack(
            String name, int steps, Supplier<? extends AutoCloseable> made) throws Exception {
        final long before = OffHeap.allocatedBytes();
        long limit = before;
        try {
            for (int step = 0; step < steps; step++) {
                System.setProperty(LIMIT, Long.toString(limit));
                final OutOfMemoryError refused = assertThrows(OutOfMemoryError.class, made::get);
                assertEquals(before, OffHeap.allocatedBytes(), "refused at step " + step);
                final Matcher values = REFUSAL.matcher(refused.getMessage());
                assertTrue(values.find(), refused.getMessage());
                limit = Long.parseLong(values.group(1)) + Long.parseLong(values.group(2));
            }
            System.setProperty(LIMIT, Long.toString(limit));
            made.get().close();
        } finally {
            System.clearProperty(LIMIT);
        }
        assertEquals(before, OffHeap.allocatedBytes());
    }

    @Test
    void aGateThatIsClosedTakesNoMemoryForAnIndex() {
        final long before = OffHeap.allocatedBytes();
        final MemoryGate gate = new MemoryGate("a test");
        gate.close();
        assertThrows(
                ClosedException.class,
                () -> new PrefixIndex(new PrefixIndexConfig(SLOTS, 1024, 1024), gate));
        assertEquals(before, OffHeap.allocatedBytes());
    }
}
