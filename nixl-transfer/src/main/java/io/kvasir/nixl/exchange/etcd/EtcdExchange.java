package io.kvasir.nixl.exchange.etcd;

import io.kvasir.nixl.exchange.ExchangeException;
import io.kvasir.nixl.exchange.ExchangeException.Kind;
import io.kvasir.nixl.exchange.PeerDirectory;
import io.kvasir.nixl.exchange.PeerRecord;
import io.kvasir.nixl.exchange.PublishedRecords;
import io.kvasir.nixl.exchange.ViewedExchange;
import io.kvasir.registry.RegistryException;
import io.kvasir.registry.etcd.EtcdClient;
import io.kvasir.registry.etcd.EtcdClient.Entry;
import io.kvasir.registry.etcd.EtcdOptions;

import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Exchanges records through etcd: a key a record, all of an owner's with one lease, so that they go
 * away when it does not renew the lease for {@link EtcdConfig#ttl}. A transaction keeps an older
 * record from replacing a newer one.
 *
 * <p>While etcd cannot be reached, records known before stay; when it is back, even with other
 * contents, all records are read anew and own ones published again. So is an own record that the
 * watch does not show, as another one deleted or overwrote it, with the next renewal. A record that
 * there was no room for is taken as soon as another one goes away.
 *
 * <p>Two daemon threads: one renews, one watches and calls listeners.
 */
public final class EtcdExchange extends ViewedExchange {
    private static final String SOURCE = "etcd";
    private static final int MAX_KEYS =
            1 << 17; // more than are known: which of these are there still is to be seen
    private static final int MAX_TRIES = 8;
    private static final int RENEWALS_PER_TTL = 3;
    private static final long RETRY_MS = 200;
    private static final long CLOSE_PATIENCE_MS = 5_000;

    private final EtcdConfig config;
    private final EtcdClient client;
    private final PublishedRecords own = new PublishedRecords();
    private final Map<String, PeerRecord> undone = // to be deleted; under the lock
            new LinkedHashMap<>();
    private final LinkedHashSet<String> withoutRoom = // names; of the watching thread
            new LinkedHashSet<>();
    private final AtomicLong unreachable = new AtomicLong();
    private final Thread renewer;
    private final Thread watcher;
    private long lease; // 0: none yet; under the lock, as all that writes to etcd
    private boolean isWhole; // all own records were stored with the lease; under the lock
    private volatile boolean closed;

    /**
     * Watches from now on, as soon as etcd can be reached.
     *
     * @param config where etcd is
     */
    public EtcdExchange(EtcdConfig config) {
        this(config, true);
    }

    private EtcdExchange(EtcdConfig config, boolean isStarted) {
        this.config = config;
        client = new EtcdClient(EtcdOptions.of(config.endpoints(), config.ttl(), config.timeout()));
        renewer = Thread.ofPlatform().daemon().name("kvasir-etcd-lease").unstarted(this::renewAll);
        watcher = Thread.ofPlatform().daemon().name("kvasir-etcd-watch").unstarted(this::watchAll);
        if (isStarted) {
            renewer.start();
            watcher.start();
        }
    }

    /** One whose threads do not run: {@link #renew} and {@link #watchOnce} are called instead. */
    static EtcdExchange stepped(EtcdConfig config) {
        return new EtcdExchange(config, false);
    }

    @Override
    public synchronized void publish(PeerRecord record) {
        requireOpen();
        own.check(record);
        try {
            undoAllBut(record.name()); // so that no more are kept than can be published
            keepLease(); // it may have ended unseen
            if (!isWhole) {
                storeOwn();
            }
        } catch (RegistryException e) {
            throw unavailable(e);
        }
        try {
            store(record);
        } catch (RegistryException e) { // it may be there: a renewal deletes it
            undo(record);
            throw unavailable(e);
        }
        undone.remove(record.name());
        own.put(record);
    }

    private static ExchangeException unavailable(RegistryException e) {
        return new ExchangeException(Kind.UNAVAILABLE, e.getMessage(), e);
    }

    /** Reads, decides and writes what it has read, until no other write came between. */
    private void store(PeerRecord record) {
        final String key = config.prefix() + record.name();
        for (int i = 0; i < MAX_TRIES; i++) {
            final Entry entry = client.get(key);
            final PeerRecord present = entry == null ? null : decoded(entry);
            PeerDirectory.requireNewer(record, present);
            if (record.equals(present) && entry.lease() == lease) {
                return;
            }
            final long revision = entry == null ? 0 : entry.revision();
            if (client.putIf(key, revision, record.encode(), lease) != EtcdClient.CONFLICT) {
                return;
            }
        }
        throw new ExchangeException(
                Kind.UNAVAILABLE,
                "others wrote " + key + " each of " + MAX_TRIES + " times; is the name unique?");
    }

    /** Null if the value is no record of that name. */
    private PeerRecord decoded(Entry entry) {
        try {
            final PeerRecord record = PeerRecord.decode(entry.value());
            if (record.name().equals(name(entry.key()))) {
                return record;
            }
        } catch (ExchangeException e) {
            // counted below
        }
        countMalformed();
        return null;
    }

    @Override
    public synchronized void withdraw(String name) {
        final PeerRecord record = own.remove(name);
        if (record != null) {
            undo(record);
        }
        if (!undone.containsKey(name)) {
            return;
        }
        try {
            delete(name);
        } catch (RegistryException e) {
            throw unavailable(e); // the renewing thread tries again
        }
    }

    /** Has a record deleted, and older ones of its name. */
    private void undo(PeerRecord record) {
        undone.merge(record.name(), record, (a, b) -> b.isNewerThan(a) ? b : a);
    }

    private void undoAllBut(String nameOrNull) {
        for (String each : List.copyOf(undone.keySet())) {
            if (!each.equals(nameOrNull)) {
                delete(each);
            }
        }
    }

    private void delete(String name) {
        final String key = config.prefix() + name;
        final PeerRecord kept = own.get(name); // which one that may be there was to replace
        final Entry entry = client.get(key);
        final PeerRecord present = entry == null ? null : decoded(entry);
        final boolean isUndone = // what is newer is another's by now
                present != null && !present.equals(kept) && !present.isNewerThan(undone.get(name));
        if (isUndone) {
            client.deleteIf(key, entry.revision());
        }
        if (kept != null && (isUndone || entry == null)) {
            isWhole = false; // the own one may have been replaced by it
        }
        undone.remove(name);
    }

    private void requireOpen() {
        if (closed) {
            throw new ExchangeException(Kind.UNAVAILABLE, "the exchange is closed");
        }
    }

    /**
     * Renewals and watches that failed because etcd could not be reached.
     *
     * @return count since the start
     */
    public long unreachable() {
        return unreachable.get();
    }

    // -- the renewing thread

    private void renewAll() {
        final long everyMs = config.ttl().toMillis() / RENEWALS_PER_TTL;
        while (!closed) {
            try {
                renew();
                pause(everyMs);
            } catch (RuntimeException | Error e) { // of this renewal: the next one may succeed
                unreachable.incrementAndGet();
                client.stopWatching(); // it may hang on the same connection trouble
                pause(Math.min(RETRY_MS, everyMs));
            }
        }
    }

    synchronized void renew() {
        if (closed) {
            return;
        }
        undoAllBut(null); // before own ones are stored, which what is undone may be newer than
        if (lease == 0 && own.all().isEmpty()) {
            client.get(config.prefix()); // only to notice if no server answers
            return;
        }
        keepLease();
        if (!isWhole || !own.all().stream().allMatch(this::isSeen)) {
            storeOwn();
        }
    }

    /** One that is not was overwritten, deleted or lost with the data of a server. */
    private boolean isSeen(PeerRecord record) {
        return record.equals(view.get(record.name()));
    }

    /** Takes another lease where there is none or it has ended. */
    private void keepLease() {
        if (lease == 0 || !client.keepAlive(lease)) {
            lease = client.grant();
            isWhole = false;
        }
    }

    private void storeOwn() {
        isWhole = false;
        for (PeerRecord record : own.all()) {
            try {
                store(record);
            } catch (ExchangeException e) {
                if (e.kind() != Kind.STALE) {
                    throw e;
                }
                if (!undone.containsKey(record.name())) { // else by what is to be deleted
                    own.remove(record.name()); // superseded
                }
            }
        }
        isWhole = true;
    }

    private void pause(long ms) {
        try {
            Thread.sleep(ms);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt(); // closing
        }
    }

    // -- the watching thread

    private void watchAll() {
        while (!closed) {
            try {
                watchOnce();
            } catch (RuntimeException | Error e) { // what cannot be used, too: all is read anew
                unreachable.incrementAndGet();
            }
            pause(closed ? 0 : RETRY_MS);
        }
    }

    /** Reads all, and watches until that ends. */
    void watchOnce() {
        client.watch(
                config.prefix(),
                readAll(),
                new EtcdClient.Events() {
                    @Override
                    public void onPut(Entry entry) {
                        apply(entry);
                    }

                    @Override
                    public void onDelete(String key) {
                        removed(name(key));
                    }
                });
    }

    /** Brings the view up to date; returns the moment at which it is. */
    private EtcdClient.Position readAll() {
        final EtcdClient.Range range = client.range(config.prefix(), MAX_KEYS);
        final Map<String, PeerRecord> present = new HashMap<>();
        for (Entry entry : range.entries()) {
            final PeerRecord record = decoded(entry);
            if (record != null) {
                present.put(record.name(), record);
            }
        }
        view.goneFrom(SOURCE, name -> !replaces(present.get(name), view.get(name)));
        withoutRoom.clear();
        present.values().forEach(this::offer);
        return range.at();
    }

    /** Not an older one: that is there again, after the known one was withdrawn unseen. */
    private static boolean replaces(PeerRecord presentOrNull, PeerRecord known) {
        return presentOrNull != null
                && (presentOrNull.equals(known) || presentOrNull.isNewerThan(known));
    }

    private void apply(Entry entry) {
        final PeerRecord record = decoded(entry);
        if (record == null) {
            removed(name(entry.key())); // it was overwritten
        } else {
            offer(record);
        }
    }

    private void offer(PeerRecord record) {
        final boolean isTaken = view.offer(record, SOURCE, System.nanoTime());
        if (!isTaken && view.get(record.name()) == null && withoutRoom.size() < MAX_KEYS) {
            withoutRoom.add(record.name());
        }
    }

    /** Forgets a record, and takes one that there was no room for. */
    private void removed(String name) {
        withoutRoom.remove(name);
        if (view.get(name) == null) {
            return;
        }
        view.removed(name, SOURCE);
        while (!withoutRoom.isEmpty()) {
            final String next = withoutRoom.removeFirst();
            final Entry entry = client.get(config.prefix() + next);
            final PeerRecord record = entry == null ? null : decoded(entry);
            if (record != null && view.offer(record, SOURCE, System.nanoTime())) {
                return;
            }
        }
    }

    private String name(String key) {
        return key.substring(config.prefix().length());
    }

    @Override
    public void close() {
        final long ended;
        synchronized (this) {
            if (closed) {
                return;
            }
            closed = true;
            ended = lease;
        }
        view.close();
        renewer.interrupt();
        watcher.interrupt();
        try {
            if (ended != 0) {
                client.revoke(ended);
            }
            client.stopWatching();
        } catch (RegistryException e) {
            unreachable.incrementAndGet(); // the lease ends by itself
        }
        join(renewer);
        join(watcher);
        client.close();
    }

    private static void join(Thread thread) {
        try {
            thread.join(CLOSE_PATIENCE_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
