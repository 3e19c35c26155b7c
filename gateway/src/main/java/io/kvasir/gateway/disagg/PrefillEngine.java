package io.kvasir.gateway.disagg;

import io.kvasir.protocol.handoff.KvTransferParams;

import java.util.LinkedHashSet;
import java.util.Set;

/** An engine that holds blocks of prefills, and how far the contact with it is. One thread. */
final class PrefillEngine {
    private static final long FIRST_PAUSE_NS = 100_000_000L;
    private static final long LONGEST_PAUSE_NS = 5_000_000_000L;

    /** How far the contact is. */
    enum Contact {
        /** None, or lost: to be asked when it is due. */
        NONE,
        /** Its side channel is being asked. */
        ASKED,
        /** It can be notified. */
        CONNECTED
    }

    private final String id;
    private final KvTransferParams params;
    private final Set<WatchedPrefill> prefills = new LinkedHashSet<>(); // in order of arrival
    private Contact contact = Contact.NONE;
    private LeaseReason failure = LeaseReason.HANDSHAKE_FAILED;
    private long dueNs;
    private long pauseNs = FIRST_PAUSE_NS;
    private long usedNs;

    /**
     * Makes one that is due to be asked.
     *
     * @param id its identifier, new with every start of the engine
     * @param params of a prefill of it: they say where to ask
     * @param nowNs current time
     */
    PrefillEngine(String id, KvTransferParams params, long nowNs) {
        this.id = id;
        this.params = params;
        this.dueNs = nowNs;
        this.usedNs = nowNs;
    }

    String id() {
        return id;
    }

    KvTransferParams params() {
        return params;
    }

    /** Prefills whose blocks it holds, those of the longest standing first. */
    Set<WatchedPrefill> prefills() {
        return prefills;
    }

    void add(WatchedPrefill prefill, long nowNs) {
        prefills.add(prefill);
        usedNs = nowNs;
    }

    boolean isConnected() {
        return contact == Contact.CONNECTED;
    }

    /** Whether its side channel is to be asked now. */
    boolean isDue(long nowNs) {
        return contact == Contact.NONE && !prefills.isEmpty() && nowNs - dueNs >= 0;
    }

    void asked() {
        contact = Contact.ASKED;
    }

    void connected() {
        contact = Contact.CONNECTED;
        failure = LeaseReason.ENGINE_LOST; // what it would be from now on
    }

    /** A message was sent to it: a contact alone proves nothing. */
    void reached() {
        pauseNs = FIRST_PAUSE_NS;
    }

    /**
     * The contact is lost, or the attempt has failed: the next attempt is due after a pause.
     *
     * @return whether this is the first time since it was reached
     */
    boolean failed(LeaseReason why, long nowNs) {
        final boolean first = pauseNs == FIRST_PAUSE_NS;
        if (failure != LeaseReason.ENGINE_LOST) {
            failure = why;
        }
        contact = Contact.NONE;
        dueNs = nowNs + pauseNs;
        pauseNs = Math.min(2 * pauseNs, LONGEST_PAUSE_NS);
        return first;
    }

    /** Why its blocks are left to their leases, should the contact not come about. */
    LeaseReason failure() {
        return failure;
    }

    /** Whether nothing of it has been held for a time, and nothing is under way. */
    boolean isUnused(long nowNs, long afterNs) {
        return contact != Contact.ASKED && prefills.isEmpty() && nowNs - usedNs >= afterNs;
    }

    /** Whether another engine is at the same address. */
    boolean sharesAddressWith(PrefillEngine other) {
        return params.remoteHost().equals(other.params.remoteHost())
                && params.remotePort().equals(other.params.remotePort());
    }
}
