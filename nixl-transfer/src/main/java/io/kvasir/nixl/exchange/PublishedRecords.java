package io.kvasir.nixl.exchange;

import io.kvasir.nixl.exchange.ExchangeException.Kind;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** The cards that an exchange publishes. For implementations; any thread. */
public final class PublishedRecords {
    private final Map<String, PeerRecord> cards = new LinkedHashMap<>();

    /**
     * Refuses a card that cannot be published here.
     *
     * @param card to be published
     * @throws ExchangeException of kind {@code STALE} or {@code CAPACITY}
     */
    public synchronized void check(PeerRecord card) {
        final PeerRecord present = cards.get(card.name());
        PeerDirectory.requireNewer(card, present);
        if (present == null && cards.size() >= MetadataExchange.MAX_OWN) {
            throw new ExchangeException(
                    Kind.CAPACITY,
                    cards.size()
                            + " cards are published here, the limit is "
                            + MetadataExchange.MAX_OWN
                            + "; "
                            + card.name()
                            + " takes another exchange");
        }
    }

    /**
     * Keeps a card instead of an older one of its name.
     *
     * @param card checked
     * @return false if it was kept already
     */
    public synchronized boolean put(PeerRecord card) {
        return !card.equals(cards.put(card.name(), card));
    }

    /**
     * Takes a card back.
     *
     * @param name its name
     * @return null if it was not kept
     */
    public synchronized PeerRecord remove(String name) {
        return cards.remove(name);
    }

    /**
     * Takes a card back if another one supersedes it.
     *
     * @param other of the same name
     * @return true if it did
     */
    public synchronized boolean removeIfOlderThan(PeerRecord other) {
        final PeerRecord own = cards.get(other.name());
        return own != null && other.isNewerThan(own) && cards.remove(own.name(), own);
    }

    /**
     * All of them.
     *
     * @return a copy
     */
    public synchronized List<PeerRecord> all() {
        return List.copyOf(cards.values());
    }
}
