package io.kvasir.nixl.exchange;

import io.kvasir.nixl.exchange.ExchangeException.Kind;
import io.kvasir.nixl.exchange.MetadataExchange.Change;
import io.kvasir.nixl.exchange.MetadataExchange.Listener;
import io.kvasir.nixl.exchange.MetadataExchange.Watch;

import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.function.Predicate;

/**
 * The cards that an exchange knows, and who is told of them: keeps the newest of each name. For
 * implementations of {@link MetadataExchange}. Any thread; one lock.
 */
public final class PeerDirectory {
    /** A card, where it came from, and when it was last heard of. */
    private static final class Known {
        private PeerRecord card;
        private Object source;
        private long heardNs;
    }

    /** Equal to itself alone: a listener may watch twice. */
    private static final class Registration {
        private final String name;
        private final Listener listener;

        private Registration(String name, Listener listener) {
            this.name = name;
            this.listener = listener;
        }
    }

    private final Map<String, Known> cards = new HashMap<>();
    private final List<Registration> registrations = new ArrayList<>();
    private long refused;

    /**
     * Hears a card. One that is older than the known one, or beyond {@value
     * MetadataExchange#MAX_CARDS}, is ignored.
     *
     * @param card what was heard
     * @param source who said it, compared by {@link Object#equals}; may be the same for all
     * @param nowNs when
     * @return false if it was ignored
     */
    public synchronized boolean offer(PeerRecord card, Object source, long nowNs) {
        final Known known = cards.get(card.name());
        if (known == null) {
            if (cards.size() >= MetadataExchange.MAX_CARDS) {
                refused++;
                return false;
            }
            final Known first = new Known();
            first.card = card;
            first.source = source;
            first.heardNs = nowNs;
            cards.put(card.name(), first);
            tell(Change.UP, card);
            return true;
        }
        final boolean same = card.equals(known.card);
        if (!same && !card.isNewerThan(known.card)) {
            return false;
        }
        known.source = source;
        known.heardNs = nowNs;
        if (!same) {
            known.card = card;
            tell(Change.CHANGED, card);
        }
        return true;
    }

    /**
     * Forgets a card.
     *
     * @param name its name; unknown ones are ignored
     * @param source only if the card came from there
     */
    public synchronized void gone(String name, Object source) {
        final Known known = cards.get(name);
        if (known != null && known.source.equals(source)) {
            cards.remove(name);
            tell(Change.GONE, known.card);
        }
    }

    /**
     * Forgets cards of one source.
     *
     * @param source where they came from
     * @param which by their names
     */
    public synchronized void goneFrom(Object source, Predicate<String> which) {
        final List<String> names =
                cards.keySet().stream().filter(which).toList(); // a copy: the map changes
        names.forEach(name -> gone(name, source));
    }

    /**
     * Forgets cards that were not heard of any more.
     *
     * @param source where they came from
     * @param beforeNs those last heard of before it
     */
    public synchronized void expire(Object source, long beforeNs) {
        goneFrom(source, name -> cards.get(name).heardNs - beforeNs < 0);
    }

    /**
     * Takes all cards for heard of now: after a time in which none could be heard.
     *
     * @param nowNs now
     */
    public synchronized void refresh(long nowNs) {
        cards.values().forEach(known -> known.heardNs = nowNs);
    }

    /**
     * A card that is known.
     *
     * @param name its name
     * @return null if there is none
     */
    public synchronized PeerRecord get(String name) {
        final Known known = cards.get(name);
        return known == null ? null : known.card;
    }

    /**
     * Refuses a card that must not be published.
     *
     * @param card to be published
     * @param present of its name; null if there is none
     * @throws ExchangeException of kind {@code STALE}
     */
    public static void requireNewer(PeerRecord card, PeerRecord present) {
        if (present != null && !card.equals(present) && !card.isNewerThan(present)) {
            throw new ExchangeException(
                    Kind.STALE,
                    card
                            + " cannot replace "
                            + present
                            + ": a start takes a larger incarnation, a registration a larger"
                            + " generation");
        }
    }

    /**
     * As {@link MetadataExchange#find}.
     *
     * @param name its name
     * @param patience how long at most
     */
    public synchronized PeerRecord find(String name, Duration patience) {
        final long deadlineNs = System.nanoTime() + patience.toNanos();
        while (true) {
            final PeerRecord card = get(name);
            if (card != null) {
                return card;
            }
            final long leftNs = deadlineNs - System.nanoTime();
            if (leftNs <= 0) {
                throw new ExchangeException(
                        Kind.NOT_FOUND,
                        "no card of "
                                + name
                                + " within "
                                + patience.toMillis()
                                + " ms; known are "
                                + cards.size()
                                + " others. Does it run, and publish here?");
            }
            try {
                wait(leftNs / 1_000_000, (int) (leftNs % 1_000_000));
            } catch (InterruptedException e) {
                Thread.currentThread().interrupt();
                throw new ExchangeException(
                        Kind.UNAVAILABLE, "interrupted while looking for " + name, e);
            }
        }
    }

    /**
     * As {@link MetadataExchange#watch}.
     *
     * @param name null for all
     * @param listener told
     */
    public synchronized Watch watch(String name, Listener listener) {
        if (registrations.size() >= MetadataExchange.MAX_CARDS) {
            throw new ExchangeException(
                    Kind.CAPACITY,
                    registrations.size() + " watches, the limit is " + MetadataExchange.MAX_CARDS);
        }
        final Registration registration = new Registration(name, listener);
        registrations.add(registration);
        for (Known known : cards.values()) {
            if (name == null || name.equals(known.card.name())) {
                listener.onCard(Change.UP, known.card);
            }
        }
        return () -> remove(registration);
    }

    private synchronized void remove(Registration registration) {
        registrations.remove(registration);
    }

    private void tell(Change change, PeerRecord card) {
        for (Registration registration : registrations) {
            if (registration.name == null || Objects.equals(registration.name, card.name())) {
                registration.listener.onCard(change, card);
            }
        }
        notifyAll();
    }

    /**
     * Cards that were ignored because {@value MetadataExchange#MAX_CARDS} are known.
     *
     * @return since the start
     */
    public synchronized long refused() {
        return refused;
    }
}
