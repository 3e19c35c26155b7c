package io.kvasir.prompt.tokenizer;

/** What a {@code Split} pre-tokenizer does with the text where its pattern matches. */
enum SplitBehaviour {
    /** Each match is a piece of its own. */
    ISOLATED,
    /** Matches vanish. */
    REMOVED,
    /** A match ends the piece before it. */
    MERGED_WITH_PREVIOUS,
    /** A match begins the piece after it. */
    MERGED_WITH_NEXT,
    /** Neighbouring matches are one piece. */
    CONTIGUOUS;

    static SplitBehaviour parse(String name) throws UnsupportedTokenizerException {
        return switch (name) {
            case "Isolated" -> ISOLATED;
            case "Removed" -> REMOVED;
            case "MergedWithPrevious" -> MERGED_WITH_PREVIOUS;
            case "MergedWithNext" -> MERGED_WITH_NEXT;
            case "Contiguous" -> CONTIGUOUS;
            default ->
                    throw new UnsupportedTokenizerException(
                            "pre-tokenizer Split with behavior " + name);
        };
    }
}
