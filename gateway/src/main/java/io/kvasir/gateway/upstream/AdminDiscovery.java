package io.kvasir.gateway.upstream;

import io.kvasir.gateway.config.DiscoveredWorker;

/** The workers that operators add and remove by the admin port. */
public final class AdminDiscovery implements Discovery {
    private volatile Listener listener;

    @Override
    public String source() {
        return "admin";
    }

    @Override
    public void start(Listener to) {
        listener = to;
    }

    /**
     * Adds a worker, or puts it in the place of one of its name.
     *
     * @return false if exactly that one is there already
     * @throws IllegalArgumentException if it cannot be used; the message says why
     */
    public boolean add(DiscoveredWorker worker) {
        return listener.added(worker);
    }

    /** Removes a worker of any source; false if there is none of that name. */
    public boolean remove(String name) {
        return listener.removed(name);
    }

    @Override
    public void reload() {
        // operators say what they have to say
    }

    @Override
    public void close() {
        // nothing runs
    }
}
