package io.kvasir.cli.console;

/**
 * How many cells of a terminal a text takes, as {@code wcwidth} of C counts: two for what is wide
 * by Unicode's EastAsianWidth (W and F), none for marks that combine with what is before them and
 * for joiners. Stateless.
 */
final class Cells {
    /** Makes one picture of two. */
    static final char JOINER = '\u200d';

    /**
     * First and last code points of what is wide and no emoji; unassigned ones between included.
     */
    private static final int[] WIDE = {
        0x1100, 0x115F, // initial consonants of Hangul
        0x2329, 0x232A, // angle brackets
        0x2E80, 0x303E, // radicals, punctuation of CJK
        0x3041, 0x3247, // Kana, Bopomofo, enclosed signs
        0x3250, 0x4DBF, // enclosed and compatibility signs, extension A
        0x4E00, 0xA4CF, // unified ideographs, Yi
        0xA960, 0xA97C, // Hangul, extension A
        0xAC00, 0xD7A3, // syllables of Hangul
        0xF900, 0xFAFF, // compatibility ideographs
        0xFE10, 0xFE19, // vertical forms
        0xFE30, 0xFE6B, // compatibility and small forms
        0xFF01, 0xFF60, // full-width forms
        0xFFE0, 0xFFE6, // full-width signs
        0x16FE0, 0x1B2FB, // Tangut, Khitan, Kana supplements, Nushu
        0x1F200, 0x1F265, // enclosed ideographs
        0x20000, 0x3FFFD, // extensions B and further
    };

    private static final int FIRST_REGIONAL = 0x1F1E6;
    private static final int LAST_REGIONAL = 0x1F1FF;
    private static final int FIRST_VOWEL = 0x1160;
    private static final int LAST_FINAL = 0x11FF;

    private Cells() {}

    /** Cells of a text on one line. */
    static int of(String text) {
        return text.codePoints().map(Cells::of).sum();
    }

    /** Cells of a character, beside others. */
    static int of(int character) {
        return isCombining(character) ? 0 : isWide(character) ? 2 : 1;
    }

    /** The longest beginning of a text that takes at most so many cells. */
    static String head(String text, int most) {
        int cells = 0;
        int end = 0;
        while (end < text.length()) {
            final int character = text.codePointAt(end);
            cells += of(character);
            if (cells > most) {
                break;
            }
            end += Character.charCount(character);
        }
        return text.substring(0, end < text.length() ? withoutJoiner(text, end) : end);
    }

    /** A joiner that joins nothing any more is not part of it. */
    private static int withoutJoiner(String text, int end) {
        return end > 0 && text.charAt(end - 1) == JOINER ? end - 1 : end;
    }

    /** The longest end of a text that takes at most so many cells. */
    static String tail(String text, int most) {
        int cells = 0;
        int begin = text.length();
        for (int at = begin; at > 0; ) {
            final int character = text.codePointBefore(at);
            at -= Character.charCount(character);
            cells += of(character);
            if (cells > most) {
                break;
            }
            if (of(character) > 0) {
                begin = at; // what combines needs what is before it
            }
        }
        return text.substring(begin);
    }

    /** Vowels and final consonants of Hangul are drawn into the initial one before them. */
    private static boolean isCombining(int character) {
        return switch (Character.getType(character)) {
            case Character.NON_SPACING_MARK, Character.ENCLOSING_MARK, Character.FORMAT -> true;
            default -> character >= FIRST_VOWEL && character <= LAST_FINAL;
        };
    }

    private static boolean isWide(int character) {
        for (int i = 0; i < WIDE.length && WIDE[i] <= character; i += 2) {
            if (character <= WIDE[i + 1]) {
                return true;
            }
        }
        return Character.isEmojiPresentation(character)
                && !(character >= FIRST_REGIONAL && character <= LAST_REGIONAL);
    }
}
