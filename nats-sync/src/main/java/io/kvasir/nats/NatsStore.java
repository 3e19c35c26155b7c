package io.kvasir.nats;

import io.kvasir.registry.FailureText;
import io.kvasir.registry.LeaseTtl;
import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.RegistryException;
import io.kvasir.registry.RegistryException.Kind;
import io.kvasir.registry.Stored;
import io.nats.client.AuthenticationException;
import io.nats.client.Connection;
import io.nats.client.ConnectionListener;
import io.nats.client.api.KeyValueEntry;
import io.nats.client.api.KeyValueWatcher;

import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.function.Supplier;
import java.util.regex.Pattern;

/**
 * Keys in a bucket of NATS's key-value store: each is renewed by being written again, and NATS
 * forgets what is older than the bucket's TTL. The bucket is made where it is not there; one that
 * is there keeps its own TTL; one that has none, in which nothing ends, is logged once. A slash of
 * a key is a dot there.
 *
 * <p>NATS does not report when a value has aged: with a watch, what was silent for the TTL is asked
 * for, and has ended when NATS no longer has it. After a lost connection, and where the bucket was
 * made anew, all keys are read again.
 *
 * <p>With a watch, one daemon thread connects, checks and reports losses; NATS's own reports keys.
 * Both hold this watch's lock.
 */
public final class NatsStore implements LeasedStore {
    /** The bucket if nothing else is said. */
    public static final String BUCKET = "kvasir-workers";

    private static final Logger LOG = LoggerFactory.getLogger(NatsStore.class);
    private static final Pattern NAME = Pattern.compile("[-_a-zA-Z0-9]{1,64}");
    private static final int CHECKS_PER_TTL = 3;
    private static final long PAUSE_MS = 200;
    private static final long CLOSE_PATIENCE_MS = 10_000;

    private final NatsAccess access;
    private final String name;
    private final Duration ttl;
    private final ConnectPause connecting; // of the watching thread
    private final Consumer<String> warnings;
    private final ServerErrors errors = new ServerErrors();
    private LastingConnection connection; // null: to be made; guarded by this
    private KvBucket bucket; // null: to be opened; guarded by this
    private boolean forEverSaid; // guarded by this
    private Thread watching; // guarded by this
    private volatile Duration bucketTtl;
    private volatile boolean reconnected;
    private volatile boolean closed;

    /**
     * Connects with the first call; later it connects again by itself.
     *
     * @param access where NATS is
     * @param bucket letters, digits, - and _
     * @param ttl of values where the bucket is made now, 1 s..1 h
     */
    public NatsStore(NatsAccess access, String bucket, Duration ttl) {
        this(access, bucket, ttl, new ConnectPause(), LOG::warn);
    }

    NatsStore(
            NatsAccess access,
            String bucket,
            Duration ttl,
            ConnectPause connecting,
            Consumer<String> warnings) {
        if (!NAME.matcher(bucket).matches()) {
            throw new IllegalArgumentException(
                    "bucket='" + bucket + "': 1..64 letters, digits, - and _");
        }
        LeaseTtl.check(ttl);
        this.access = access;
        this.ttl = ttl;
        this.connecting = connecting;
        this.warnings = warnings;
        name = bucket;
        bucketTtl = ttl;
    }

    @Override
    public String kind() {
        return "nats";
    }

    @Override
    public Duration ttl() {
        return bucketTtl;
    }

    @Override
    public boolean renewsRevisions() {
        return true;
    }

    // -- the bucket

    private synchronized KvBucket opened() {
        if (closed) {
            throw new RegistryException(Kind.UNAVAILABLE, "the store is closed");
        }
        if (reconnected) {
            reconnected = false;
            bucket = null; // it may be another, or none
        }
        if (bucket == null) {
            if (connection == null) {
                connection = connect();
            }
            bucket = KvBucket.open(connection, errors, name, ttl, access.timeout());
            bucketTtl = bucket.ttl(ttl);
            if (bucket.keepsForEver() && !forEverSaid) {
                forEverSaid = true;
                sayForEver();
            }
        }
        return bucket;
    }

    private void sayForEver() {
        warnings.accept(
                "bucket "
                        + name
                        + " of NATS has no TTL, as others have made it: what a killed process has"
                        + " left in it, such as a worker's registration, stays for ever; give it"
                        + " one: nats stream edit KV_"
                        + name
                        + " --max-age "
                        + ttl.toSeconds()
                        + "s");
    }

