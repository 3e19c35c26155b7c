package io.kvasir.chronicle;

import io.kvasir.router.spi.SavedWorker;

import java.io.DataInputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;

/**
 * What the routers of a host have saved last, for all processes of their user: workers with how far
 * each one's events are in the newest snapshot, and the snapshots themselves. Each store writes its
 * own; any process may read.
 *
 * <p>It is a view, never the truth: that is in the snapshots' files. After a process was killed in
 * the middle of a write it may be empty until each router saves again. Any thread; nothing waits
 * longer than a fraction of a millisecond.
 */
public final class HostState implements AutoCloseable {
    /** Most workers and snapshots, together, of all stores. */
    public static final int MOST_ENTRIES = 20_000;

    private static final int VERSION = 1;
    private static final int MOST_KEY_BYTES = 256;
    private static final int MOST_VALUE_BYTES = 1_024;
    private static final byte WORKER = 'w';
    private static final byte SNAPSHOT = 's';

    private final SharedMap map;

    /**
     * A worker as a store's newest snapshot has it.
     *
     * @param store whose it is
     * @param worker name, URL, number, generation, last event
     * @param snapshot object of the store that has it
     */
    public record WorkerEntry(String store, SavedWorker worker, String snapshot) {}

    /**
     * A snapshot.
     *
     * @param store whose it is
     * @param name of the object
     * @param bytes length
     * @param crc CRC-32C of its bytes
     * @param putMs when it was put, in ms since 1970
     */
    public record SnapshotEntry(String store, String name, long bytes, int crc, long putMs) {}

    /**
     * Opens the state of a host, or makes it.
     *
     * @param folder of the files; made if it is not there
     * @throws IOException if it cannot be used; the message says what to change
     */
    public HostState(Path folder) throws IOException {
        map =
                new SharedMap(
                        folder,
                        new MapLayout(
                                "routers",
                                VERSION,
                                MOST_ENTRIES,
                                MOST_KEY_BYTES,
                                MOST_VALUE_BYTES));
    }

    /** Workers of all stores, by store, name and rank. */
    public List<WorkerEntry> workers() {
        final List<WorkerEntry> found = all(WORKER, HostState::worker);
        found.sort(
                Comparator.comparing(WorkerEntry::store)
                        .thenComparing(e -> e.worker().name())
                        .thenComparingInt(e -> e.worker().dpRank()));
        return found;
    }

    /** Snapshots of all stores, by store and name. */
    public List<SnapshotEntry> snapshots() {
        final List<SnapshotEntry> found = all(SNAPSHOT, HostState::snapshot);
        found.sort(Comparator.comparing(SnapshotEntry::store).thenComparing(SnapshotEntry::name));
        return found;
    }

    /** Entries that could not be written or read, so far, by this process. */
    public long errors() {
        return map.errors();
    }

    private <T> List<T> all(byte kind, HostRecord.Reader<T> reader) {
        final List<T> found = new ArrayList<>();
        map.forEach(
                (key, value) -> {
                    if (key.length > 0 && key[0] == kind) {
                        final T record = HostRecord.readOrNull(value, reader);
                        if (record == null) {
                            map.countError();
                        } else {
                            found.add(record);
                        }
                    }
                });
        return found;
    }

    /**
     * Says how far a worker is in a store's snapshot, in place of what was said before.
     *
     * @return whether it can be seen now; not if names are too long, or there is no room
     */
    boolean put(WorkerEntry entry) {
        final SavedWorker worker = entry.worker();
        return put(
                key(WORKER, entry.store(), worker.name(), worker.dpRank()),
                HostRecord.write(
                        out -> {
                            HostRecord.writeText(out, entry.store());
                            HostRecord.writeText(out, worker.name());
                            out.writeInt(worker.dpRank());
                            HostRecord.writeText(out, worker.url());
                            out.writeLong(worker.id());
                            out.writeLong(worker.generation());
                            out.writeLong(worker.lastEvent());
                            out.writeLong(worker.digest());
                            HostRecord.writeText(out, entry.snapshot());
                        }));
    }

    private static WorkerEntry worker(DataInputStream in) throws IOException {
        final String store = HostRecord.readText(in);
        final SavedWorker worker =
                new SavedWorker(
                        HostRecord.readText(in),
                        in.readInt(),
                        HostRecord.readText(in),
                        in.readLong(),
                        in.readLong(),
                        in.readLong(),
                        in.readLong());
        return new WorkerEntry(store, worker, HostRecord.readText(in));
    }

    /**
     * Says that a store has a snapshot.
     *
     * @return whether it can be seen now
     */
    boolean put(SnapshotEntry entry) {
        return put(
                key(SNAPSHOT, entry.store(), entry.name(), 0),
                HostRecord.write(
                        out -> {
                            HostRecord.writeText(out, entry.store());
                            HostRecord.writeText(out, entry.name());
                            out.writeLong(entry.bytes());
                            out.writeInt(entry.crc());
                            out.writeLong(entry.putMs());
                        }));
    }

    private static SnapshotEntry snapshot(DataInputStream in) throws IOException {
        return new SnapshotEntry(
                HostRecord.readText(in),
                HostRecord.readText(in),
                in.readLong(),
                in.readInt(),
                in.readLong());
    }

    private boolean put(byte[] key, byte[] value) {
        if (key.length > MOST_KEY_BYTES || value.length > MOST_VALUE_BYTES) {
            map.countError();
            return false;
        }
        return map.update(key, _ -> value);
    }

    /** Takes a worker or a snapshot out, if it is there. */
    private boolean remove(byte[] key) {
        return map.update(key, _ -> null);
    }

    boolean remove(WorkerEntry entry) {
        return remove(key(WORKER, entry.store(), entry.worker().name(), entry.worker().dpRank()));
    }

    boolean removeSnapshot(String store, String name) {
        return remove(key(SNAPSHOT, store, name, 0));
    }

    private static byte[] key(byte kind, String store, String name, int rank) {
        return ((char) kind + store + '\n' + name + '\n' + rank).getBytes(StandardCharsets.UTF_8);
    }

    @Override
    public void close() {
        map.close();
    }
}
