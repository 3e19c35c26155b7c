package io.kvasir.nixl.exchange;

import io.kvasir.nixl.exchange.ExchangeException.Kind;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;

/** The records that an exchange publishes. For implementations; any thread. */
public final class PublishedRecords {
    private final Map<String, PeerRecord> records = new LinkedHashMap<>();

    /**
     * Refuses a record that cannot be published here.
     *
     * @param record to be published
     * @throws ExchangeException of kind {@code STALE} or {@code CAPACITY}
     */
    public synchronized void check(PeerRecord record) {
        final PeerRecord present = records.get(Objects.requireNonNull(record, "record").name());
        PeerDirectory.requireNewer(record, present);
        if (present == null && records.size() >= MetadataExchange.MAX_OWN) {
            throw new ExchangeException(
                    Kind.CAPACITY,
                    records.size()
                            + " records are published here, the limit is "
                            + MetadataExchange.MAX_OWN
                            + "; "
                            + record.name()
                            + " takes another exchange");
        }
    }

    /**
     * Keeps a record instead of an older one of its name.
     *
     * @param record checked
     * @return false if it was kept already
     */
    public synchronized boolean put(PeerRecord record) {
        return !record.equals(records.put(record.name(), record));
    }

    /**
     * Takes a record back.
     *
     * @param name its name
     * @return null if it was not kept
     */
    public synchronized PeerRecord remove(String name) {
        return records.remove(name);
    }

    /**
     * A record that is kept.
     *
     * @param name its name
     * @return null if there is none
     */
    public synchronized PeerRecord get(String name) {
        return records.get(name);
    }

    /**
     * Takes a record back if another one supersedes it.
     *
     * @param other of the same name
     * @return true if it did
     */
    public synchronized boolean removeIfOlderThan(PeerRecord other) {
        final PeerRecord own = records.get(other.name());
        return own != null && other.isNewerThan(own) && records.remove(own.name(), own);
    }

    /**
     * All of them.
     *
     * @return a copy
     */
    public synchronized List<PeerRecord> all() {
        return List.copyOf(records.values());
    }
}
