package io.kvasir.panama.nixl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Random;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

class NixlAgentTest {
    private NixlLibrary library;

    @BeforeEach
    void loadLoopback(@TempDir Path folder) {
        library = Loopback.load(folder);
    }

    @AfterEach
    void noHandleIsLeft() {
        if (library != null) {
            assertEquals(0, Loopback.liveHandles(library));
        }
    }

    private NixlAgent agent() {
        return library.createAgent("worker-0", NixlAgentConfig.DEFAULT);
    }

    @Test
    void anAgentTellsItsNameAndPlugins() {
        try (NixlAgent agent = agent()) {
            assertEquals("worker-0", agent.name());
            assertEquals(List.of("LOOPBACK"), agent.availablePlugins());
            assertEquals(1, Loopback.liveHandles(library));
        }
    }

    @Test
    void aPluginTellsItsMemoryAndParameters() {
        try (NixlAgent agent = agent()) {
            assertEquals(
                    new NixlPlugin(
                            "LOOPBACK",
                            List.of(NixlMemory.DRAM, NixlMemory.VRAM),
                            Map.of("copy", "memcpy")),
                    agent.plugin("LOOPBACK"));
        }
    }

    @Test
    void anUnknownPluginIsAnErrorThatNamesAgentAndPlugin() {
        try (NixlAgent agent = agent()) {
            final NixlException e = assertThrows(NixlException.class, () -> agent.plugin("UCX"));
            assertEquals(Optional.of(NixlStatus.BACKEND), e.status());
            assertTrue(e.getMessage().contains("agent=worker-0, plugin=UCX"), e.getMessage());
            assertThrows(NixlException.class, () -> agent.createBackend("UCX", Map.of()));
        }
    }

    @Test
    void aBackendEndsWithItsAgentAndASecondOneIsRefused() {
        try (NixlAgent agent = agent()) {
            final NixlBackend backend = agent.createBackend("LOOPBACK", Map.of("k", "v", "e", ""));
            assertEquals("LOOPBACK", backend.plugin());
            assertThrows(NixlException.class, () -> agent.createBackend("LOOPBACK", Map.of()));
        }
    }

    @Test
    void closingTwiceIsClosingOnce() {
        final NixlAgent agent = agent();
        final NixlBackend backend = agent.createBackend("LOOPBACK", Map.of());
        backend.close();
        backend.close();
        agent.close();
        agent.close();
        backend.close();
        assertEquals(0, Loopback.liveHandles(library));
    }

    @Test
    @SuppressWarnings("restricted") // puts a function of its own in place of NIXL's
    void anAgentEndsAlsoWhereTheEndOfABackendFails() {
        final SymbolLookup symbols = Loopback.symbols(library);
        final FunctionDescriptor end = NixlFunction.DESTROY_BACKEND.descriptor();
        final String name = NixlFunction.DESTROY_BACKEND.symbol();
        final MethodHandle real =
                Linker.nativeLinker().downcallHandle(symbols.findOrThrow(name), end);
        final MethodHandle failing =
                MethodHandles.filterReturnValue(
                        real,
                        MethodHandles.dropArguments(
                                MethodHandles.constant(int.class, NixlStatus.BACKEND.code()),
                                0,
                                int.class));
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment stub = Linker.nativeLinker().upcallStub(failing, end, arena);
            final SymbolLookup failingEnd =
                    symbol -> symbol.equals(name) ? Optional.of(stub) : symbols.find(symbol);
            final NixlAgent agent =
                    new NixlLibrary(
                                    NixlCapi.bind(failingEnd),
                                    NixlTransferCalls.bind(failingEnd),
                                    library.path())
                            .createAgent("worker-0", NixlAgentConfig.DEFAULT);
            agent.createBackend("LOOPBACK", Map.of());
            final NixlException e = assertThrows(NixlException.class, agent::close);
            assertTrue(e.getMessage().contains("plugin=LOOPBACK"), e.getMessage());
            agent.close();
            assertEquals(0, Loopback.liveHandles(library));
        }
    }

    @Test
    void aClosedAgentRefusesEveryCall() {
        final NixlAgent agent = agent();
        agent.close();
        assertThrows(IllegalStateException.class, agent::availablePlugins);
        assertThrows(IllegalStateException.class, () -> agent.plugin("LOOPBACK"));
        assertThrows(IllegalStateException.class, () -> agent.createBackend("LOOPBACK", Map.of()));
    }

    @ParameterizedTest
    @ValueSource(strings = {"", "a\0b"})
    void namesThatCWouldCutShortAreRefused(String name) {
        assertThrows(
                IllegalArgumentException.class,
                () -> library.createAgent(name, NixlAgentConfig.DEFAULT));
        try (NixlAgent agent = agent()) {
            assertThrows(IllegalArgumentException.class, () -> agent.plugin(name));
            assertThrows(
                    IllegalArgumentException.class,
                    () -> agent.createBackend("LOOPBACK", Map.of("k\0", name)));
        }
    }

    @Test
    void namesOutsideAsciiArriveWhole() {
        try (NixlAgent agent = library.createAgent("wörker-Ω", NixlAgentConfig.DEFAULT)) {
            assertFalse(agent.availablePlugins().isEmpty());
        }
    }

    @Test
    void callsThatRaceWithCloseEitherWorkOrSayClosed() throws Exception {
        final Random random = new Random(Seeds.next("callsThatRaceWithCloseEitherWorkOrSayClosed"));
        try (ExecutorService threads = Executors.newFixedThreadPool(2)) {
            for (int round = 0; round < 200; round++) {
                final NixlAgent agent = agent();
                final CountDownLatch start = new CountDownLatch(1);
                final int calls = random.nextInt(20);
                final Future<?> caller =
                        threads.submit(
                                () -> {
                                    start.await();
                                    for (int i = 0; i < calls; i++) {
                                        agent.plugin("LOOPBACK");
                                    }
                                    return null;
                                });
                final Future<?> closer =
                        threads.submit(
                                () -> {
                                    start.await();
                                    agent.close();
                                    return null;
                                });
                start.countDown();
                closer.get();
                try {
                    caller.get();
                } catch (ExecutionException e) {
                    assertEquals(
                            "agent worker-0 is closed", e.getCause().getMessage(), e.toString());
                }
            }
        }
    }
}
