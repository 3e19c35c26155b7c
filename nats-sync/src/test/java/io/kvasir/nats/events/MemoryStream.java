package io.kvasir.nats.events;

import io.kvasir.pipeline.source.EventPlane;
import io.kvasir.testsupport.Eventually;

import java.io.IOException;
import java.time.Duration;
import java.time.ZoneOffset;
import java.time.ZonedDateTime;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** A stream in memory with the readers that have got so far; one thread. */
final class MemoryStream {
    private static final ZonedDateTime BEGIN =
            ZonedDateTime.of(2026, 3, 4, 5, 6, 7, 0, ZoneOffset.UTC);

    private final TreeMap<Long, byte[]> messages = new TreeMap<>();
    private final Set<Reader> consumers = new HashSet<>();
    private ZonedDateTime made = BEGIN;
    private long last;

    void publish(byte[] message) {
        messages.put(++last, message);
    }

    long first() {
        return messages.isEmpty() ? last + 1 : messages.firstKey();
    }

    int size() {
        return messages.size();
    }

    /** Drops the oldest messages, as by their age. */
    void drop(int count) {
        for (int i = 0; i < count && !messages.isEmpty(); i++) {
            messages.pollFirstEntry();
        }
    }

    /** Is deleted and made anew, without its messages. */
    void makeAnew() {
        messages.clear();
        consumers.clear();
        last = 0;
        made = made.plusSeconds(1);
    }

    ZonedDateTime made() {
        return made;
    }

    /** Forgets the consumers of readers that were killed, or have no connection. */
    void forgetInactive() {
        consumers.removeIf(reader -> reader.killed || !reader.open);
    }

    /** The stream as one router sees it. */
    final class View implements SharedStream {
        private final Faults faults;

        View(Faults faults) {
            this.faults = faults;
        }

        @Override
        public String name() {
            return "memory";
        }

        @Override
        public State state() throws IOException {
            faults.mayFail();
            return new State(made, first(), last, messages.size(), Duration.ZERO, null);
        }

        @Override
        public ZonedDateTime publishedOrNull(long from) {
            return null;
        }

        @Override
        public void purge(ZonedDateTime of, long upTo) throws IOException {
            faults.mayFail();
            long until = upTo;
            for (Reader consumer : consumers) {
                until = Math.min(until, consumer.acknowledged);
            }
            if (of.equals(made)) {
                messages.headMap(until, true).clear();
            }
        }

        @Override
        public void purge() {
            messages.clear();
        }

        @Override
        public void close() {}
    }

    /** Says now and then that something cannot be reached. */
    interface Faults {
        void mayFail() throws IOException;
    }

    /** Reads for a plane as {@link JetStreamEventSource} does. */
    final class Reader {
        private final EventPlane plane;
        private ZonedDateTime madeBefore; // null before the first
        private long at;
        private long acknowledged;
        private boolean open;
        private boolean killed;

        Reader(EventPlane plane, StreamPosition startOrNull) {
            this.plane = plane;
            plane.keepsMessages();
            if (startOrNull != null) {
                madeBefore = startOrNull.made();
                at = startOrNull.sequence();
                plane.onResumed(startOrNull.ofPlane());
            }
            plane.onDisconnected("not yet");
        }

        private void open() {
            if (!made.equals(madeBefore)) {
                awaitApplied();
                final boolean anew = madeBefore != null;
                madeBefore = made;
                at = 0;
                plane.onRenumbered(StreamPosition.store(made));
                plane.keep();
                if (anew) {
                    plane.onMissed("made anew");
                }
            }
            final long again = plane.beginsAgainAfter();
            if (again != EventPlane.NOT_AGAIN) {
                at = again;
            }
            acknowledged = at;
            consumers.add(this);
            plane.keptFrom(first());
            if (at > 0 && first() > at + 1) {
                plane.onMissed("dropped");
            }
            open = true;
        }

        boolean isOpen() {
            return open;
        }

        /** Loses its connection. */
        void disconnect() {
            open = false;
            plane.onDisconnected("lost");
        }

        /** Takes some messages; whether it has got all. */
        boolean read(int most) {
            if (open && !made.equals(madeBefore)) {
                disconnect();
            }
            if (!open || plane.isAgainWanted()) {
                open();
            }
            for (int i = 0; i < most; i++) {
                final Map.Entry<Long, byte[]> next = messages.higherEntry(at);
                if (next == null) {
                    break;
                }
                final byte[] bytes = next.getValue();
                plane.onKept(bytes, 0, bytes.length, next.getKey(), EventPlane.NO_PUBLISHER);
                at = next.getKey();
            }
            awaitApplied();
            acknowledged = at;
            plane.settle();
            plane.keep();
            plane.tick();
            final boolean all = messages.higherEntry(at) == null;
            if (all) {
                plane.onCaughtUp();
            }
            return all;
        }

        private void awaitApplied() {
            Eventually.holds(
                    "all is applied",
                    () -> {
                        plane.tick(); // an event waits for the one before it, but not for long
                        return plane.isApplied();
                    });
        }

        /** Ends without having said so. */
        void kill() {
            killed = true;
        }

        void close() {
            consumers.remove(this);
        }
    }
}
