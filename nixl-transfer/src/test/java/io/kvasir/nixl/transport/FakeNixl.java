package io.kvasir.nixl.transport;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertInstanceOf;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import io.kvasir.panama.nixl.NixlAgentConfig;
import io.kvasir.panama.nixl.NixlAvailability;
import io.kvasir.panama.nixl.NixlLibrary;
import io.kvasir.panama.nixl.NixlProbe;
import io.kvasir.testsupport.LoopbackNixl;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;

/**
 * The loopback library of module native in this JVM: NIXL's C interface without NIXL, and faults.
 * An agent is named, or null for all of them.
 */
@SuppressWarnings("restricted") // the library's own functions, which NIXL does not have
public final class FakeNixl {
    private static FakeNixl loaded;

    private final NixlLibrary library;
    private final MethodHandle liveHandles;
    private final MethodHandle delay;
    private final MethodHandle stick;
    private final MethodHandle disconnect;
    private final MethodHandle failReleases;
    private final MethodHandle failReturns;
    private final MethodHandle loseNotifications;
    private final MethodHandle heal;

    private FakeNixl(NixlLibrary library) {
        this.library = library;
        final SymbolLookup symbols = SymbolLookup.libraryLookup(library.path(), Arena.global());
        liveHandles = handle(symbols, "live_handles", FunctionDescriptor.of(ValueLayout.JAVA_LONG));
        delay =
                handle(
                        symbols,
                        "delay",
                        FunctionDescriptor.of(
                                ValueLayout.JAVA_INT,
                                ValueLayout.ADDRESS,
                                ValueLayout.JAVA_LONG,
                                ValueLayout.JAVA_LONG));
        stick =
                handle(
                        symbols,
                        "stick",
                        FunctionDescriptor.of(
                                ValueLayout.JAVA_INT,
                                ValueLayout.ADDRESS,
                                ValueLayout.JAVA_BOOLEAN));
        disconnect =
                handle(
                        symbols,
                        "disconnect",
                        FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS));
        final FunctionDescriptor counted =
                FunctionDescriptor.of(
                        ValueLayout.JAVA_INT, ValueLayout.ADDRESS, ValueLayout.JAVA_LONG);
        failReleases = handle(symbols, "fail_releases", counted);
        failReturns = handle(symbols, "fail_returns", counted);
        loseNotifications = handle(symbols, "lose_notifications", counted);
        heal = handle(symbols, "heal", FunctionDescriptor.ofVoid());
    }

    private static MethodHandle handle(
            SymbolLookup symbols, String name, FunctionDescriptor descriptor) {
        return Linker.nativeLinker()
                .downcallHandle(symbols.findOrThrow("kvasir_loopback_" + name), descriptor);
    }

    /** Loads it once for the process; ends the test as skipped where it could not be built. */
    public static synchronized FakeNixl get() {
        if (loaded == null) {
            try {
                final Path folder = Files.createTempDirectory("kvasir-fake-nixl-");
                final Path file = LoopbackNixl.unpack(folder);
                assumeTrue(file != null, LoopbackNixl.ABSENT);
                final NixlAvailability found =
                        NixlProbe.probe(
                                Map.of(NixlProbe.LIBRARY_PROPERTY, file.toString())::get,
                                variable -> null,
                                List.of());
                loaded =
                        new FakeNixl(
                                assertInstanceOf(NixlAvailability.Available.class, found)
                                        .library());
                Files.delete(file); // it stays mapped
                Files.delete(folder);
            } catch (IOException e) {
                throw new UncheckedIOException(e);
            }
        }
        return loaded;
    }

    public NixlTransport transport(String name) {
        return NixlTransport.create(
                library,
                name,
                new NixlAgentConfig(true, NixlAgentConfig.ThreadSync.STRICT, 100, true),
                "LOOPBACK",
                Map.of());
    }

    /** Handles of every kind that are not given back. */
    public long liveHandles() {
        try {
            return (long) liveHandles.invokeExact();
        } catch (Throwable t) {
            throw new AssertionError(t);
        }
    }

    /** Requests posted from now on are done so much later. */
    public void delay(String agent, long micros) {
        try (Arena arena = Arena.ofConfined()) {
            done((int) delay.invokeExact(text(arena, agent), micros, 0L));
        } catch (Throwable t) {
            throw new AssertionError(t);
        }
    }

    /** While stuck, requests stay running. */
    public void stick(String agent, boolean stuck) {
        try (Arena arena = Arena.ofConfined()) {
            done((int) stick.invokeExact(text(arena, agent), stuck));
        } catch (Throwable t) {
            throw new AssertionError(t);
        }
    }

    /** Cuts the agent from all others until they load its metadata again. */
    public void disconnect(String agent) {
        try (Arena arena = Arena.ofConfined()) {
            done((int) disconnect.invokeExact(text(arena, agent)));
        } catch (Throwable t) {
            throw new AssertionError(t);
        }
    }

    /** The agent's next releases of requests fail. */
    public void failReleases(String agent, long count) {
        try (Arena arena = Arena.ofConfined()) {
            done((int) failReleases.invokeExact(text(arena, agent), count));
        } catch (Throwable t) {
            throw new AssertionError(t);
        }
    }

    /** The agent's next deregistrations and releases of lists fail. */
    public void failReturns(String agent, long count) {
        try (Arena arena = Arena.ofConfined()) {
            done((int) failReturns.invokeExact(text(arena, agent), count));
        } catch (Throwable t) {
            throw new AssertionError(t);
        }
    }

    /** The next notifications to the agent vanish. */
    public void loseNotifications(String agent, long count) {
        try (Arena arena = Arena.ofConfined()) {
            done((int) loseNotifications.invokeExact(text(arena, agent), count));
        } catch (Throwable t) {
            throw new AssertionError(t);
        }
    }

    /** Ends all faults but cut connections. */
    public void heal() {
        try {
            heal.invokeExact();
        } catch (Throwable t) {
            throw new AssertionError(t);
        }
    }

    private static MemorySegment text(Arena arena, String agent) {
        return agent == null ? MemorySegment.NULL : arena.allocateFrom(agent);
    }

    private static void done(int status) {
        assertEquals(0, status, "the fault could not be set");
    }
}
