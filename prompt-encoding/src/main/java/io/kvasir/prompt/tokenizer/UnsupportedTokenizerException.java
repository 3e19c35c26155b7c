package io.kvasir.prompt.tokenizer;

/** Says which part of a {@code tokenizer.json} the own byte-level BPE does not implement. */
final class UnsupportedTokenizerException extends Exception {
    private static final long serialVersionUID = 1L;

    UnsupportedTokenizerException(String what) {
        super(what);
    }
}
