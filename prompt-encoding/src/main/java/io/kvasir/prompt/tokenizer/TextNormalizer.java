package io.kvasir.prompt.tokenizer;

import java.text.Normalizer;
import java.util.Arrays;

/**
 * Unicode normal forms as the Hugging Face library computes them: by tables of an older Unicode
 * version. Characters that got a decomposition, a composition or a combining class only later are
 * left alone there, and here: the text is normalised between them.
 */
final class TextNormalizer {
    /**
     * Ranges (first, last) of those characters: found by comparing, for every code point, its forms
     * alone and beside combining marks in PyPI tokenizers 0.23.3 with those of JDK 25; with them
     * the characters that JDK 25 composes into one of them.
     */
    private static final int[] LEFT_ALONE = {
        0x7FD, 0x7FD, 0x897, 0x89F, 0x8CA, 0x8D3, 0x9FE, 0x9FE, 0xC3C, 0xC3C, 0xD3B, 0xD3C, 0xEBA,
        0xEBA, 0x1715, 0x1715, 0x1ABF, 0x1ACE, 0x1DF6, 0x1DFA, 0x32FF, 0x32FF, 0xA7F2, 0xA7F4,
        0xA82C, 0xA82C, 0xAB69, 0xAB69, 0x105C9, 0x105C9, 0x105D2, 0x105D2, 0x105DA, 0x105DA,
        0x105E4, 0x105E4, 0x10781, 0x10785, 0x10787, 0x107B0, 0x107B2, 0x107BA, 0x10D24, 0x10D27,
        0x10D69, 0x10D6D, 0x10EAB, 0x10EAC, 0x10EFD, 0x10EFF, 0x10F46, 0x10F50, 0x10F82, 0x10F85,
        0x11070, 0x11070, 0x1133B, 0x1133B, 0x11382, 0x11385, 0x1138B, 0x1138B, 0x1138E, 0x1138E,
        0x11390, 0x11391, 0x113C2, 0x113C2, 0x113C5, 0x113C5, 0x113C7, 0x113C8, 0x113CE, 0x113D0,
        0x1145E, 0x1145E, 0x11839, 0x1183A, 0x11935, 0x11935, 0x11938, 0x11938, 0x1193D, 0x1193E,
        0x11943, 0x11943, 0x119E0, 0x119E0, 0x11A34, 0x11A34, 0x11A47, 0x11A47, 0x11A99, 0x11A99,
        0x11D42, 0x11D42, 0x11D44, 0x11D45, 0x11D97, 0x11D97, 0x11F41, 0x11F42, 0x1611E, 0x1611E,
        0x16121, 0x16129, 0x1612F, 0x1612F, 0x16D63, 0x16D63, 0x16D67, 0x16D6A, 0x16FF0, 0x16FF1,
        0x1CCD6, 0x1CCF9, 0x1E030, 0x1E06D, 0x1E08F, 0x1E08F, 0x1E130, 0x1E136, 0x1E2AE, 0x1E2AE,
        0x1E2EC, 0x1E2EF, 0x1E4EC, 0x1E4EF, 0x1E5EE, 0x1E5EF, 0x1F16C, 0x1F16C, 0x1FBF0, 0x1FBF9
    };

    /** Every character below is the same in all four forms. */
    private static final int FIRST_AFFECTED = 0xA0;

    private final Normalizer.Form form;

    TextNormalizer(Normalizer.Form form) {
        this.form = form;
    }

    String normalize(String text) {
        int from = 0;
        while (from < text.length() && text.charAt(from) < FIRST_AFFECTED) {
            from++;
        }
        if (from == text.length()) {
            return text;
        }
        StringBuilder out = null;
        int done = 0;
        for (int i = from; i < text.length(); ) {
            final int codePoint = text.codePointAt(i);
            final int next = i + Character.charCount(codePoint);
            if (isLeftAlone(codePoint)) {
                out = out == null ? new StringBuilder(text.length()) : out;
                out.append(Normalizer.normalize(text.substring(done, i), form));
                out.appendCodePoint(codePoint);
                done = next;
            }
            i = next;
        }
        if (out == null) {
            return Normalizer.normalize(text, form);
        }
        return out.append(Normalizer.normalize(text.substring(done), form)).toString();
    }

    private static boolean isLeftAlone(int codePoint) {
        if (codePoint < LEFT_ALONE[0]) {
            return false;
        }
        final int found = Arrays.binarySearch(LEFT_ALONE, codePoint);
        return found >= 0 || (-found - 1) % 2 == 1;
    }
}