    private LastingConnection connect() {
        final String what = "connecting to " + access.address();
        try {
            return LastingConnection.make(
                    access.options("kvasir-workers").errorListener(errors), this::onConnection);
        } catch (AuthenticationException e) {
            throw new RegistryException(
                    Kind.DENIED, "NATS refuses " + what + ": " + e.getMessage(), e);
        } catch (IOException | IllegalArgumentException e) {
            throw KvBucket.unavailable(what, e);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw KvBucket.unavailable(what, e);
        }
    }

    private void onConnection(Connection which, ConnectionListener.Events event) {
        if (event == ConnectionListener.Events.RECONNECTED) {
            reconnected = true;
        }
    }

    /** A bucket that was deleted is found out by the next call, and made anew by the one after. */
    private synchronized void forget(KvBucket failed) {
        if (bucket == failed) {
            bucket = null;
        }
    }

    private static String inNats(String key) {
        return key.replace('/', '.');
    }

    private static Stored stored(KeyValueEntry entry) {
        return new Stored(entry.getKey().replace('.', '/'), entry.getValue(), entry.getRevision());
    }

    @Override
    public Stored get(String key) {
        final KvBucket in = opened();
        try {
            final KeyValueEntry entry = in.get(inNats(key));
            return entry == null ? null : stored(entry);
        } catch (RegistryException e) {
            forget(in);
            throw e;
        }
    }

    @Override
    public long put(String key, byte[] value, long revision) {
        final KvBucket in = opened();
        try {
            final long now = in.put(inNats(key), value, revision);
            return now == KvBucket.CONFLICT ? CONFLICT : now;
        } catch (RegistryException e) {
            forget(in);
            throw e;
        }
    }

    @Override
    public void keepAlive() {
        final KvBucket in = opened();
        try {
            if (in.isSame()) {
                return;
            }
        } catch (RegistryException e) {
            forget(in);
            throw e;
        }
        forget(in);
        opened();
    }

    @Override
    public long renew(String key, byte[] value, long revision) {
        return put(key, value, revision);
    }

    @Override
    public boolean delete(String key, long revision) {
        return opened().delete(inNats(key), revision);
    }

    // -- the watch

    @Override
    public synchronized void watch(String prefix, Watcher watcher) {
        if (watching != null || closed) {
            throw new IllegalStateException("watched already, or closed: bucket=" + name);
        }
        final Watch watch = new Watch(inNats(prefix) + ">", watcher);
        watching = Thread.ofPlatform().daemon().name("kvasir-nats-workers").start(watch::run);
    }

    /** What the thread does; the watcher is called under its lock. */
    private final class Watch {
        private final String pattern;
        private final Watcher watcher;
        private final Map<String, Long> lastSeenNs = new HashMap<>(); // guarded by this
        private KvBucket watched; // guarded by this
        private KvWatch subscription;
        private Hearing following; // whose keys count; guarded by this
        private boolean isLost; // guarded by this
        private boolean isUnfit; // something that was not taken, yet unseen; guarded by this
        private long checkedNs;

        Watch(String pattern, Watcher watcher) {
            this.pattern = pattern;
            this.watcher = watcher;
        }

        void run() {
            while (!closed) {
                try {
                    pause(hasWorked());
                } catch (InterruptedException e) {
                    Thread.currentThread().interrupt(); // closing
                }
            }
        }

        /** What NATS refuses it mostly refuses for long: tries become rarer until one works. */
        private void pause(boolean worked) throws InterruptedException {
            if (worked) {
                connecting.connected();
                Thread.sleep(PAUSE_MS);
            } else {
                connecting.await();
            }
        }

        private boolean hasWorked() {
            try {
                look();
                return !wasUnfit();
            } catch (RegistryException e) {
                lose(e::getMessage);
            } catch (RuntimeException | Error e) { // out of memory, too: all is read again
                lose(() -> failure(e));
            }
            return false;
        }

        private String failure(Throwable e) {
            return "watching " + name + " fails: " + FailureText.of(e);
        }

        /** Whether something was not taken since this was asked. */
        private synchronized boolean wasUnfit() {
            final boolean was = isUnfit;
            isUnfit = false;
            return was;
        }

