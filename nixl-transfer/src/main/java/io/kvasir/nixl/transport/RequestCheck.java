package io.kvasir.nixl.transport;

import io.kvasir.nixl.memory.Descriptors;
import io.kvasir.nixl.transport.KvTransportException.Kind;

/**
 * What every transport refuses of the arguments of a request, before it makes one. The end that
 * refuses is named in the message; nothing is allocated where all is well.
 */
public final class RequestCheck {
    private RequestCheck() {}

    /** A request goes between own memory and a peer's. */
    public static void ends(Object end, boolean localIsOwn, boolean remoteIsOwn) {
        if (!localIsOwn || remoteIsOwn) {
            throw invalid(end, "a request goes between a list of own memory and one of a peer's");
        }
    }

    /** Places exist, and each pair has pieces of one length. */
    public static void places(
            Object end,
            Descriptors local,
            int[] localPlaces,
            Descriptors remote,
            int[] remotePlaces,
            int count) {
        if (count < 1 || count > localPlaces.length || count > remotePlaces.length) {
            throw invalid(
                    end,
                    "count="
                            + count
                            + ", places given: local="
                            + localPlaces.length
                            + ", remote="
                            + remotePlaces.length);
        }
        if (!areInside(localPlaces, count, local.count())
                || !areInside(remotePlaces, count, remote.count())
                || !haveSameLengths(local, localPlaces, remote, remotePlaces, count)) {
            refuse(end, local, localPlaces, remote, remotePlaces, count);
        }
    }

    private static boolean areInside(int[] places, int count, int end) {
        for (int i = 0; i < count; i++) {
            if (Integer.compareUnsigned(places[i], end) >= 0) { // also one below 0
                return false;
            }
        }
        return true;
    }

    private static boolean haveSameLengths(
            Descriptors local,
            int[] localPlaces,
            Descriptors remote,
            int[] remotePlaces,
            int count) {
        if (local.commonLength() >= 0 && local.commonLength() == remote.commonLength()) {
            return true;
        }
        long differences = 0;
        for (int i = 0; i < count; i++) {
            differences |= local.length(localPlaces[i]) ^ remote.length(remotePlaces[i]);
        }
        return differences == 0;
    }

    /** Names the first pair that is wrong. */
    private static void refuse(
            Object end,
            Descriptors local,
            int[] localPlaces,
            Descriptors remote,
            int[] remotePlaces,
            int count) {
        for (int i = 0; i < count; i++) {
            final int localPlace = localPlaces[i];
            final int remotePlace = remotePlaces[i];
            place(end, "local", local, localPlace, i);
            place(end, "remote", remote, remotePlace, i);
            if (local.length(localPlace) != remote.length(remotePlace)) {
                throw invalid(
                        end,
                        "pieces "
                                + i
                                + " differ: local place "
                                + localPlace
                                + " has "
                                + local.length(localPlace)
                                + " bytes, remote place "
                                + remotePlace
                                + " has "
                                + remote.length(remotePlace));
            }
        }
    }

    private static void place(Object end, String side, Descriptors list, int place, int i) {
        if (place < 0 || place >= list.count()) {
            throw invalid(
                    end,
                    side
                            + "Places["
                            + i
                            + "]="
                            + place
                            + ", the list has places 0.."
                            + (list.count() - 1));
        }
    }

    /** A message, with a request or by itself, has a bounded length; null is none. */
    public static void message(Object end, byte[] message) {
        if (message != null && message.length > KvTransport.MAX_MESSAGE) {
            throw invalid(
                    end,
                    "message of "
                            + message.length
                            + " bytes, at most "
                            + KvTransport.MAX_MESSAGE
                            + "; split it");
        }
    }

    private static KvTransportException invalid(Object end, String what) {
        return new KvTransportException(Kind.INVALID, end + ": " + what);
    }
}
