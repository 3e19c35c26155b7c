package io.kvasir.bench.transfer;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BOOLEAN;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.Locale;
import java.util.Map;

/**
 * The calls made by C, in {@code nixl_baseline.c}: only a whole round is called from here. An agent
 * of its own in this process, with the same memory and the same peer.
 */
@SuppressWarnings("restricted") // the C half is a library that this class calls
final class CRounds implements Rounds {
    private final Map<Kind, MethodHandle> rounds = new EnumMap<>(Kind.class);
    private final MethodHandle hold;
    private final MethodHandle drop;
    private final MethodHandle lists;

    /**
     * Opens its agent.
     *
     * @param baseline the compiled {@code nixl_baseline.c}
     * @param library NIXL, which this process has loaded
     * @param backend plugin
     * @param own memory of this process
     * @param peer whose descriptors are read
     * @param bytes of both
     */
    CRounds(Path baseline, String library, String backend, long own, PeerMemory peer, long bytes) {
        final Arena arena = Arena.global();
        final SymbolLookup lookup = SymbolLookup.libraryLookup(baseline, arena);
        for (Kind kind : Kind.values()) {
            rounds.put(
                    kind,
                    bound(
                            lookup,
                            kind.name().toLowerCase(Locale.ROOT),
                            FunctionDescriptor.of(JAVA_LONG, JAVA_INT)));
        }
        hold = bound(lookup, "hold", FunctionDescriptor.ofVoid(JAVA_BOOLEAN));
        drop = bound(lookup, "drop", FunctionDescriptor.ofVoid());
        lists = bound(lookup, "lists", FunctionDescriptor.ofVoid(JAVA_INT, JAVA_LONG, ADDRESS));
        final MethodHandle open =
                bound(
                        lookup,
                        "open",
                        FunctionDescriptor.ofVoid(
                                ADDRESS, ADDRESS, JAVA_LONG, JAVA_LONG, JAVA_LONG, ADDRESS,
                                JAVA_LONG));
        try {
            open.invokeExact(
                    arena.allocateFrom(library),
                    arena.allocateFrom(backend),
                    own,
                    bytes,
                    peer.base(),
                    arena.allocateFrom(ValueLayout.JAVA_BYTE, peer.metadata()),
                    (long) peer.metadata().length);
        } catch (Throwable t) {
            throw mustNotThrow(t);
        }
    }

    private static MethodHandle bound(
            SymbolLookup lookup, String name, FunctionDescriptor descriptor) {
        return Linker.nativeLinker()
                .downcallHandle(lookup.findOrThrow("baseline_" + name), descriptor);
    }

    private static AssertionError mustNotThrow(Throwable t) {
        return new AssertionError("C does not throw", t);
    }

    @Override
    public long run(Kind kind, int argument) {
        try {
            return (long) rounds.get(kind).invokeExact(argument);
        } catch (Throwable t) {
            throw mustNotThrow(t);
        }
    }

    @Override
    public void hold(boolean hangs) {
        try {
            hold.invokeExact(hangs);
        } catch (Throwable t) {
            throw mustNotThrow(t);
        }
    }

    @Override
    public void drop() {
        try {
            drop.invokeExact();
        } catch (Throwable t) {
            throw mustNotThrow(t);
        }
    }

    @Override
    public void lists(int descriptors, long descriptorBytes, int[] indices) {
        try {
            lists.invokeExact(descriptors, descriptorBytes, Rounds.inNativeMemory(indices));
        } catch (Throwable t) {
            throw mustNotThrow(t);
        }
    }
}
