package io.kvasir.registry;

import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;

/** Another store, from which this one can be cut off; for one process of a test. */
public class FaultyStore implements LeasedStore {
    private final LeasedStore store;
    private volatile boolean cutOff;
    private final AtomicInteger errors = new AtomicInteger();
    private volatile boolean deaf;
    private volatile boolean broken;

    public FaultyStore(LeasedStore store) {
        this.store = store;
    }

    /** Whether nothing reaches the store. */
    public void cutOff(boolean now) {
        cutOff = now;
    }

    /** Whether what is written reaches the store, and no answer comes back. */
    public void deaf(boolean now) {
        deaf = now;
    }

    /** Whether what asks it ends with an {@link Error}. */
    public void broken(boolean now) {
        broken = now;
    }

    /** How many calls ended with one. */
    public int errors() {
        return errors.get();
    }

    private LeasedStore reached() {
        if (broken) {
            errors.incrementAndGet();
            throw new StackOverflowError("of the test");
        }
        if (cutOff) {
            throw new RegistryException(RegistryException.Kind.UNAVAILABLE, "cut off");
        }
        return store;
    }

    private <T> T delivered(T answer) {
        if (deaf) {
            throw new RegistryException(RegistryException.Kind.UNAVAILABLE, "no answer");
        }
        return answer;
    }

    @Override
    public String kind() {
        return store.kind();
    }

    @Override
    public Duration ttl() {
        return store.ttl();
    }

    @Override
    public boolean renewsRevisions() {
        return store.renewsRevisions();
    }

    @Override
    public Stored get(String key) {
        return delivered(reached().get(key));
    }

    @Override
    public long put(String key, byte[] value, long revision) {
        return delivered(reached().put(key, value, revision));
    }

    @Override
    public void keepAlive() {
        reached().keepAlive();
    }

    @Override
    public long renew(String key, byte[] value, long revision) {
        return delivered(reached().renew(key, value, revision));
    }

    @Override
    public boolean delete(String key, long revision) {
        return delivered(reached().delete(key, revision));
    }

    @Override
    public void watch(String prefix, Watcher watcher) {
        store.watch(prefix, watcher);
    }

    @Override
    public void close() {
        store.close();
    }
}
