package io.kvasir.registry.etcd;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.registry.RegistryException;
import io.kvasir.registry.RegistryException.Kind;
import io.kvasir.registry.Stored;
import io.kvasir.registry.etcd.EtcdClient.Entry;
import io.kvasir.registry.etcd.EtcdClient.Position;
import io.kvasir.registry.etcd.EtcdClient.Range;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * One read of all keys with a prefix, in pages: small ones first, larger ones while the answers are
 * small, smaller ones where an answer is too large. A key whose value alone makes an answer too
 * large is read without it. For one use by one thread.
 */
final class PagedRead {
    private static final int FIRST_PAGE = 16;
    private static final int MOST_OF_A_PAGE = 1000;

    /** Asks etcd for the keys from one on. */
    interface Pages {
        /**
         * Reads a page.
         *
         * @param from the first key, in base64
         * @param limit keys at most
         * @param revision to read at; 0 for the last one
         * @param keysOnly without values
         * @return null if the answer is larger than is read
         */
        JsonNode pageOrNull(String from, int limit, long revision, boolean keysOnly);
    }

    private final Pages pages;
    private final ReadLimits limits;
    private final int most;
    private final List<Entry> all = new ArrayList<>();
    private int page = FIRST_PAGE;
    private long bytes;
    private Position at; // null before the first page

    /**
     * Reads nothing yet.
     *
     * @param most further keys are left out
     */
    PagedRead(Pages pages, ReadLimits limits, int most) {
        this.pages = pages;
        this.limits = limits;
        this.most = most;
    }

    /**
     * Reads all.
     *
     * @param first key that may be there, in base64
     */
    Range from(String first) {
        String from = first;
        while (from != null) {
            from = read(from);
        }
        return new Range(at, all);
    }

    /** Reads a page, or finds a smaller one; returns what to go on from, null at the end. */
    private String read(String from) {
        final int limit = Math.min(page, most - all.size());
        final long revision = at == null ? 0 : at.revision();
        final JsonNode answer = pages.pageOrNull(from, limit, revision, false);
        if (answer != null) {
            page = Math.min(2 * page, MOST_OF_A_PAGE);
            return take(answer, null, from);
        }
        if (limit > 1) {
            page = limit / 2;
            return from;
        }
        return take(pages.pageOrNull(from, 1, revision, true), limits.tooLargeForAnAnswer(), from);
    }

    /**
     * @param unreadOrNull why the values of an answer are not there
     */
    private String take(JsonNode answer, String unreadOrNull, String from) {
        final Position now = EtcdClient.position(answer);
        if (at == null) {
            at = now;
        } else if (!at.canBecome(now)) {
            throw new RegistryException(
                    Kind.UNAVAILABLE,
                    "etcd was replaced by another one while its keys were read: at "
                            + at
                            + ", then at "
                            + now);
        }
        String last = from;
        for (JsonNode kv : answer.path("kvs")) {
            last = kv.path("key").asText();
            final Entry entry = EtcdClient.entry(kv, limits);
            all.add(unreadOrNull == null ? entry : entry.unread(unreadOrNull));
            keep(all.size() - 1);
        }
        return answer.path("more").asBoolean() && all.size() < most ? after(last) : null;
    }

    /** Lets go of the value of a key that goes beyond what all may have. */
    private void keep(int at) {
        final Stored stored = all.get(at).stored();
        bytes += stored.key().length();
        if (bytes + stored.value().length <= limits.totalBytes()) {
            bytes += stored.value().length;
            return;
        }
        all.set(
                at,
                all.get(at)
                        .unread(
                                "it is beyond the "
                                        + limits.totalBytes()
                                        + " bytes of keys and values that are kept; delete what"
                                        + " others have written there, or raise -Xmx"));
    }

    /** The next key that can be. */
    private static String after(String base64) {
        final byte[] key = EtcdClient.decoded(base64);
        return EtcdClient.base64(Arrays.copyOf(key, key.length + 1));
    }
}
