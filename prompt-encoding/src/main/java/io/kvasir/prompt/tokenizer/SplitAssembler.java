package io.kvasir.prompt.tokenizer;

/**
 * Turns the alternation of matched and unmatched spans of one piece into the pieces that a {@link
 * SplitBehaviour} asks for. Lives for one call of a splitter; holds back at most one piece.
 */
final class SplitAssembler {
    private final SplitBehaviour behaviour;
    private final String text;
    private final Splitter.Sink sink;
    private int heldStart = -1;
    private int heldEnd;
    private boolean heldMatch;

    SplitAssembler(SplitBehaviour behaviour, String text, Splitter.Sink sink) {
        this.behaviour = behaviour;
        this.text = text;
        this.sink = sink;
    }

    /** The next span, in order; spans are adjacent. Empty ones count for nothing. */
    void span(int start, int end, boolean match) {
        if (start == end) {
            return;
        }
        switch (behaviour) {
            case ISOLATED -> sink.piece(text, start, end);
            case REMOVED -> {
                if (!match) {
                    sink.piece(text, start, end);
                }
            }
            case MERGED_WITH_PREVIOUS -> hold(start, end, match, match && !heldMatch);
            case MERGED_WITH_NEXT -> hold(start, end, match, !match && heldMatch);
            case CONTIGUOUS -> hold(start, end, match, match == heldMatch);
        }
    }

    /** All spans were given. */
    void finish() {
        if (heldStart >= 0) {
            sink.piece(text, heldStart, heldEnd);
            heldStart = -1;
        }
    }

    private void hold(int start, int end, boolean match, boolean joins) {
        if (heldStart >= 0 && joins) {
            heldEnd = end;
        } else {
            finish();
            heldStart = start;
            heldEnd = end;
        }
        heldMatch = match;
    }
}
