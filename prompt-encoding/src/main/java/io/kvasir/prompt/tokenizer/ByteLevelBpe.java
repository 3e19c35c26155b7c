package io.kvasir.prompt.tokenizer;

import io.kvasir.prompt.memo.MemoView;
import io.kvasir.prompt.memo.PromptMemo;

import java.io.ByteArrayOutputStream;
import java.util.Arrays;
import java.util.BitSet;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CancellationException;

/**
 * Byte-level byte-pair encoding, the tokenizer of most current models:
 *
 * <pre>
 *   text ─► added tokens cut out ─► normalised ─► added tokens again ─► split into words ─► BPE of each word's bytes
 * </pre>
 *
 * Immutable except for the word cache, which any number of threads may share.
 *
 * <p>Sections of a text between added tokens are encoded each by itself ({@link Sections}), so a
 * memo may know some of them.
 */
final class ByteLevelBpe implements Tokenizer {
    private static final int CACHE_WORDS = 1 << 15;

    /** A power of two. */
    private static final int WORDS_PER_CHECK = 1024;

    private final BpeModel model;
    private final Splitter splitter;
    private final TextNormalizer normalizer;
    private final AddedTokenFinder rawTokens;
    private final AddedTokenFinder normalizedTokens;
    private final PostProcessor post;
    private final Map<String, Integer> ids;
    private final String[] contents;
    private final BitSet special;
    private final WordCache cache = new WordCache(CACHE_WORDS);

    /**
     * Creates a tokenizer from its parts; none of them is copied.
     *
     * @param model encodes words
     * @param splitter cuts text into words
     * @param normalizer brings text into a normal form, or null
     * @param added added tokens of any kind
     * @param post tokens around the text
     * @param ids every token's id by content, added ones included
     */
    ByteLevelBpe(
            BpeModel model,
            Splitter splitter,
            TextNormalizer normalizer,
            List<AddedToken> added,
            PostProcessor post,
            Map<String, Integer> ids) {
        this.model = model;
        this.splitter = splitter;
        this.normalizer = normalizer;
        this.post = post;
        this.ids = ids;
        rawTokens =
                new AddedTokenFinder(
                        added.stream().filter(t -> !t.normalized()).toList(), content -> content);
        normalizedTokens =
                new AddedTokenFinder(
                        added.stream().filter(AddedToken::normalized).toList(), this::normalize);
        int largest = -1;
        for (int id : ids.values()) {
            largest = Math.max(largest, id);
        }
        contents = new String[largest + 1];
        ids.forEach((content, id) -> contents[id] = content);
        special = new BitSet(contents.length);
        added.stream().filter(AddedToken::special).forEach(t -> special.set(t.id()));
    }

    @Override
    public int[] encode(String text, boolean addSpecialTokens) {
        return encode(text, addSpecialTokens, Integer.MAX_VALUE);
    }

    @Override
    public int[] encode(String text, boolean addSpecialTokens, int maxTokens) {
        return encode(text, addSpecialTokens, maxTokens, null);
    }

    @Override
    public int[] encode(String text, boolean addSpecialTokens, int maxTokens, MemoView memoOrNull) {
        final String whole = withoutLoneSurrogates(text);
        final Call call = new Call((int) Math.min(whole.length() / 3, 2L * maxTokens), maxTokens);
        if (addSpecialTokens) {
            post.appendBefore(call.out);
        }
        if (memoOrNull == null || whole.length() < PromptMemo.MIN_SECTION_CHARS) {
            rawTokens.split(whole, new Encoding(whole, call));
        } else {
            new Sections(whole, rawTokens).encode(new Encoding(whole, call), call, memoOrNull);
        }
        if (addSpecialTokens) {
            post.appendAfter(call.out);
        }
        call.check();
        return call.out.toArray();
    }

    @Override
    public int[] keepLast(int[] encoded, int most) {
        return post.keepLast(encoded, most);
    }

    /** Encodes the pieces of a text. */
    private final class Encoding implements AddedTokenFinder.Sink {
        private final String whole;
        private final Call call;

        Encoding(String whole, Call call) {
            this.whole = whole;
            this.call = call;
        }

        @Override
        public void text(int start, int end) {
            encodeNormalized(normalize(whole.substring(start, end)), call);
        }

