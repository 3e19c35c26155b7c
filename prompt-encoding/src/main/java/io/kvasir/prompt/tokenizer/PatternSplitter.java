package io.kvasir.prompt.tokenizer;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/** Cuts at the matches of a regular expression. */
final class PatternSplitter implements Splitter {
    private final Pattern pattern;
    private final SplitBehaviour behaviour;
    private final boolean invert;

    PatternSplitter(Pattern pattern, SplitBehaviour behaviour, boolean invert) {
        this.pattern = pattern;
        this.behaviour = behaviour;
        this.invert = invert;
    }

    @Override
    public void split(String text, int start, int end, Sink sink) {
        final Matcher matcher = pattern.matcher(text).region(start, end);
        if (behaviour == SplitBehaviour.ISOLATED) {
            isolate(text, start, end, matcher, sink);
            return;
        }
        final SplitAssembler pieces = new SplitAssembler(behaviour, text, sink);
        int done = start;
        while (matcher.find()) {
            pieces.span(done, matcher.start(), invert);
            pieces.span(matcher.start(), matcher.end(), !invert);
            done = matcher.end();
        }
        pieces.span(done, end, invert);
        pieces.finish();
    }

    private static void isolate(String text, int start, int end, Matcher matcher, Sink sink) {
        int done = start;
        while (matcher.find()) {
            final int from = matcher.start();
            final int to = matcher.end();
            if (done < from) {
                sink.piece(text, done, from);
            }
            if (from < to) {
                sink.piece(text, from, to);
            }
            done = to;
        }
        if (done < end) {
            sink.piece(text, done, end);
        }
    }
}
