package io.kvasir.prompt.tokenizer;

/**
 * Bounded cache from a piece of text to its token ids: direct-mapped, a newer word replaces an
 * older one in the same entry. Shared by all threads without locks: entries are immutable, so a
 * race costs at most a repeated computation.
 */
final class WordCache {
    /** Longer words are not kept, so that the cache's memory stays bounded. */
    static final int MAX_WORD_LENGTH = 48;

    private static final class Entry {
        private final String word;
        private final int[] ids;

        Entry(String word, int[] ids) {
            this.word = word;
            this.ids = ids;
        }
    }

    private final Entry[] entries;
    private final int mask;

    /**
     * Creates a cache.
     *
     * @param size number of entries, a power of two
     */
    WordCache(int size) {
        entries = new Entry[size];
        mask = size - 1;
    }

    static int hash(String text, int start, int end) {
        int hash = end - start;
        for (int i = start; i < end; i++) {
            hash = hash * 31 + text.charAt(i);
        }
        hash *= 0x9E3779B9;
        return hash ^ (hash >>> 15);
    }

    /** Ids of the word {@code text[start, end)} whose {@link #hash} is given, or null. */
    int[] get(String text, int start, int end, int hash) {
        final Entry entry = entries[hash & mask]; // benign race: entries are immutable
        if (entry != null
                && entry.word.length() == end - start
                && text.startsWith(entry.word, start)) {
            return entry.ids;
        }
        return null;
    }

    void put(String text, int start, int end, int hash, int[] ids) {
        entries[hash & mask] = new Entry(text.substring(start, end), ids);
    }
}
