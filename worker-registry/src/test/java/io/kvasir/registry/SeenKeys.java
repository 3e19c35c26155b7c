package io.kvasir.registry;

import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentSkipListSet;
import java.util.concurrent.CopyOnWriteArrayList;

/** What a watch has reported: the keys that are there, and each loss of the store. */
public class SeenKeys implements LeasedStore.Watcher {
    /** Keys that are there. */
    public final Set<String> keys = new ConcurrentSkipListSet<>();

    /** Cause of each loss, in their order. */
    public final List<String> losses = new CopyOnWriteArrayList<>();

    @Override
    public void view(List<Stored> all) {
        keys.clear();
        all.forEach(stored -> keys.add(stored.key()));
    }

    @Override
    public void put(Stored stored) {
        keys.add(stored.key());
    }

    @Override
    public void deleted(String key) {
        keys.remove(key);
    }

    @Override
    public void lost(String cause) {
        losses.add(cause);
    }
}
