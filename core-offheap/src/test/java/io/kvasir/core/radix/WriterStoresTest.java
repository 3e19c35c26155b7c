package io.kvasir.core.radix;

import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assumptions.assumeTrue;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import io.kvasir.core.index.CopyRule;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.memory.LaggingMemory;
import io.kvasir.core.memory.LaggingMemory.Store;
import io.kvasir.testsupport.Seeds;
import io.kvasir.testsupport.Trials;

import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Random;
import java.util.function.Consumer;
import java.util.stream.Stream;

/**
 * Each change of the tree, store by store: a reader begins after any of the writer's stores, stops
 * at any of its own steps, sees any number of further stores there, and goes on. {@link
 * WatchedIndex#match} says what it may find. Then the same with random orders of the stores, as far
 * as releases and fences allow them, and with more stops.
 */
class WriterStoresTest {
    /** So many that 17 holders are a map. */
    private static final int SLOTS = 55;

    private static final int LIST = 16;
    private static final int ORDERS = Trials.of(12, 1_200);

    /** Matches of one change at most; from there on random ones of all. */
    private static final int MATCHES = Trials.of(1_200, 120_000);

    private static final PrefixIndexConfig CONFIG =
            new PrefixIndexConfig(SLOTS, 1 << 20, 1 << 20, 128 << 10);

