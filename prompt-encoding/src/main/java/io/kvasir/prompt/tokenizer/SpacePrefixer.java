package io.kvasir.prompt.tokenizer;

/** Puts a space in front of every piece that does not begin with one. */
final class SpacePrefixer implements Splitter {
    @Override
    public void split(String text, int start, int end, Sink sink) {
        if (text.charAt(start) == ' ') {
            sink.piece(text, start, end);
        } else {
            final String prefixed = " " + text.substring(start, end);
            sink.piece(prefixed, 0, prefixed.length());
        }
    }
}
