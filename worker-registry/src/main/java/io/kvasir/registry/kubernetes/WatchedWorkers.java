package io.kvasir.registry.kubernetes;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.registry.LeasedStore;
import io.kvasir.registry.Stored;

import java.time.Clock;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;

/**
 * Which registrations hold, of the resources that a watch reports. A lease ends where no renewal
 * was seen for its duration, by this process' own clock and while the API server answers: clocks of
 * workers need not agree with this one, and an outage ends no lease. A watch that breaks is none
 * while all can be listed. Only what is seen in a list for the first time is judged by the time
 * that it says.
 *
 * <p>A lease that is due ends with the next list of all, which shows whether a renewal was missed.
 * The watch's thread reports; any thread may ask.
 */
final class WatchedWorkers implements ResourceWatch.Listener {
    private static final long FOREVER = Long.MAX_VALUE;

    /**
     * A resource.
     *
     * @param renewTime as it says
     * @param sinceNs when that was seen first
     * @param durationNs of its lease
     * @param hasEnded its lease
     */
    private record Seen(
            String uid,
            Stored stored,
            String renewTime,
            String podUid,
            long sinceNs,
            long durationNs,
            boolean hasEnded) {
        boolean isDue(long nowNs) {
            return durationNs != FOREVER && nowNs - sinceNs > durationNs;
        }

        boolean isRenewalOf(Seen before) {
            return !uid.equals(before.uid) || !renewTime.equals(before.renewTime);
        }

        Seen since(long ns, boolean ended) {
            return new Seen(uid, stored, renewTime, podUid, ns, durationNs, ended);
        }
    }

    private final String prefix;
    private final LeasedStore.Watcher watcher;
    private final Clock clock;
    private final LongSupplier nanoTime;
    private final Runnable onOwner;
    private Map<String, Seen> all = new HashMap<>(); // by name; guarded by this
    private boolean isUnlisted; // of the watch's thread

    /**
     * @param prefix of keys that count
     * @param watcher gets what holds, on the watch's thread
     * @param clock for what is seen first
     * @param nanoTime for what is silent
     * @param onOwner runs after another pod has become the owner of something, on that thread; not
     *     for a view
     */
    WatchedWorkers(
            String prefix,
            LeasedStore.Watcher watcher,
            Clock clock,
            LongSupplier nanoTime,
            Runnable onOwner) {
        this.prefix = prefix;
        this.watcher = watcher;
        this.clock = clock;
        this.nanoTime = nanoTime;
        this.onOwner = onOwner;
    }

    @Override
    public void view(List<JsonNode> objects) {
        final long nowNs = nanoTime.getAsLong();
        final Map<String, Seen> next = new HashMap<>();
        final List<Stored> holding = new ArrayList<>();
        synchronized (this) {
            for (JsonNode object : objects) {
                final WorkerResource resource = new WorkerResource(object);
                if (resource.key().startsWith(prefix)) {
                    final Seen seen = listed(resource, nowNs);
                    next.put(resource.name(), seen);
                    if (!seen.hasEnded) {
                        holding.add(seen.stored);
                    }
                }
            }
            all = next;
        }
        isUnlisted = false;
        watcher.view(holding);
    }

    private Seen listed(WorkerResource resource, long nowNs) {
        final Seen now = seen(resource, nowNs);
        final Seen before = all.get(resource.name());
        if (before == null) {
            return now.since(
                    nowNs - Math.min(resource.age(clock.instant()).toNanos(), now.durationNs),
                    resource.hasEnded(clock.instant()));
        }
        if (now.isRenewalOf(before)) {
            return now;
        }
        if (isUnlisted && !before.hasEnded) {
            return now; // it could not renew
        }
        return now.since(before.sinceNs, before.hasEnded || before.isDue(nowNs));
    }

    private static Seen seen(WorkerResource resource, long nowNs) {
        return new Seen(
                resource.uid(),
                resource.stored(),
                resource.renewTime(),
                resource.podUid(),
                nowNs,
                resource.leaseOrNull() == null ? FOREVER : resource.leaseOrNull().toNanos(),
                false);
    }

    @Override
    public void changed(JsonNode object) {
        final WorkerResource resource = new WorkerResource(object);
        if (!resource.key().startsWith(prefix)) {
            deleted(object); // it may have been another's before
            return;
        }
        Seen now = seen(resource, nanoTime.getAsLong());
        final Seen before;
        synchronized (this) {
            before = all.get(resource.name());
            if (before != null && !now.isRenewalOf(before)) {
                now = now.since(before.sinceNs, before.hasEnded);
            }
            all.put(resource.name(), now);
        }
        if (before != null && !before.hasEnded && !before.stored.key().equals(now.stored.key())) {
            watcher.deleted(before.stored.key()); // it names another instance now
        }
        if (!now.hasEnded) {
            watcher.put(now.stored);
        }
        if (before != null && !before.podUid.equals(now.podUid)) {
            onOwner.run();
        }
    }

    @Override
    public void deleted(JsonNode object) {
        final Seen before;
        synchronized (this) {
            before = all.remove(new WorkerResource(object).name());
        }
        if (before != null && !before.hasEnded) {
            watcher.deleted(before.stored.key());
        }
    }

    @Override
    public void lost(String cause) {
        watcher.lost(cause);
    }

    @Override
    public void unlisted() {
        isUnlisted = true;
    }

    /** Whether a lease that holds was not renewed in time, as far as is known. */
    synchronized boolean isOneDue() {
        final long nowNs = nanoTime.getAsLong();
        return all.values().stream().anyMatch(seen -> !seen.hasEnded && seen.isDue(nowNs));
    }

    /** UID of the pod that owns a key's resource; empty where that is not known. */
    synchronized String podUid(String key) {
        final Seen seen = all.get(WorkerResource.name(key));
        return seen == null ? "" : seen.podUid;
    }
}
