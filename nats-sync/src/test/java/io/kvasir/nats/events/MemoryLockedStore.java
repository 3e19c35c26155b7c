package io.kvasir.nats.events;

import io.kvasir.nats.state.LockedStore;

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.TreeMap;

/** A store in memory as one process sees it, whose lock may end while it is held; one thread. */
final class MemoryLockedStore implements LockedStore {
    /** What all processes share. */
    static final class Bucket {
        private final TreeMap<String, byte[]> objects = new TreeMap<>();
        private MemoryLockedStore holder; // null for none

        /** Names of all objects. */
        List<String> names() {
            return new ArrayList<>(objects.keySet());
        }

        byte[] bytes(String name) {
            return objects.get(name);
        }

        /** Replaces an object from outside. */
        void damage(String name, byte[] bytes) {
            objects.put(name, bytes);
        }

        /** The lease of the lock's holder is over. */
        void endLease() {
            holder = null;
        }
    }

    private final Bucket bucket;
    private final MemoryStream.Faults faults;
    private boolean believes; // that it has the lock
    private boolean killed;

    MemoryLockedStore(Bucket bucket, MemoryStream.Faults faults) {
        this.bucket = bucket;
        this.faults = faults;
    }

    /** Nothing that this process does later has an effect. */
    void kill() {
        killed = true;
    }

    @Override
    public boolean lock() throws IOException {
        faults.mayFail();
        if (bucket.holder == null || bucket.holder == this) {
            bucket.holder = this;
            believes = true;
        }
        return bucket.holder == this;
    }

    @Override
    public void unlock() {
        believes = false;
        if (bucket.holder == this && !killed) {
            bucket.holder = null;
        }
    }

    @Override
    public boolean isLocked() {
        return believes;
    }

    @Override
    public void checkLock() throws IOException {
        faults.mayFail();
        if (bucket.holder != this) {
            believes = false;
            throw new IllegalStateException("the lock is not held");
        }
    }

    @Override
    public void put(String name, Content content) throws IOException {
        checkLock();
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        content.writeTo(out);
        faults.mayFail();
        checkLock();
        bucket.objects.put(name, out.toByteArray());
    }

    @Override
    public InputStream get(String name, long offset) throws IOException {
        faults.mayFail();
        final byte[] bytes = bucket.objects.get(name);
        if (bytes == null) {
            return null;
        }
        final int from = (int) Math.min(offset, bytes.length);
        return new ByteArrayInputStream(bytes, from, bytes.length - from);
    }

    @Override
    public List<String> list() throws IOException {
        faults.mayFail();
        return bucket.names();
    }

    @Override
    public void delete(String name) throws IOException {
        checkLock();
        bucket.objects.remove(name);
    }

    @Override
    public Duration maxAge() {
        return Duration.ZERO;
    }

    @Override
    public Duration age(String name) {
        return bucket.objects.containsKey(name) ? Duration.ZERO : null;
    }

    @Override
    public void close() {
        unlock();
    }
}
