package io.kvasir.chronicle;

import net.openhft.chronicle.hash.SegmentLock;
import net.openhft.chronicle.hash.locks.InterProcessLock;
import net.openhft.chronicle.map.ChronicleMap;
import net.openhft.chronicle.map.ExternalMapQueryContext;
import net.openhft.chronicle.map.MapEntry;
import net.openhft.chronicle.map.MapSegmentContext;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.nio.file.Path;
import java.util.EnumMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicLongArray;
import java.util.concurrent.atomic.LongAdder;
import java.util.function.BiConsumer;
import java.util.function.UnaryOperator;

/**
 * A bounded map of bytes to bytes that processes of a host share. Any thread; no call waits longer
 * than {@value #PATIENCE_NS} ns for a lock, and none fails: what cannot be done is not done, and
 * counted.
 *
 * <p>A process that is killed inside a call leaves a segment's lock behind, for which Chronicle Map
 * itself would wait a minute. Here a segment whose lock was refused to all calls of a second or
 * more is examined by a thread of this map's own: a lock that it cannot have for two seconds is
 * taken for dead, and the file is given up for a new, empty one. Other processes see that their
 * file is deleted or replaced, and follow. The same ends a map whose memory cannot be read.
 */
final class SharedMap implements AutoCloseable {
    /** Patience for one lock. */
    static final long PATIENCE_NS = 100_000;

    private static final Logger LOG = LoggerFactory.getLogger(SharedMap.class);
    private static final long SUSPECT_NS = TimeUnit.SECONDS.toNanos(1);
    private static final long EXAMINE_S = 2;
    private static final long LOOK_NS = TimeUnit.SECONDS.toNanos(1);
    private static final long RETRY_NS = TimeUnit.SECONDS.toNanos(10);
    private static final int MOST_FAILURES = 100;

    private final MapFiles files;
    private final LongAdder errors = new LongAdder();
    private final AtomicBoolean opening = new AtomicBoolean();
    private final AtomicLong failuresInARow = new AtomicLong();
    private volatile Use use; // null while there is none
    private volatile long lookNs = System.nanoTime();
    private volatile long retryNs;
    private volatile boolean closed;

    /** A lock of a segment. */
    private enum Kind {
        READ,
        UPDATE,
        WRITE; // a killed reader stops it alone

        InterProcessLock of(SegmentLock locks) {
            return switch (this) {
                case READ -> locks.readLock();
                case UPDATE -> locks.updateLock();
                case WRITE -> locks.writeLock();
            };
        }
    }

    /** A map in use, and since when which locks of it have been refused. */
    private static final class Use {
        private final MapFiles.Opened opened;
        private final ChronicleMap<byte[], byte[]> map;
        private final Path file;
        private final Map<Kind, AtomicLongArray> refused = new EnumMap<>(Kind.class);

        Use(MapFiles.Opened opened) {
            this.opened = opened;
            map = opened.map();
            file = opened.file();
            for (Kind kind : Kind.values()) {
                refused.put(kind, new AtomicLongArray(map.segments()));
            }
        }

        /** By segment; 0 where it was not. */
        AtomicLongArray refused(Kind kind) {
            return refused.get(kind);
        }
    }

    /**
     * Opens a map, or makes it: some seconds the first time in a process. While another process
     * holds the lock of opening, it continues without, and tries again.
     *
     * @throws IOException if it cannot be used at all; the message says what to change
     */
    SharedMap(Path folder, MapLayout layout) throws IOException {
        files = new MapFiles(folder, layout);
        try {
            use = new Use(files.open(null));
        } catch (SharedFolder.BusyException e) {
            LOG.warn("shared memory is out of use; it is tried again: {}", e.getMessage());
            errors.increment();
            retryNs = System.nanoTime() + RETRY_NS;
        }
    }

    /** Calls that could not be done, and damage that was found. */
    long errors() {
        return errors.sum();
    }

    /** Counts damage that a caller has found in a value. */
    void countError() {
        errors.increment();
    }

    /** The file in use, or null. */
    Path fileOrNull() {
        final Use now = use;
        return now == null ? null : now.file;
    }

    /** A copy of the value under a key; null if there is none, or it cannot be read now. */
    byte[] get(byte[] key) {
        final Use now = usable();
        if (now == null) {
            return null;
        }
        try (ExternalMapQueryContext<byte[], byte[], ?> context = now.map.queryContext(key)) {
            if (!lock(context.readLock(), now, Kind.READ, context.segmentIndex())) {
                return null;
            }
            final MapEntry<byte[], byte[]> entry = context.entry();
            final byte[] value = entry == null ? null : entry.value().get();
            worked();
            return value;
        } catch (RuntimeException | AssertionError | InternalError e) {
            failed(now, e);
            return null;
        }
    }

    /**
     * Puts a value under a key, or removes it.
     *
     * @param change gets the value that is there, null for none; returns the new one, null for
     *     none; called under the segment's lock
     * @return whether that is done
     */
    boolean update(byte[] key, UnaryOperator<byte[]> change) {
        final Use now = usable();
        if (now == null) {
            return false;
        }
        try (ExternalMapQueryContext<byte[], byte[], ?> context = now.map.queryContext(key)) {
            final int segment = context.segmentIndex();
            if (!lock(context.updateLock(), now, Kind.UPDATE, segment)) {
                return false;
            }
            final MapEntry<byte[], byte[]> entry = context.entry();
            final byte[] old = entry == null ? null : entry.value().get();
            final byte[] next = change.apply(old);
            // readers that were killed would keep it for ever
            if (!lock(context.writeLock(), now, Kind.WRITE, segment)) {
                return false;
            }
            if (entry != null && next != null) {
                context.replaceValue(entry, context.wrapValueAsData(next));
            } else if (entry != null) {
                context.remove(entry);
            } else if (next != null) {
                context.insert(context.absentEntry(), context.wrapValueAsData(next));
            }
            worked();
            return true;
        } catch (RuntimeException | AssertionError | InternalError e) {
            failed(now, e);
            return false;
        }
    }

