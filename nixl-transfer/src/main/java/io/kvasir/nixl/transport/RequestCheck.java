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

    /** Indices exist, and each pair has descriptors of one length. */
    public static void indices(
            Object end,
            Descriptors local,
            int[] localIndices,
            Descriptors remote,
            int[] remoteIndices,
            int first,
            int count) {
        if (count < 1
                || first < 0
                || first > localIndices.length - count
                || first > remoteIndices.length - count) {
            throw invalid(
                    end,
                    "first="
                            + first
                            + ", count="
                            + count
                            + ", indices given: local="
                            + localIndices.length
                            + ", remote="
                            + remoteIndices.length);
        }
        final int to = first + count;
        if (!areInside(localIndices, first, to, local.count())
                || !areInside(remoteIndices, first, to, remote.count())
                || !haveSameLengths(local, localIndices, remote, remoteIndices, first, to)) {
            refuse(end, local, localIndices, remote, remoteIndices, first, to);
        }
    }

    private static boolean areInside(int[] indices, int first, int to, int end) {
        for (int i = first; i < to; i++) {
            if (Integer.compareUnsigned(indices[i], end) >= 0) { // also one below 0
                return false;
            }
        }
        return true;
    }

    private static boolean haveSameLengths(
            Descriptors local,
            int[] localIndices,
            Descriptors remote,
            int[] remoteIndices,
            int first,
            int to) {
        if (local.commonLength() >= 0 && local.commonLength() == remote.commonLength()) {
            return true;
        }
        long differences = 0;
        for (int i = first; i < to; i++) {
            differences |= local.length(localIndices[i]) ^ remote.length(remoteIndices[i]);
        }
        return differences == 0;
    }

    /** Names the first pair that is wrong. */
    private static void refuse(
            Object end,
            Descriptors local,
            int[] localIndices,
            Descriptors remote,
            int[] remoteIndices,
            int first,
            int to) {
        for (int i = first; i < to; i++) {
            final int localIndex = localIndices[i];
            final int remoteIndex = remoteIndices[i];
            index(end, "local", local, localIndex, i);
            index(end, "remote", remote, remoteIndex, i);
            if (local.length(localIndex) != remote.length(remoteIndex)) {
                throw invalid(
                        end,
                        "descriptors "
                                + i
                                + " differ: local index "
                                + localIndex
                                + " has "
                                + local.length(localIndex)
                                + " bytes, remote index "
                                + remoteIndex
                                + " has "
                                + remote.length(remoteIndex));
            }
        }
    }

    private static void index(Object end, String side, Descriptors list, int index, int i) {
        if (index < 0 || index >= list.count()) {
            throw invalid(
                    end,
                    side
                            + "Indices["
                            + i
                            + "]="
                            + index
                            + ", the list has indices 0.."
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
