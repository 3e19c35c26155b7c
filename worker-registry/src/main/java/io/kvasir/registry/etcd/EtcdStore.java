package io.kvasir.registry.etcd;

import io.kvasir.registry.FailureText;
import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.Registration;
import io.kvasir.registry.RegistryException;
import io.kvasir.registry.RegistryException.Kind;
import io.kvasir.registry.Stored;
import io.kvasir.registry.etcd.EtcdClient.Entry;

import java.time.Duration;

/**
 * Keys in etcd, below a prefix; all that one store puts have one lease.
 *
 * <p>All keys are read anew before each watch: what answers after a watch that has ended may be
 * another etcd, or a backup, whose revisions mean other changes. With a watch, two daemon threads:
 * one watches, one asks now and then whether etcd answers, since a watch is silent when nothing
 * happens.
 */
public final class EtcdStore implements LeasedStore {
    /** Prefix of keys if nothing else is said. */
    public static final String PREFIX = "/kvasir/workers/";

    private static final int MAX_KEYS = 1 << 17;
    private static final int CHECKS_PER_TTL = 3;
    private static final long CLOSE_PATIENCE_MS = 5_000;

    private final EtcdOptions options;
    private final EtcdClient client;
    private final String prefix;
    private long lease; // 0: none; guarded by this
    private Thread watching; // guarded by this
    private Thread checking; // guarded by this
    private volatile boolean closed;

    /**
     * Connects with the first call.
     *
     * @param options where etcd is
     * @param prefix of all keys, not empty
     */
    public EtcdStore(EtcdOptions options, String prefix) {
        if (prefix.isEmpty()) {
            throw new IllegalArgumentException("the prefix of keys in etcd is empty");
        }
        this.options = options;
        this.prefix = prefix;
        client = new EtcdClient(options, ReadLimits.ofValues(Registration.MAX_BYTES));
    }

    @Override
    public String kind() {
        return "etcd";
    }

    @Override
    public Duration ttl() {
        return options.ttl();
    }

    private Stored stored(Entry entry) {
        return entry.stored().withKey(entry.key().substring(prefix.length()));
    }

    @Override
    public Stored get(String key) {
        final Entry entry = client.get(prefix + key);
        return entry == null ? null : stored(entry);
    }

    @Override
    public synchronized long put(String key, byte[] value, long revision) {
        if (lease == 0) {
            leaseAnew();
        }
        try {
            return client.putIf(prefix + key, revision, value, lease);
        } catch (RegistryException e) {
            if (e.kind() != Kind.UNAVAILABLE || client.keepAlive(lease)) {
                throw e;
            }
            leaseAnew(); // the former one has ended: it had no key to be kept for
            return client.putIf(prefix + key, revision, value, lease);
        }
    }

    private void leaseAnew() {
        if (closed) { // nothing would revoke it
            throw new RegistryException(Kind.UNAVAILABLE, "the store is closed");
        }
        lease = client.grant();
    }

    @Override
    public synchronized void keepAlive() {
        if (lease != 0 && !client.keepAlive(lease)) {
            leaseAnew(); // keys of the former one have ended, and will be put again
        }
    }

    @Override
    public synchronized long renew(String key, byte[] value, long revision) {
        final Entry entry = client.get(prefix + key);
        return entry != null && entry.revision() == revision && entry.lease() == lease
                ? revision
                : CONFLICT;
    }

    @Override
    public boolean delete(String key, long revision) {
        return client.deleteIf(prefix + key, revision);
    }

    // -- the watch

    @Override
    public synchronized void watch(String keys, Watcher watcher) {
        if (watching != null || closed) {
            throw new IllegalStateException("watched already, or closed: prefix=" + prefix);
        }
        watching =
                Thread.ofPlatform()
                        .daemon()
                        .name("kvasir-etcd-workers")
                        .start(new Watch(keys, watcher)::run);
        checking = Thread.ofPlatform().daemon().name("kvasir-etcd-check").start(this::checkAlways);
    }

    /** What the watching thread does, a round at a time. */
    final class Watch implements EtcdClient.Events {
        private final String keys;
        private final Watcher watcher;
        private final GrowingPause retry = new GrowingPause(); // a wrong password costs a hash each

        Watch(String keys, Watcher watcher) {
            this.keys = prefix + keys;
            this.watcher = watcher;
        }

        @Override
        public void onPut(Entry entry) {
            watcher.put(stored(entry));
        }

        @Override
        public void onDelete(String key) {
            watcher.deleted(key.substring(prefix.length()));
        }

        private void run() {
            while (!closed) {
                final long pauseMs = round();
                pause(closed ? 0 : pauseMs);
            }
        }

        /** Reads all, and watches until that ends; returns how long to wait. */
        long round() {
            try {
                final EtcdClient.Range range = client.range(keys, MAX_KEYS);
                watcher.view(range.entries().stream().map(each -> stored(each)).toList());
                client.watch(keys, range.at(), this);
                return retry.afterSuccessMs();
            } catch (RuntimeException | Error e) { // out of memory, too: discovery goes on
                lose(e);
                return retry.afterFailureMs();
            }
        }

        private void lose(Throwable e) {
            if (closed) {
                return;
            }
            try {
                watcher.lost(
                        e instanceof RegistryException
                                ? e.getMessage()
                                : "keys of etcd below "
                                        + keys
                                        + " could not be applied: "
                                        + FailureText.of(e));
            } catch (RuntimeException | Error again) {
                pause(0); // no memory even for that: the next round says what fails then
            }
        }
    }

    /** A member that is cut off keeps its watches open and silent; a read fails on it. */
    private void checkAlways() {
        while (!closed) {
            pause(options.ttl().toMillis() / CHECKS_PER_TTL);
            try {
                if (!closed) {
                    client.get(prefix);
                }
            } catch (RuntimeException | Error e) { // whatever it is, the watch begins anew
                client.stopWatching();
            }
        }
    }

    private static void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        }
    }

    @Override
    public void close() {
        final long ended;
        final Thread[] threads;
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
            ended = lease;
            threads = watching == null ? new Thread[0] : new Thread[] {watching, checking};
        }
        for (Thread thread : threads) {
            thread.interrupt();
        }
        revoke(ended);
        client.stopWatching();
        for (Thread thread : threads) {
            join(thread);
        }
        client.close();
    }

    private void revoke(long ended) {
        try {
            if (ended != 0) {
                client.revoke(ended);
            }
        } catch (RegistryException e) {
            pause(0); // the lease ends by itself
        }
    }

    private static void join(Thread thread) {
        try {
            thread.join(CLOSE_PATIENCE_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