    static Stream<Arguments> changes() {
        return Stream.of(
                change(
                        "split of a list",
                        "abcdefgh",
                        i -> i.store(0, "abcdefgh"),
                        WriterStoresTest::split),
                change(
                        "split of a list, holder of the upper part",
                        "abcdefgh",
                        i -> {
                            i.store(0, "abcdefgh");
                            i.store(1, "abcd");
                        },
                        WriterStoresTest::split),
                change(
                        "split of a map",
                        "abcdefgh",
                        WriterStoresTest::mapAndOneThatHoldsHalf,
                        WriterStoresTest::split),
                change(
                        "split of a run with children",
                        "abcdefghijk",
                        i -> {
                            i.store(0, "abcdefghijk");
                            i.store(1, "abcdefghIJ");
                            i.store(2, "abcdef");
                        },
                        WriterStoresTest::split),
                change(
                        "split, its rest given up, other blocks stored",
                        "abcdefgh",
                        i -> {
                            i.store(0, "abcdefgh");
                            i.store(1, "abcd");
                        },
                        i -> {
                            i.store(1, "abcd-");
                            i.drop(1, "abcd-", 4);
                            i.drop(0, "abcdefgh", 4);
                            i.store(1, "abcdEFGH");
                        }),
                change(
                        "run cut, other blocks appended",
                        "abcdefgh",
                        i -> {
                            i.store(0, "abcdefgh");
                            i.store(1, "abcd");
                        },
                        i -> {
                            i.drop(0, "abcdefgh", 4);
                            i.store(1, "abcdEFGH");
                        }),
                change(
                        "run cut, other blocks appended, and a child",
                        "abcdefghij",
                        i -> {
                            i.store(0, "abcdefgh");
                            i.store(1, "abcd");
                        },
                        i -> {
                            i.drop(0, "abcdefgh", 4);
                            i.store(0, "abcdEFGHij");
                        }),
                change(
                        "blocks appended",
                        "abcdefgh",
                        i -> {
                            i.store(0, "abcd");
                            i.store(1, "abcd");
                        },
                        i -> i.store(1, "abcdefgh")),
                change(
                        "an array grows and its memory is used again",
                        "abcdefghij",
                        i -> {
                            i.store(0, "abcdefgh");
                            i.store(1, "xyz");
                        },
                        i -> {
                            i.store(0, "abcdefghij");
                            i.store(1, "abcdEFGHij");
                            i.store(1, "abcdEFGHijklmnopq");
                        }),
                change(
                        "blocks behind a map",
                        "abcdefgh",
                        i -> store(i, 0, LIST + 1, "abcd"),
                        i -> i.store(1, "abcdefgh")),
                change(
                        "run removed and used again",
                        "abcpqrs",
                        i -> {
                            i.store(0, "abcdefgh");
                            i.store(0, "abcpqrs");
                            i.store(1, "abc");
                            i.store(1, "ABCxyz");
                        },
                        i -> {
                            i.drop(0, "abcpqrs", 3);
                            i.store(1, "ABCpqrs");
                        }),
                change(
                        "run removed and used again under the same parent",
                        "abcpqrs",
                        i -> {
                            i.store(0, "abcdefgh");
                            i.store(0, "abcpqrs");
                            i.store(1, "abc");
                        },
                        i -> {
                            i.drop(0, "abcpqrs", 3);
                            i.store(1, "abcpQRS");
                        }),
                change(
                        "run and its child removed and used again",
                        "abcpqrij",
                        i -> {
                            i.store(2, "abcdefgh");
                            i.store(1, "abcpqr");
                            i.store(0, "abcpqrij");
                        },
                        i -> {
                            i.drop(0, "abcpqrij", 3);
                            i.drop(1, "abcpqr", 3);
                            i.store(1, "abcxyrij");
                        }),
                change(
                        "one child becomes a table, the table grows",
                        "abq",
                        i -> i.store(0, "abq"),
                        i -> {
                            i.store(0, "abr");
                            i.store(0, "abs");
                            i.store(0, "abt");
                            i.store(0, "abu");
                        }),
                change(
                        "a table shrinks to one child, and to none",
                        "abq",
                        i -> {
                            for (char c = 'q'; c < 'v'; c++) {
                                i.store(0, "ab" + c);
                            }
                        },
                        i -> {
                            for (char c = 'v' - 1; c >= 'q'; c--) {
                                i.drop(0, "ab" + c, 2);
                            }
                            i.store(1, "abcdefgh");
                        }),
                change(
                        "a full table takes and gives",
                        "abs",
                        i -> {
                            for (char c = 'a'; c < 'r'; c++) {
                                i.store(0, "ab" + c);
                            }
                            i.store(0, "abs");
                        },
                        i -> {
                            for (char c = 'a'; c < 'r'; c = (char) (c + 3)) {
                                i.drop(0, "ab" + c, 2);
                            }
                            i.store(0, "abt");
                        }),
                change(
                        "a full table becomes a node and takes more",
                        "abs",
                        i -> {
                            i.store(0, "abs");
                            children(i, 0, 47);
                        },
                        i -> children(i, 47, 55)),
                change(
                        "a node becomes a table, whose memory is used again",
                        "abs",
                        i -> {
                            i.store(0, "abs");
                            children(i, 0, 48);
                            for (int c = 25; c < 48; c++) {
                                i.drop(0, "ab" + (char) (1000 + c), 2);
                            }
                        },
                        i -> {
                            i.drop(0, "ab" + (char) 1000, 2);
                            i.drop(0, "ab" + (char) 1001, 2);
                            i.store(1, "abcdefgh");
                        }),
                change(
                        "the tables of a node take, give and become others",
                        "abs",
                        i -> {
                            i.store(0, "abs");
                            children(i, 0, 60);
                        },
                        i -> {
                            i.drop(0, "abs", 2);
                            children(i, 60, 70);
                            i.store(0, "abs");
                        }),
                change(
                        "holders leave the header",
                        "abcd",
                        i -> store(i, 0, RunDescriptor.INLINE_HOLDERS, "abcd"),
                        i -> store(i, 10, 12, "abcd")),
                change(
                        "a page of holders grows and its memory is used again",
                        "abcd",
                        i -> store(i, 0, LIST, "abcd"),
                        i -> {
                            i.drop(3, "abcd", 2);
                            store(i, LIST, LIST + 2, "abcd");
                            store(i, 30, 36, "ABCD");
                        }),
                change(
                        "holders come back to the header",
                        "abcd",
                        i -> store(i, 0, RunDescriptor.INLINE_HOLDERS + 1, "abcd"),
                        i -> {
                            for (int slot = 5; slot >= 0; slot--) {
                                i.drop(slot, "abcd", slot % 2 * 3);
                            }
                            store(i, 30, 36, "ABCD");
                        }),
                change(
                        "a map becomes a list and its memory is used again",
                        "abcd",
                        i -> store(i, 0, LIST / 2 + 2, LIST + 2, "abcd"),
                        i -> {
                            i.drop(1, "abcd", 3);
                            for (int slot = LIST + 1; slot > LIST / 2; slot--) {
                                i.drop(slot, "abcd", 0);
                            }
                            store(i, 30, 30 + LIST + 1, "ABCD");
                        }),
                change(
                        "full holders cut and full again",
                        "abcd",
                        i -> store(i, 0, LIST + 2, "abcd"),
                        i -> {
                            i.drop(7, "abcd", 2);
                            i.store(7, "abcd");
                            i.drop(8, "abcd", 3);
                        }),
                change(
                        "holders of a map with holes",
                        "abcdefgh",
                        i -> store(i, 0, LIST + 2, "abcdefgh"),
                        i -> {
                            i.remove(7, hashes("abcdefgh"), 3, 4, 0, CopyRule.LAST_COPY);
                            i.store(30, "abcdef-");
                            i.store(7, "abcdefgh");
                        }),
                change(
                        "a split undone, lists",
                        "abcdefgh",
                        i -> {
                            i.store(0, "abcdefgh");
                            i.store(1, "abcdXY");
                            i.store(2, "abcdef");
                        },
                        i -> {
                            i.drop(1, "abcdXY", 4);
                            i.store(3, "abcdefgh");
                        }),
                change(
                        "a split undone, where a slot holds the lower part only",
                        "abcdefgh",
                        i -> {
                            i.store(0, "abcdefgh");
                            i.store(1, "abcdXY");
                            i.store(2, "abcdef");
                            i.remove(2, hashes("abcdef"), 0, 4, 0, CopyRule.LAST_COPY);
                        },
                        i -> {
                            i.drop(1, "abcdXY", 4);
                            i.drop(0, "abcdefgh", 6);
                        }),
                change(
                        "a split undone, maps with holders of some of it",
                        "abcdefgh",
                        i -> {
                            store(i, 0, LIST + 4, "abcdefgh");
                            i.store(41, "abcdXY");
                            i.drop(3, "abcdefgh", 3);
                            i.drop(4, "abcdefgh", 4);
                            i.drop(5, "abcdefgh", 6);
                            i.remove(6, hashes("abcdefgh"), 1, 2, 0, CopyRule.LAST_COPY);
                        },
                        i -> {
                            i.drop(41, "abcdXY", 4);
                            i.store(4, "abcdefgh");
                        }),
                change(
                        "a split undone, whose list becomes a map",
                        "abcdefgh",
                        i -> {
                            store(i, 0, LIST - 1, "abcdefgh");
                            i.drop(3, "abcdefgh", 6);
                            i.store(20, "abcdefgh");
                            i.remove(20, hashes("abcdefgh"), 0, 4, 0, CopyRule.LAST_COPY);
                            i.store(41, "abcdXY");
                        },
                        i -> i.drop(41, "abcdXY", 4)),
                change(
                        "a split undone, its memory used again, split elsewhere",
                        "abcdefghijk",
                        i -> {
                            store(i, 0, LIST + 1, "abcdefghijk");
                            i.store(40, "abcdX");
                            i.store(41, "abcdefghXY");
                        },
                        i -> {
                            i.drop(40, "abcdX", 4);
                            i.store(42, "ABCD");
                            i.store(43, "abcdefY");
                            i.drop(41, "abcdefghXY", 3);
                        }),
                change(
                        "all leave a path",
                        "abcdefghij",
                        i -> {
                            store(i, 0, 3, "abcdefgh");
                            i.store(1, "abcdefghij");
                            i.store(2, "abcd-");
                        },
                        i -> {
                            for (int slot = 0; slot < 3; slot++) {
                                i.clear(slot);
                            }
                            i.store(0, "abxdefghij");
                        }));
    }