        private void look() {
            if (isCutOff()) { // the client makes the connection again by itself
                lose(() -> "no connection to NATS at " + access.address());
                return;
            }
            final KvBucket now = opened();
            final long nowNs = System.nanoTime();
            if (now != watched || isLost()) {
                rewatch(now);
                checkedNs = nowNs;
            }
            if (nowNs - checkedNs > bucketTtl.toNanos() / CHECKS_PER_TTL) {
                keepAlive(); // notices a bucket that was deleted, and a server that hangs
                checkedNs = nowNs;
                askForTheSilent(now, nowNs);
            }
        }

        private synchronized boolean isLost() {
            return isLost;
        }

        private boolean isCutOff() {
            synchronized (NatsStore.this) {
                return connection != null && !connection.isConnected();
            }
        }

        private void rewatch(KvBucket now) {
            endSubscription();
            final Hearing next = new Hearing();
            synchronized (this) {
                following = next;
                watched = now;
                isLost = false;
            }
            subscription = now.watch(pattern, next);
        }

        private void endSubscription() {
            if (subscription != null) {
                subscription.end();
                subscription = null;
            }
        }

        private synchronized void lose(Supplier<String> cause) {
            if (closed) {
                return;
            }
            isLost = true;
            following = null; // what it still gets is read again
            try {
                watcher.lost(cause.get());
            } catch (RuntimeException | Error e) {
                // no memory even for that: the next round says what fails then
            }
        }

        private void askForTheSilent(KvBucket in, long nowNs) {
            final List<String> silent = new ArrayList<>();
            synchronized (this) {
                lastSeenNs.forEach(
                        (key, ns) -> {
                            if (nowNs - ns > bucketTtl.toNanos()) {
                                silent.add(key);
                            }
                        });
            }
            for (String key : silent) {
                if (isGone(in, key)) {
                    forget(key, nowNs);
                }
            }
        }

        /** One that only a raw publish can have made has no name to ask by: silence ends it. */
        private static boolean isGone(KvBucket in, String key) {
            try {
                return in.get(key) == null;
            } catch (IllegalArgumentException e) {
                return true;
            }
        }

        private synchronized void forget(String key, long askedNs) {
            final Long ns = lastSeenNs.get(key);
            if (following != null && ns != null && ns - askedNs < 0) { // not seen since
                lastSeenNs.remove(key);
                watcher.deleted(key.replace('.', '/'));
            }
        }

        /** Hears what happens in the bucket; on a thread of NATS. */
        private final class Hearing implements KeyValueWatcher {
            private Map<String, Stored> first = new LinkedHashMap<>(); // null once all are there

            @Override
            public void watch(KeyValueEntry entry) {
                take(() -> apply(entry));
            }

            /** What fails is read again with all. */
            private void take(Runnable taking) {
                synchronized (Watch.this) {
                    if (following != this) {
                        return; // another one reads them all again
                    }
                    try {
                        taking.run();
                    } catch (RuntimeException | Error e) {
                        isUnfit = true;
                        lose(() -> failure(e));
                    }
                }
            }

            private void apply(KeyValueEntry entry) {
                if (first != null) {
                    collect(entry);
                } else if (KvBucket.isPut(entry)) {
                    lastSeenNs.put(entry.getKey(), System.nanoTime());
                    watcher.put(stored(entry));
                } else if (lastSeenNs.remove(entry.getKey()) != null) {
                    watcher.deleted(entry.getKey().replace('.', '/'));
                }
            }

            private void collect(KeyValueEntry entry) {
                if (KvBucket.isPut(entry)) {
                    first.put(entry.getKey(), stored(entry));
                } else {
                    first.remove(entry.getKey());
                }
            }

            @Override
            public void endOfData() {
                take(this::view);
            }

            private void view() {
                if (first == null) {
                    return;
                }
                final Map<String, Stored> all = first;
                first = null;
                lastSeenNs.clear();
                all.keySet().forEach(key -> lastSeenNs.put(key, System.nanoTime()));
                watcher.view(List.copyOf(all.values()));
            }
        }
    }

    @Override
    public void close() {
        final Thread thread;
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
            thread = watching;
        }
        try {
            if (thread != null) {
                thread.interrupt();
                thread.join(CLOSE_PATIENCE_MS);
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        synchronized (this) {
            if (connection != null) {
                connection.close();
            }
        }
    }
}
