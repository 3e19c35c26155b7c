package io.kvasir.chronicle;

import io.kvasir.router.spi.SavedWorker;
import io.kvasir.router.spi.StateStore;
import io.kvasir.router.state.FileStateStore;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Path;
import java.time.Clock;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.zip.CRC32C;
import java.util.zip.CheckedOutputStream;

/**
 * Objects as a {@link FileStateStore} keeps them, with a {@link HostState} beside them that shows
 * all processes of the host which objects there are, and how far each worker is in them. The files
 * are what counts: a put that cannot be shown is a put all the same, and {@link #lock} shows what
 * is there.
 */
public final class ChronicleStateStore implements StateStore {
    private final String name;
    private final FileStateStore files;
    private final HostState host;
    private final Clock clock = Clock.systemUTC();

    /**
     * Opens a store.
     *
     * @param folder of its objects, made if it is not there; its path is the store's name to others
     * @param shared folder of the host's state; made if it is not there
     * @throws IOException if one of them cannot be used; the message says what to change
     */
    public ChronicleStateStore(Path folder, Path shared) throws IOException {
        files = new FileStateStore(folder);
        name = folder.toRealPath().toString();
        host = new HostState(shared);
    }

    /** What the stores of the host say, this one's included; closed with this. */
    public HostState host() {
        return host;
    }

    @Override
    public boolean lock() throws IOException {
        if (!files.lock()) {
            return false;
        }
        showWhatIsThere();
        return true;
    }

    /** After a new file of the host's state was made, or another process ended half way. */
    private void showWhatIsThere() throws IOException {
        final Set<String> there = new HashSet<>(files.list());
        for (HostState.SnapshotEntry entry : host.snapshots()) {
            if (entry.store().equals(name) && !there.remove(entry.name())) {
                host.removeSnapshot(name, entry.name());
            }
        }
        for (String object : there) {
            try (InputStream in = files.get(object, 0)) {
                if (in != null) {
                    final Counting counting = new Counting(OutputStream.nullOutputStream());
                    in.transferTo(counting);
                    show(object, counting);
                }
            }
        }
    }

    private void show(String object, Counting written) {
        host.put(
                new HostState.SnapshotEntry(
                        name, object, written.bytes, written.crc(), clock.millis()));
    }

    @Override
    public void put(String object, Content content) throws IOException {
        final Counting[] written = new Counting[1];
        files.put(
                object,
                out -> {
                    written[0] = new Counting(out);
                    content.writeTo(written[0]);
                });
        show(object, written[0]);
    }

    /** Counts what goes through it, and sums it up. */
    private static final class Counting extends CheckedOutputStream {
        private long bytes;

        Counting(OutputStream out) {
            super(out, new CRC32C());
        }

        @Override
        public void write(int b) throws IOException {
            super.write(b);
            bytes++;
        }

        @Override
        public void write(byte[] b, int offset, int length) throws IOException {
            super.write(b, offset, length);
            bytes += length;
        }

        int crc() {
            return (int) getChecksum().getValue();
        }
    }

    @Override
    public void saved(String object, List<SavedWorker> workers) {
        final Set<String> there = new HashSet<>();
        for (SavedWorker worker : workers) {
            there.add(worker.name() + "/" + worker.dpRank());
            host.put(new HostState.WorkerEntry(name, worker, object));
        }
        for (HostState.WorkerEntry entry : host.workers()) {
            if (entry.store().equals(name)
                    && !there.contains(entry.worker().name() + "/" + entry.worker().dpRank())) {
                host.remove(entry);
            }
        }
    }

    @Override
    public InputStream get(String object, long offset) throws IOException {
        return files.get(object, offset);
    }

    @Override
    public List<String> list() throws IOException {
        return files.list();
    }

    @Override
    public void delete(String object) throws IOException {
        files.delete(object);
        host.removeSnapshot(name, object);
    }

    @Override
    public void close() {
        files.close();
        host.close();
    }

    @Override
    public String toString() {
        return files.toString();
    }
}
