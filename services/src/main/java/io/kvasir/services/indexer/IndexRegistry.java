package io.kvasir.services.indexer;

import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.memory.ClosedException;
import io.kvasir.pipeline.source.EventSource;
import io.kvasir.services.http.GroupKey;
import io.kvasir.services.http.ServiceException;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;

/**
 * The index groups and the instances that feed them. Changes are ordered by a lock; looking a group
 * up takes none.
 *
 * <p>A group begins with its first instance, registered or in a peer's dump, and ends with its
 * last.
 */
public final class IndexRegistry implements AutoCloseable {
    private final PrefixIndexConfig sizes;
    private final int maxGroups;
    private final Map<GroupKey, IndexGroup> groups = new ConcurrentSkipListMap<>();
    private final Map<Long, Instance> instances = new TreeMap<>(Long::compareUnsigned);
    private boolean closed;

    /**
     * Makes an empty registry.
     *
     * @param sizes of each index
     * @param maxGroups indexes at most
     */
    public IndexRegistry(PrefixIndexConfig sizes, int maxGroups) {
        this.sizes = sizes;
        this.maxGroups = maxGroups;
    }

    /**
     * Registers a rank of an instance and opens its event source.
     *
     * @param wanted what is registered
     * @throws ServiceException 400 for what cannot be, 409 for what is registered in another way,
     *     503 when there is no room
     */
    public synchronized void register(Registration wanted) throws ServiceException {
        checkOpen();
        final Instance known = instances.get(wanted.instance());
        checkFree(wanted, known);
        final IndexGroup existing = groups.get(wanted.key());
        final IndexGroup group =
                existing == null ? newGroup(wanted.key(), wanted.blockSize()) : existing;
        checkBlockSize(group, wanted.blockSize());
        try {
            final Tenant recovered = known == null ? null : known.recovered.get(wanted.dpRank());
            final Tenant tenant =
                    recovered == null ? group.admit(wanted.instance(), wanted.dpRank()) : recovered;
            final Listener listener = open(group, tenant, wanted, recovered != null);
            final Instance instance =
                    instances.computeIfAbsent(wanted.instance(), id -> new Instance(id, group));
            instance.recovered.remove(wanted.dpRank());
            instance.listeners.put(wanted.dpRank(), listener);
        } catch (ServiceException | RuntimeException | Error e) {
            if (existing == null) {
                end(group);
            }
            throw e;
        }
    }

    private static void checkFree(Registration wanted, Instance known) throws ServiceException {
        if (known == null) {
            return;
        }
        final String id = Long.toUnsignedString(wanted.instance());
        if (!known.group.key.equals(wanted.key())) {
            throw new ServiceException(
                    409,
                    "instance " + id + " is already registered for " + known.group.key.words());
        }
        if (known.listeners.containsKey(wanted.dpRank())) {
            throw new ServiceException(
                    409, "instance " + id + " dp_rank " + wanted.dpRank() + " already registered");
        }
    }

    private static void checkBlockSize(IndexGroup group, int requested) throws ServiceException {
        if (group.blockSize != requested) {
            throw new ServiceException(
                    409,
                    "block_size mismatch for "
                            + group.key.words()
                            + ": existing="
                            + group.blockSize
                            + ", requested="
                            + requested);
        }
    }

    private IndexGroup newGroup(GroupKey key, int blockSize) throws ServiceException {
        if (blockSize < 1) {
            throw new ServiceException(400, "block_size must be greater than 0");
        }
        if (groups.size() >= maxGroups) {
            throw ServiceException.noRoom(
                    "there are as many models and routing groups as may be ("
                            + maxGroups
                            + "; --max-models)");
        }
        final IndexGroup group = new IndexGroup(key, blockSize, sizes);
        groups.put(key, group);
        return group;
    }

