package io.kvasir.prompt.tokenizer;

/** Cuts numbers (Unicode categories Nd, Nl, No) from the rest, in runs or digit by digit. */
final class DigitSplitter implements Splitter {
    private final boolean individually;

    DigitSplitter(boolean individually) {
        this.individually = individually;
    }

    @Override
    public void split(String text, int start, int end, Sink sink) {
        int done = start;
        int at = start;
        while (at < end) {
            final int codePoint = text.codePointAt(at);
            if (!isNumeric(codePoint)) {
                at += Character.charCount(codePoint);
                continue;
            }
            if (done < at) {
                sink.piece(text, done, at);
            }
            done = at;
            at += Character.charCount(codePoint);
            while (!individually && at < end && isNumeric(text.codePointAt(at))) {
                at += Character.charCount(text.codePointAt(at));
            }
            sink.piece(text, done, at);
            done = at;
        }
        if (done < end) {
            sink.piece(text, done, end);
        }
    }

    private static boolean isNumeric(int codePoint) {
        return switch (Character.getType(codePoint)) {
            case Character.DECIMAL_DIGIT_NUMBER, Character.LETTER_NUMBER, Character.OTHER_NUMBER ->
                    true;
            default -> false;
        };
    }
}