    private static void split(WatchedIndex index) {
        index.store(41, "abcdXYZ");
    }

    private static Arguments change(
            String name, String prompt, Consumer<WatchedIndex> before, Consumer<WatchedIndex> op) {
        return arguments(name, prompt, before, op);
    }

    private static void mapAndOneThatHoldsHalf(WatchedIndex index) {
        store(index, 0, LIST + 1, "abcdefgh");
        index.store(40, "abcd");
    }

    private static void store(WatchedIndex index, int from, int to, String prompt) {
        for (int slot = from; slot < to; slot++) {
            index.store(slot, prompt);
        }
    }

    private static void store(WatchedIndex index, int from, int most, int to, String prompt) {
        store(index, from, most, prompt);
        store(index, most, to, prompt);
    }

    /** Stores children of "ab". */
    private static void children(WatchedIndex index, int from, int to) {
        for (int c = from; c < to; c++) {
            index.store(0, "ab" + (char) (1000 + c));
        }
    }

    private static long[] hashes(String prompt) {
        return WatchedIndex.prompt(prompt);
    }

    @Tag("trials")
    @ParameterizedTest(name = "{0}")
    @MethodSource("changes")
    void aReaderBetweenAnyTwoStoresFindsOnlyWhatWasHeld(
            String name, String prompt, Consumer<WatchedIndex> before, Consumer<WatchedIndex> op) {
        readWhileItChanges(name, prompt, before, op);
    }