    private static Listener open(
            IndexGroup group, Tenant tenant, Registration wanted, boolean isRecovered)
            throws ServiceException {
        final EventSource source;
        try {
            source =
                    isRecovered
                            ? group.openRecovered(
                                    tenant, wanted.endpoint(), wanted.replayEndpoint())
                            : group.open(tenant, wanted.endpoint(), wanted.replayEndpoint());
        } catch (RuntimeException | Error e) {
            if (!isRecovered) {
                group.dismiss(tenant);
            }
            if (e instanceof IllegalArgumentException) {
                throw new ServiceException(400, e.getMessage());
            }
            throw e;
        }
        return new Listener(tenant, wanted.endpoint(), source);
    }

    /**
     * Takes an instance out, with all of its ranks and what they hold.
     *
     * @param id of the instance
     * @param model that it is registered for
     * @param routingGroup null where it does not matter
     * @throws ServiceException 404 if it is not registered, or for another model or group
     */
    public synchronized void unregister(long id, String model, String routingGroup)
            throws ServiceException {
        checkOpen();
        final Instance instance = instances.get(id);
        if (instance == null) {
            throw new ServiceException(404, "instance " + Long.toUnsignedString(id) + " not found");
        }
        final GroupKey key = instance.group.key;
        if (!key.model().equals(model)
                || (routingGroup != null && !key.routingGroup().equals(routingGroup))) {
            throw new ServiceException(
                    404,
                    "instance " + Long.toUnsignedString(id) + " is registered for " + key.words());
        }
        instances.remove(id);
        for (Listener listener : instance.listeners.values()) {
            listener.source.close();
            instance.group.dismiss(listener.tenant);
        }
        instance.recovered.values().forEach(instance.group::dismiss);
        if (instances.values().stream().noneMatch(other -> other.group == instance.group)) {
            end(instance.group);
        }
    }

    private void end(IndexGroup group) {
        groups.remove(group.key);
        group.close();
    }

    /**
     * The index of a model and group.
     *
     * @param key model and group
     * @throws ServiceException 404 if there is none
     */
    public IndexGroup group(GroupKey key) throws ServiceException {
        final IndexGroup group = groups.get(key);
        if (group == null) {
            throw new ServiceException(404, "no indexer for " + key.words());
        }
        return group;
    }

    /** All groups, by model and name. */
    List<IndexGroup> groups() {
        return List.copyOf(groups.values());
    }

    /**
     * The slot of a rank that a peer's dump contains, made if need be.
     *
     * @return null when the dump cannot be used for it: another block size, or a rank whose own
     *     engine is followed already
     * @throws ServiceException when there is no room
     */
    synchronized Tenant recover(GroupKey key, int blockSize, long id, int dpRank)
            throws ServiceException {
        checkOpen();
        final IndexGroup existing = groups.get(key);
        if (existing != null && existing.blockSize != blockSize) {
            return null;
        }
        final Instance known = instances.get(id);
        if (known != null
                && (!known.group.key.equals(key) || known.listeners.containsKey(dpRank))) {
            return null;
        }
        final IndexGroup group = existing == null ? newGroup(key, blockSize) : existing;
        if (known != null && known.recovered.containsKey(dpRank)) {
            return known.recovered.get(dpRank);
        }
        final Tenant tenant = group.admit(id, dpRank);
        instances
                .computeIfAbsent(id, other -> new Instance(other, group))
                .recovered
                .put(dpRank, tenant);
        return tenant;
    }

    /** An instance as the list of workers shows it. */
    record View(long id, GroupKey key, int blockSize, List<Listener> listeners) {}

    /** Registered instances by id. */
    synchronized List<View> views() {
        final List<View> views = new ArrayList<>();
        for (Instance instance : instances.values()) {
            if (!instance.listeners.isEmpty()) {
                views.add(
                        new View(
                                instance.id,
                                instance.group.key,
                                instance.group.blockSize,
                                List.copyOf(instance.listeners.values())));
            }
        }
        return views;
    }

    private void checkOpen() {
        if (closed) {
            throw new ClosedException("the indexer");
        }
    }

    @Override
    public synchronized void close() {
        closed = true;
        groups().forEach(this::end);
        instances.clear();
    }
}
