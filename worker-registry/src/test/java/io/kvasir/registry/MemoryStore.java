package io.kvasir.registry;

import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** A store in memory that can be made to fail, for one test; nothing expires by itself. */
public final class MemoryStore implements LeasedStore {
    private final Duration ttl;
    private final Map<String, Stored> keys = new TreeMap<>();
    private long revisions;
    private Watcher watcher;
    private String prefix;
    private boolean away;

    public MemoryStore(Duration ttl) {
        this.ttl = ttl;
    }

    /** Whether it does not answer. */
    public synchronized void away(boolean now) {
        away = now;
        if (watcher != null) {
            if (now) {
                watcher.lost("away");
            } else {
                watcher.view(all());
            }
        }
    }

    /** Writes without a condition, as another program may. */
    public synchronized void force(String key, byte[] value) {
        final Stored stored = new Stored(key, value, ++revisions);
        keys.put(key, stored);
        if (watcher != null && !away && key.startsWith(prefix)) {
            watcher.put(stored);
        }
    }

    /** What a lease that ends does. */
    public synchronized void expire(String key) {
        keys.remove(key);
        if (watcher != null && !away) {
            watcher.deleted(key);
        }
    }

    private List<Stored> all() {
        final List<Stored> all = new ArrayList<>();
        keys.values().stream().filter(s -> s.key().startsWith(prefix)).forEach(all::add);
        return all;
    }

    private void check() {
        if (away) {
            throw new RegistryException(RegistryException.Kind.UNAVAILABLE, "away");
        }
    }

    @Override
    public String kind() {
        return "memory";
    }

    @Override
    public Duration ttl() {
        return ttl;
    }

    @Override
    public boolean renewsRevisions() {
        return true;
    }

    @Override
    public synchronized Stored get(String key) {
        check();
        return keys.get(key);
    }

    @Override
    public synchronized long put(String key, byte[] value, long revision) {
        check();
        final Stored present = keys.get(key);
        if ((present == null ? ABSENT : present.revision()) != revision) {
            return CONFLICT;
        }
        force(key, value);
        return revisions;
    }

    @Override
    public synchronized void keepAlive() {
        check();
    }

    @Override
    public synchronized long renew(String key, byte[] value, long revision) {
        return put(key, value, revision);
    }

    @Override
    public synchronized boolean delete(String key, long revision) {
        check();
        final Stored present = keys.get(key);
        if (present == null || present.revision() != revision) {
            return false;
        }
        expire(key);
        return true;
    }

    @Override
    public synchronized void watch(String keysBegin, Watcher to) {
        prefix = keysBegin;
        watcher = to;
        if (!away) {
            to.view(all());
        } else {
            to.lost("away");
        }
    }

    @Override
    public synchronized void close() {
        watcher = null;
    }
}
