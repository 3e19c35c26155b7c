package io.kvasir.services.slots;

import io.kvasir.router.replica.ReplicaFleet;
import io.kvasir.router.replica.ReplicaWorker;
import io.kvasir.services.http.GroupKey;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.HashMap;
import java.util.HexFormat;
import java.util.Map;

/**
 * The ranks of a tracker's workers as other trackers call them: by model, routing group, block
 * size, worker and rank, all in one name. So a worker whose block size differs is another one. Any
 * thread.
 */
final class SlotFleet implements ReplicaFleet {
    private static final int LONGEST_PART = 256;

    private final Map<String, Slot> slots = new HashMap<>(); // by name; guarded by this
    private final Map<Integer, Tenant> tenants = new HashMap<>(); // by slot; guarded by this
    private Object version = new Object(); // guarded by this

    /** The worker that has a slot. */
    private record Tenant(ReplicaWorker worker, int slotGeneration) {}

    private static ReplicaWorker named(GroupKey key, int blockSize, long worker, long dpRank) {
        final String name =
                part(key.model())
                        + part(key.routingGroup())
                        + blockSize
                        + "/"
                        + Long.toUnsignedString(worker)
                        + "/"
                        + dpRank;
        return new ReplicaWorker(worker, name, 0);
    }

    /**
     * With its length, so that no two lists of parts look the same. Of a long one there is its
     * digest, so that the 256 workers of a message fit in it whatever they are called.
     */
    private static String part(String text) {
        return text.length() + ":" + (text.length() > LONGEST_PART ? sha256(text) : text) + "/";
    }

    private static String sha256(String text) {
        try {
            return HexFormat.of()
                    .formatHex(
                            MessageDigest.getInstance("SHA-256")
                                    .digest(text.getBytes(StandardCharsets.UTF_8)));
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every JDK has SHA-256", e);
        }
    }

    synchronized void add(
            GroupKey key, int blockSize, long worker, long dpRank, int slot, int slotGeneration) {
        final ReplicaWorker named = named(key, blockSize, worker, dpRank);
        slots.put(named.name(), new Slot(slot, slotGeneration, false));
        tenants.put(slot, new Tenant(named, slotGeneration));
        version = new Object();
    }

    synchronized void remove(int slot) {
        final Tenant gone = tenants.remove(slot);
        if (gone != null) {
            slots.remove(gone.worker().name());
            version = new Object();
        }
    }

    @Override
    public synchronized Slot find(ReplicaWorker worker) {
        return worker.dpRank() == 0 ? slots.get(worker.name()) : null;
    }

    @Override
    public synchronized ReplicaWorker at(int slot, int slotGeneration) {
        final Tenant tenant = tenants.get(slot);
        return tenant == null || tenant.slotGeneration() != slotGeneration ? null : tenant.worker();
    }

    @Override
    public synchronized Object version() {
        return version;
    }
}