        @Override
        public void token(int id, int end) {
            call.out.add(id);
        }
    }

    private void encodeNormalized(String text, Call call) {
        normalizedTokens.split(
                text,
                new AddedTokenFinder.Sink() {
                    @Override
                    public void text(int start, int end) {
                        splitter.split(text, start, end, call);
                    }

                    @Override
                    public void token(int id, int end) {
                        call.out.add(id);
                    }
                });
    }

    @Override
    public String decode(int[] tokens, boolean skipSpecialTokens) {
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream(tokens.length * 4);
        for (int id : tokens) {
            if (id < 0 || id >= contents.length || contents[id] == null) {
                continue;
            }
            if (!skipSpecialTokens || !special.get(id)) {
                ByteAlphabet.appendBytes(contents[id], bytes);
            }
        }
        return Utf8Text.decode(bytes.toByteArray());
    }

    @Override
    public int idOf(String token) {
        return ids.getOrDefault(token, NO_TOKEN);
    }

    @Override
    public String contentOf(int id) {
        return id < 0 || id >= contents.length ? null : contents[id];
    }

    @Override
    public int idCount() {
        return contents.length;
    }

    @Override
    public void close() {
        // owns no native memory
    }

    private String normalize(String text) {
        return normalizer == null ? text : normalizer.normalize(text);
    }

    private static String withoutLoneSurrogates(String text) {
        StringBuilder fixed = null;
        for (int i = 0; i < text.length(); i++) {
            final char c = text.charAt(i);
            if (!Character.isSurrogate(c)) {
                continue;
            }
            if (Character.isHighSurrogate(c)
                    && i + 1 < text.length()
                    && Character.isLowSurrogate(text.charAt(i + 1))) {
                i++;
                continue;
            }
            if (fixed == null) {
                fixed = new StringBuilder(text);
            }
            fixed.setCharAt(i, '\uFFFD');
        }
        return fixed == null ? text : fixed.toString();
    }

    /** State of one encode call: the output and the working memory of the merges. */
    private final class Call implements Splitter.Sink, Sections.Output {
        private final IdBuffer out;
        private final int maxTokens;
        private int words;
        private BpeModel.Scratch scratch;

        Call(int expectedTokens, int maxTokens) {
            this.out = new IdBuffer(expectedTokens);
            this.maxTokens = maxTokens;
        }

        @Override
        public IdBuffer ids() {
            return out;
        }

        /** Ends a call that has become too long, or that no one waits for. */
        @Override
        public void check() {
            if (out.count() > maxTokens) {
                throw PromptException.tooLong(maxTokens);
            }
            if (Thread.currentThread().isInterrupted()) {
                throw new CancellationException("the encoding was given up");
            }
        }

        @Override
        public void piece(String text, int start, int end) {
            if ((++words & WORDS_PER_CHECK - 1) == 0) {
                check();
            }
            if (end - start >= WordMemory.LONG_WORD) {
                longWord(text, start, end);
                return;
            }
            if (end - start > WordCache.MAX_WORD_LENGTH) {
                final int count = encodeWord(text, start, end);
                out.addAll(scratch.ids(), count);
                return;
            }
            final int hash = WordCache.hash(text, start, end);
            int[] known = cache.get(text, start, end, hash);
            if (known == null) {
                final int count = encodeWord(text, start, end);
                known = Arrays.copyOf(scratch.ids(), count);
                cache.put(text, start, end, hash, known);
            }
            out.addAll(known, known.length);
        }

        /** Its working memory is not kept. */
        private void longWord(String text, int start, int end) {
            if (out.count() + (long) model.leastTokens(end - start) > maxTokens) {
                throw PromptException.tooLong(maxTokens);
            }
            final int taken = WordMemory.PROCESS.take(BpeModel.utf8Length(text, start, end));
            try {
                final BpeModel.Scratch own = new BpeModel.Scratch();
                final int count = model.encode(text, start, end, own);
                out.addAll(own.ids(), count);
            } finally {
                WordMemory.PROCESS.giveBack(taken);
            }
        }

        private int encodeWord(String text, int start, int end) {
            if (scratch == null) {
                scratch = new BpeModel.Scratch();
            }
            return model.encode(text, start, end, scratch);
        }
    }
}
