package io.kvasir.prompt.tokenizer;

/**
 * One step of pre-tokenisation: cuts a piece of text into smaller ones. Implementations are
 * immutable; they look at nothing outside of the piece.
 */
interface Splitter {
    /**
     * Receives pieces {@code text[start, end)} in order; empty pieces are dropped by the sender.
     */
    interface Sink {
        void piece(String text, int start, int end);
    }

    void split(String text, int start, int end, Sink sink);

    /** This step, then the next one on each of its pieces. */
    default Splitter then(Splitter next) {
        return (text, start, end, sink) ->
                split(text, start, end, (t, s, e) -> next.split(t, s, e, sink));
    }
}