    /**
     * Shows all entries, one segment after the other.
     *
     * @param seen gets key and value; called under a segment's lock
     * @return whether all were shown
     */
    boolean forEach(BiConsumer<byte[], byte[]> seen) {
        final Use now = usable();
        if (now == null) {
            return false;
        }
        boolean all = true;
        for (int segment = 0; segment < now.map.segments(); segment++) {
            try (MapSegmentContext<byte[], byte[], ?> context = now.map.segmentContext(segment)) {
                // the context of a segment is its lock, which its interface does not say
                final InterProcessLock lock = Kind.UPDATE.of((SegmentLock) context);
                if (lock(lock, now, Kind.UPDATE, segment)) {
                    context.forEachSegmentEntry(
                            entry -> seen.accept(entry.key().get(), entry.value().get()));
                } else {
                    all = false;
                }
            } catch (RuntimeException | AssertionError | InternalError e) {
                failed(now, e);
                return false;
            }
        }
        return all;
    }

    private boolean lock(InterProcessLock lock, Use now, Kind kind, int segment) {
        final AtomicLongArray refused = now.refused(kind);
        try {
            if (lock.tryLock(PATIENCE_NS, TimeUnit.NANOSECONDS)) {
                if (refused.get(segment) != 0) {
                    refused.set(segment, 0);
                }
                return true;
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // the caller notices
            return false;
        }
        errors.increment();
        final long ns = System.nanoTime();
        final long first = refused.get(segment);
        if (first == 0) {
            refused.compareAndSet(segment, 0, ns | 1);
        } else if (ns - first > SUSPECT_NS && !closed && opening.compareAndSet(false, true)) {
            start(() -> examine(now, kind, segment)); // two calls may have met two short holds
        }
        return false;
    }

    /** Gives a map up of which a lock is dead. */
    private void examine(Use now, Kind kind, int segment) {
        boolean free = true;
        try (MapSegmentContext<byte[], byte[], ?> context = now.map.segmentContext(segment)) {
            free = kind.of((SegmentLock) context).tryLock(EXAMINE_S, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // a later call has it examined again
        } catch (RuntimeException | AssertionError | InternalError e) {
            failed(now, e);
        } finally {
            opening.set(false);
        }
        if (free) {
            now.refused(kind).set(segment, 0);
        } else {
            giveUp(
                    now,
                    "the lock of segment "
                            + segment
                            + " is held for seconds; a process that was killed leaves it behind");
        }
    }

    private static void start(Runnable work) {
        Thread.ofPlatform().daemon().name("kvasir-shared-memory").start(work);
    }

    private void worked() {
        if (failuresInARow.get() != 0) {
            failuresInARow.set(0);
        }
    }

    private void failed(Use now, Throwable failure) {
        if (now != use) {
            return; // it was closed under this call
        }
        errors.increment();
        if (failure instanceof InternalError) { // a page of the file is not there any more
            giveUp(now, "its memory cannot be read: " + failure);
        } else if (failuresInARow.incrementAndGet() > MOST_FAILURES) {
            giveUp(now, MOST_FAILURES + " calls have failed, the last one with " + failure);
        }
    }

    /** The map in use, once a second after a look at whether its file is still there. */
    private Use usable() {
        final Use now = use;
        final long ns = System.nanoTime();
        if (now == null) {
            errors.increment();
            if (!closed && ns - retryNs > 0) {
                giveUp(null, "there is none");
            }
        } else if (ns - lookNs > LOOK_NS) {
            lookNs = ns;
            if (!now.opened.isThere()) {
                giveUp(now, "another process has made a new one");
            }
        }
        return now;
    }

    /** Has a thread open another file; the first call that finds this one of no use. */
    private void giveUp(Use now, String why) {
        if (closed || !opening.compareAndSet(false, true)) {
            return;
        }
        if (now != use) {
            opening.set(false);
            return;
        }
        LOG.warn(
                "{}: a new file of shared memory is opened: {}",
                now == null ? files : now.file,
                why);
        use = null;
        retryNs = System.nanoTime() + RETRY_NS;
        start(() -> replace(now));
    }

    private void replace(Use old) {
        try {
            if (old != null) {
                closeMap(old);
            }
            final MapFiles.Opened opened = files.open(old == null ? null : old.opened.key());
            synchronized (this) {
                if (closed) {
                    opened.map().close();
                } else {
                    failuresInARow.set(0);
                    use = new Use(opened);
                }
            }
        } catch (IOException | RuntimeException e) {
            LOG.warn("shared memory is out of use; it is tried again: {}", e.toString());
        } finally {
            opening.set(false);
        }
    }

    private static void closeMap(Use old) {
        try {
            old.map.close(); // waits for the calls inside
        } catch (RuntimeException | AssertionError | InternalError e) {
            LOG.debug("{} could not be closed", old.file, e);
        }
    }

    @Override
    public synchronized void close() {
        closed = true;
        final Use last = use;
        use = null;
        if (last != null) {
            closeMap(last);
        }
    }
}
