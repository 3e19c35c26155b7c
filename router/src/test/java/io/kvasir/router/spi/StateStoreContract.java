package io.kvasir.router.spi;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.TreeMap;

/** What every {@link StateStore} does. */
public abstract class StateStoreContract {
    private final List<StateStore> opened = new ArrayList<>();

    /** Opens the store of this test once more; the objects are those of the other openings. */
    protected abstract StateStore openAgain() throws IOException;

    private StateStore open() throws IOException {
        final StateStore store = openAgain();
        opened.add(store);
        return store;
    }

    private StateStore locked() throws IOException {
        final StateStore store = open();
        assertTrue(store.lock());
        return store;
    }

    @AfterEach
    void closeAll() {
        opened.forEach(StateStore::close);
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static void put(StateStore store, String name, String text) throws IOException {
        store.put(name, out -> out.write(bytes(text)));
    }

    private static String get(StateStore store, String name, long offset) throws IOException {
        try (InputStream in = store.get(name, offset)) {
            return in == null ? null : new String(in.readAllBytes(), StandardCharsets.UTF_8);
        }
    }

    @Test
    void anEmptyStoreHasNothing() throws IOException {
        final StateStore store = open();
        assertEquals(List.of(), store.list());
        assertNull(store.get("a", 0));
    }

    @Test
    void whatWasPutIsThereForAllWhoOpenTheStore() throws IOException {
        final StateStore store = locked();
        put(store, "b", "second");
        put(store, "a-1.x", "first");
        put(store, "empty", "");
        assertEquals(List.of("a-1.x", "b", "empty"), store.list());
        final StateStore other = open();
        assertEquals(List.of("a-1.x", "b", "empty"), other.list());
        assertEquals("first", get(other, "a-1.x", 0));
        assertEquals("rst", get(other, "a-1.x", 2));
        assertEquals("", get(other, "a-1.x", 100));
        assertEquals("", get(other, "empty", 0));
    }

    @Test
    void anObjectIsReplacedAsAWhole() throws IOException {
        final StateStore store = locked();
        put(store, "a", "a long first content");
        put(store, "a", "short");
        assertEquals("short", get(store, "a", 0));
        assertEquals(List.of("a"), store.list());
    }

    @Test
    void aContentThatFailsChangesNothing() throws IOException {
        final StateStore store = locked();
        put(store, "a", "before");
        assertThrows(
                IOException.class,
                () ->
                        store.put(
                                "a",
                                out -> {
                                    out.write(bytes("half of"));
                                    throw new IOException("made up by the test");
                                }));
        assertThrows(
                IllegalStateException.class,
                () ->
                        store.put(
                                "b",
                                out -> {
                                    out.write(bytes("half of"));
                                    throw new IllegalStateException("made up by the test");
                                }));
        assertEquals("before", get(store, "a", 0));
        assertEquals(List.of("a"), store.list());
        put(store, "b", "whole");
        assertEquals("whole", get(store, "b", 0));
    }

    @Test
    void whatWasDeletedIsGoneAndMayBeDeletedAgain() throws IOException {
        final StateStore store = locked();
        put(store, "a", "x");
        store.delete("a");
        store.delete("a");
        assertNull(store.get("a", 0));
        assertEquals(List.of(), store.list());
    }

    @Test
    void oneHasTheLockUntilItIsClosed() throws IOException {
        final StateStore first = locked();
        assertTrue(first.lock());
        final StateStore second = open();
        assertFalse(second.lock());
        assertThrows(IllegalStateException.class, () -> put(second, "a", "x"));
        assertThrows(IllegalStateException.class, () -> second.delete("a"));
        put(first, "a", "x");
        assertEquals("x", get(second, "a", 0));
        first.close();
        first.close();
        assertTrue(second.lock());
        put(second, "a", "y");
        assertThrows(IllegalStateException.class, () -> put(first, "a", "z"));
        assertFalse(first.lock());
        assertEquals("y", get(second, "a", 0));
    }

    @Test
    void namesThatAreNoneAreRefused() throws IOException {
        final StateStore store = locked();
        for (String name :
                List.of("", ".", "..", "../a", "a/b", "A", "-a", "a b", "a".repeat(101), "ä")) {
            assertThrows(IllegalArgumentException.class, () -> put(store, name, "x"), name);
            assertThrows(IllegalArgumentException.class, () -> store.get(name, 0), name);
            assertThrows(IllegalArgumentException.class, () -> store.delete(name), name);
        }
        put(store, "a".repeat(100), "x");
        assertThrows(IllegalArgumentException.class, () -> store.get("a", -1));
    }

    @Test
    void aLargeObjectIsReadFromAnyOffset() throws IOException {
        final byte[] content = new byte[3_000_000];
        new Random(1).nextBytes(content);
        final StateStore store = locked();
        store.put(
                "large",
                out -> {
                    for (int at = 0; at < content.length; at += 1_000) {
                        out.write(content, at, 1_000);
                    }
                });
        for (int offset : new int[] {0, 1, 65_536, 2_999_999}) {
            try (InputStream in = store.get("large", offset)) {
                assertArrayEquals(
                        Arrays.copyOfRange(content, offset, content.length), in.readAllBytes());
            }
        }
    }

    @Test
    void manyObjectsAreListedInOrder() throws IOException {
        final StateStore store = locked();
        final List<String> names = new ArrayList<>();
        for (int i = 0; i < 300; i++) {
            names.add(String.format("n-%03d", (i * 7) % 300));
            put(store, names.getLast(), names.getLast());
        }
        assertEquals(names.stream().sorted().toList(), store.list());
    }

    /** Removes all objects and the lock behind the stores' backs; whether that can be done. */
    protected boolean removeAll() throws IOException {
        return false;
    }

    @Test
    void openingsInAnyOrderAreThoseOfAMap() throws IOException {
        final long seed = Seeds.next(getClass().getSimpleName());
        new Model(new Random(seed), "seed " + seed).run();
    }

    /** Changes something. */
    @FunctionalInterface
    private interface Change {
        void run() throws IOException;
    }

    /** Three openings of one store, which are locked, used, closed and opened again. */
    private final class Model {
        private static final int STEPS = 200;

        private final Random random;
        private final String said;
        private final StateStore[] stores = new StateStore[3];
        private final boolean[] closed = new boolean[stores.length];
        private final boolean[] locked = new boolean[stores.length]; // and not closed since
        private final TreeMap<String, String> objects = new TreeMap<>();
        private int owner = -1; // of the lock; -1 for none

        Model(Random random, String said) {
            this.random = random;
            this.said = said;
        }

        void run() throws IOException {
            for (int i = 0; i < stores.length; i++) {
                stores[i] = open();
            }
            for (int step = 0; step < STEPS; step++) {
                step(random.nextInt(stores.length));
                for (int i = 0; i < stores.length; i++) {
                    if (!closed[i]) {
                        assertEquals(List.copyOf(objects.keySet()), stores[i].list(), said);
                    }
                }
            }
        }

        /** Whether a store has changed something, as it has if it has the lock, or can have it. */
        private boolean changes(int i, Change change) {
            final boolean isFree = owner == -1 || owner == i;
            try {
                change.run();
            } catch (IllegalStateException e) {
                assertFalse(locked[i], said);
                return false;
            } catch (IOException e) {
                assertTrue(locked[i] && !isFree, said + ": " + e);
                return false;
            }
            assertTrue(locked[i] && isFree, said);
            owner = i;
            return true;
        }

        private static void putHalf(StateStore store, String name) throws IOException {
            try {
                store.put(
                        name,
                        out -> {
                            out.write(bytes("half of"));
                            throw new ArithmeticException("made up by the test");
                        });
                throw new AssertionError("it was put");
            } catch (ArithmeticException e) {
                // nothing has changed
            }
        }

        private void step(int i) throws IOException {
            final StateStore store = stores[i];
            final String name = "n" + random.nextInt(4);
            switch (random.nextInt(16)) {
                case 0, 1, 2 -> {
                    final boolean expected = !closed[i] && (owner == -1 || owner == i);
                    assertEquals(expected, store.lock(), said);
                    owner = expected ? i : owner;
                    locked[i] |= expected;
                }
                case 3, 4, 5, 6 -> {
                    final String text = "x".repeat(random.nextInt(20)) + random.nextInt(9);
                    if (changes(i, () -> put(store, name, text))) {
                        objects.put(name, text);
                    }
                }
                case 7 -> changes(i, () -> putHalf(store, name));
                case 8, 9 -> {
                    if (changes(i, () -> store.delete(name))) {
                        objects.remove(name);
                    }
                }
                case 10 -> {
                    store.close();
                    closed[i] = true;
                    locked[i] = false;
                    owner = owner == i ? -1 : owner;
                }
                case 11 -> {
                    if (closed[i]) {
                        stores[i] = open();
                        closed[i] = false;
                    }
                }
                case 12 -> {
                    if (random.nextInt(4) == 0 && removeAll()) {
                        objects.clear();
                        owner = -1;
                    }
                }
                default -> {
                    if (closed[i]) {
                        return;
                    }
                    final int from = random.nextInt(24);
                    final String text = objects.get(name);
                    assertEquals(
                            text == null ? null : text.substring(Math.min(from, text.length())),
                            get(store, name, from),
                            said);
                }
            }
        }
    }
}
