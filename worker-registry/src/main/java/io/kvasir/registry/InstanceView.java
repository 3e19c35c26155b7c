package io.kvasir.registry;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.LongSupplier;

/**
 * The instances of a namespace as their registrations describe them. Of each key the greatest
 * generation counts: an older document that arrives late changes nothing. A document that cannot be
 * read changes nothing either; its key is reported once, until it can be used or is no more. More
 * than three of one view are reported together.
 *
 * <p>One thread at a time feeds it; any thread may look.
 */
public final class InstanceView implements LeasedStore.Watcher {
    /** Notified of what happens, on the thread that feeds the view; must not block. */
    public interface Listener {
        /** Instances are others now. */
        void changed();

        /** A document cannot be used; of many that are found at once there is one call. */
        void refused(String cause);

        /**
         * The store does not answer; the instances stay as they were. Once for each reason of an
         * outage, and for a few reasons at most.
         */
        void lost(String cause);

        /**
         * The store answers: the instances are those that it holds.
         *
         * @param away for how long it did not answer; zero if it did
         */
        void found(Duration away);
    }

    private static final int NAMED_REFUSALS = 3;

    private final Listener listener;
    private final Map<String, Registration> instances = new TreeMap<>(); // guarded by this
    private final Map<String, byte[]> last =
            new HashMap<>(); // digests of documents seen; guarded by this
    private final Set<String> unusable = new HashSet<>(); // keys; of the feeding thread
    private final Outage outage; // of the feeding thread

    /** An empty view. */
    public InstanceView(Listener listener) {
        this(listener, System::nanoTime);
    }

    InstanceView(Listener listener, LongSupplier nanoTime) {
        this.listener = listener;
        outage = new Outage(nanoTime);
    }

    /** What is known, by key. */
    public synchronized List<Registration> instances() {
        return List.copyOf(instances.values());
    }

    @Override
    public void view(List<Stored> all) {
        boolean changed;
        synchronized (this) {
            final Set<String> keys = new HashSet<>();
            all.forEach(stored -> keys.add(stored.key()));
            changed = instances.keySet().retainAll(keys);
            last.keySet().retainAll(keys);
            unusable.retainAll(keys);
        }
        final List<String> refusals = new ArrayList<>();
        for (Stored stored : all) {
            // the store is the truth: what it holds replaces a newer one that it has lost
            changed |= take(stored, false, refusals::add);
        }
        refuse(refusals);
        listener.found(outage.end());
        if (changed) {
            listener.changed();
        }
    }

    /** Others may have written any number of keys that are no registrations: few are named. */
    private void refuse(List<String> refusals) {
        if (refusals.size() <= NAMED_REFUSALS) {
            refusals.forEach(listener::refused);
        } else {
            listener.refused(
                    refusals.size()
                            + " keys cannot be used, the first of them: "
                            + String.join("; ", refusals.subList(0, NAMED_REFUSALS)));
        }
    }

    @Override
    public void put(Stored stored) {
        if (take(stored, true, listener::refused)) {
            listener.changed();
        }
    }

    /** True if the instances are others now. */
    private boolean take(Stored stored, boolean fenced, Consumer<String> refused) {
        final byte[] digest = digest(stored);
        final boolean isRepeated;
        synchronized (this) {
            isRepeated = Arrays.equals(last.put(stored.key(), digest), digest);
        }
        if (isRepeated && fenced) {
            return false; // renewed
        }
        final Registration registration;
        try {
            registration = decoded(stored);
        } catch (RegistryException e) {
            if (unusable.add(stored.key())) {
                refused.accept("key " + stored.key() + ": " + e.getMessage());
            }
            return false;
        }
        unusable.remove(stored.key());
        synchronized (this) {
            final Registration before = instances.get(stored.key());
            if (fenced && before != null && registration.generation() < before.generation()) {
                return false;
            }
            instances.put(stored.key(), registration);
            return !registration.equals(before);
        }
    }

    /** What is no registration is not kept: others may have written much of it. */
    private static byte[] digest(Stored stored) {
        final String unread = stored.unreadOrNull();
        try {
            return MessageDigest.getInstance("SHA-256")
                    .digest(
                            unread == null
                                    ? stored.value()
                                    : unread.getBytes(StandardCharsets.UTF_8));
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every JVM has SHA-256", e);
        }
    }

    private static Registration decoded(Stored stored) {
        if (stored.unreadOrNull() != null) {
            throw new RegistryException(RegistryException.Kind.MALFORMED, stored.unreadOrNull());
        }
        final Registration registration = Registration.decode(stored.value());
        if (!registration.id().key().equals(stored.key())) {
            throw new RegistryException(
                    RegistryException.Kind.MALFORMED,
                    "it names another instance, " + registration.id());
        }
        return registration;
    }

    @Override
    public void deleted(String key) {
        final boolean known;
        synchronized (this) {
            last.remove(key);
            unusable.remove(key);
            known = instances.remove(key) != null;
        }
        if (known) {
            listener.changed();
        }
    }

    @Override
    public void lost(String cause) {
        if (outage.isNews(cause)) {
            listener.lost(cause);
        }
    }
}
