package io.kvasir.router;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import io.kvasir.core.index.IndexMemory;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.memory.MemoryGate;
import io.kvasir.core.memory.OffHeap;
import io.kvasir.pipeline.events.IndexPipeline;
import io.kvasir.router.replica.ReplicaLink;
import io.kvasir.router.replica.ReplicaMessage;
import io.kvasir.router.settings.RouterSettings;
import io.kvasir.router.state.MemoryStateStore;
import io.kvasir.router.state.SnapshotStatus;
import io.kvasir.testsupport.Eventually;

import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import java.util.function.Consumer;

/** What an embedder gives to a router that closes it, and may fail to be closed. */
class GivenPartsTest {
    private final List<String> closed = new ArrayList<>();
    private final Set<String> failing = new TreeSet<>();
    private boolean unlockable;
    private long bytes;
    private Set<Thread> threads;

    @BeforeEach
    void whatOthersHave() {
        FormerRouters.awaitEnd();
        bytes = OffHeap.allocatedBytes();
        threads = FormerRouters.threads();
    }

    private void close(String part) {
        closed.add(part);
        if (failing.contains(part)) {
            throw new NoClassDefFoundError(part);
        }
    }

    private final class Link implements ReplicaLink {
        @Override
        public void start(Consumer<ReplicaMessage> receiver) {}

        @Override
        public boolean send(ReplicaMessage message) {
            if (failing.contains("leave") && message instanceof ReplicaMessage.Leaving) {
                throw new NoClassDefFoundError("leave");
            }
            return true;
        }

        @Override
        public long dropped() {
            return 0;
        }

        @Override
        public void close() {
            GivenPartsTest.this.close("link");
        }
    }

    private final class State implements PlaneState {
        @Override
        public Restored restore(
                EventPlaneWorker worker, int slot, IndexPipeline pipeline, PrefixIndex index) {
            return null;
        }

        @Override
        public void start(KvRouter router) {}

        @Override
        public SnapshotStatus status() {
            return null;
        }

        @Override
        public void close() {
            GivenPartsTest.this.close("state");
        }
    }

    private RouterConfig.Builder builder() {
        return KvRouter.builder()
                .maxWorkers(2)
                .maxBlocks(1_024, 1_024)
                .set(RouterSettings.ENGINE_LOAD, true)
                .planeState(new State())
                .eventPlane(_ -> () -> close("events"))
                .loadPlane(_ -> () -> close("loads"))
                .replicaLink(new Link())
                .stateStore(
                        new MemoryStateStore(new MemoryStateStore.Memory()) {
                            @Override
                            public boolean lock() {
                                return !unlockable && super.lock();
                            }

                            @Override
                            public void close() {
                                super.close();
                                GivenPartsTest.this.close("store");
                            }
                        });
    }

    private void assertNothingIsLeft() {
        Eventually.holds("a thread is left", () -> threads.containsAll(FormerRouters.threads()));
        Eventually.holds("memory is left", () -> OffHeap.allocatedBytes() == bytes);
    }

    @Test
    void anErrorOfOneLeavesNothingOfTheRouter() {
        for (String part : List.of("state", "events", "loads", "link")) {
            closed.clear();
            failing.clear();
            failing.add(part);
            final KvRouter router = builder().build();
            assertEquals(
                    part, assertThrows(NoClassDefFoundError.class, router::close).getMessage());
            assertEquals(List.of("store", "state", "events", "loads", "link"), closed);
            assertNothingIsLeft();
            router.close(); // does nothing
        }
    }

    /** Best effort: a router that falls silent is noticed by the others as well. */
    @Test
    void thatItLeavesNeedNotBeSent() {
        failing.add("leave");
        builder().build().close();
        assertEquals(List.of("store", "state", "events", "loads", "link"), closed);
        assertNothingIsLeft();
    }

    @Test
    void theFirstErrorHasTheOthers() {
        failing.addAll(List.of("state", "events", "store")); // that of the store is logged
        final KvRouter router = builder().build();
        final Error first = assertThrows(NoClassDefFoundError.class, router::close);
        assertEquals("state", first.getMessage());
        assertArrayEquals(
                new String[] {"events"},
                Arrays.stream(first.getSuppressed()).map(Throwable::getMessage).toArray());
        assertNothingIsLeft();
    }

    @Test
    void whereNoRouterCanBeMadeAllIsClosedThatWasGiven() {
        final List<String> all = List.of("store", "state", "link");
        final RouterConfig.Builder wrong = builder().set("prefix-index", "off");
        assertThrows(IllegalArgumentException.class, wrong::check);
        assertEquals(List.of(), closed, "none is made");
        assertThrows(IllegalArgumentException.class, wrong::build);
        assertEquals(all, closed);

        closed.clear();
        unlockable = true;
        assertThrows(IllegalStateException.class, builder()::build);
        assertEquals(all, closed);

        closed.clear();
        unlockable = false;
        final RouterConfig config = builder().config();
        final PartMaker poor =
                new PartMaker() {
                    @Override
                    PrefixIndex index(RouterConfig of, MemoryGate gate, IndexMemory memoryOrNull) {
                        throw new OutOfMemoryError("on purpose");
                    }
                };
        assertThrows(OutOfMemoryError.class, () -> KvRouter.start(config, poor));
        assertEquals(all, closed);
        assertNothingIsLeft();
    }

    @Test
    void aPartThatCannotBeClosedDoesNotHideWhyNoRouterCouldBeMade() {
        failing.addAll(List.of("store", "state", "link"));
        final RouterConfig.Builder wrong = builder().set("prefix-index", "off");
        assertThrows(IllegalArgumentException.class, wrong::build);
        assertEquals(List.of("store", "state", "link"), closed);
    }
}