    private static void readWhileItChanges(
            String name, String prompt, Consumer<WatchedIndex> before, Consumer<WatchedIndex> op) {
        assumeTrue(LaggingMemory.isPossible());
        final long seed = Seeds.next("WriterStoresTest " + name);
        try (WatchedIndex index = WatchedIndex.lagging(CONFIG)) {
            before.accept(index);
            index.lag().clear();
            op.accept(index);
            readBetweenAll(index, hashes(prompt), new Random(seed), MATCHES);
            readInAnyOrder(index, hashes(prompt), new Random(seed), ORDERS);
            index.check();
        }
    }

    @Test
    void theExtentOfASplitRunIsShorterBeforeItsVersionSaysSo() {
        assumeTrue(LaggingMemory.isPossible());
        try (WatchedIndex index = WatchedIndex.lagging(CONFIG)) {
            mapAndOneThatHoldsHalf(index);
            final RadixTree tree = index.tree();
            final long run = RunDescriptor.headerOffset(tree.child(tree.root(), 'a'));
            index.lag().clear();
            split(index);
            final List<Store> stores = new ArrayList<>(index.lag().log());
            final int extent = indexOf(stores, run + RunDescriptor.EXTENT_OFFSET);
            final int version = indexOf(stores, run + RunDescriptor.VERSION_OFFSET);
            assertTrue(extent < version, "extent, then version");
            Collections.swap(stores, extent, version);
            index.lag().log(stores);
            assertThrows(
                    AssertionError.class,
                    () -> readBetweenAll(index, hashes("abcdefgh"), new Random(1), 20_000),
                    "the other order shows a slot with blocks that it never held");
        }
    }

    private static int indexOf(List<Store> stores, long offset) {
        for (int i = 0; i < stores.size(); i++) {
            if (stores.get(i).offset() == offset) {
                return i;
            }
        }
        throw new AssertionError("no store to " + offset);
    }

    /** Begins after each store, sees the next ones at each step: all pairs, or a sample of them. */
    private static void readBetweenAll(
            WatchedIndex index, long[] prompt, Random random, int matches) {
        final LaggingMemory lag = index.lag();
        final int stores = lag.logged();
        final int[] steps = new int[stores + 1];
        long moments = 0;
        for (int begin = 0; begin <= stores; begin++) {
            lag.seek(begin);
            steps[begin] = match(index, prompt, step -> {});
            moments += (long) steps[begin] * (stores - begin);
        }
        final double chance = (double) matches / moments;
        for (int begin = 0; begin < stores; begin++) {
            for (int step = 0; step < steps[begin]; step++) {
                for (int end = begin + 1; end <= stores; end++) {
                    if (random.nextDouble() < chance) {
                        final int stop = step;
                        final int goOn = end;
                        lag.seek(begin);
                        match(index, prompt, at -> seek(lag, at == stop ? goOn : 0));
                    }
                }
            }
        }
        lag.seek(0);
    }

    /** Other orders of the stores, and any number of them at each step. */
    private static void readInAnyOrder(
            WatchedIndex index, long[] prompt, Random random, int orders) {
        final LaggingMemory lag = index.lag();
        final List<Store> written = lag.log();
        for (int order = 0; order < orders; order++) {
            final int stride = 1 + random.nextInt(8);
            while (lag.applied() < lag.logged()) {
                lag.advanceInAnyOrder(1 + random.nextInt(stride), random);
                match(
                        index,
                        prompt,
                        step -> lag.advanceInAnyOrder(random.nextInt(stride + 1) / 2, random));
            }
            lag.seek(0);
            lag.log(written);
        }
    }

    private static void seek(LaggingMemory lag, int stores) {
        if (stores > lag.applied()) {
            lag.seek(stores);
        }
    }

    /** Matches; the listener is given the number of each step. Returns how many there were. */
    private static int match(WatchedIndex index, long[] prompt, Consumer<Integer> listener) {
        final int[] steps = {0};
        index.match(prompt, step -> listener.accept(steps[0]++));
        return steps[0];
    }
}
