package io.kvasir.prompt.tokenizer;

/**
 * Reads UTF-8 that may be broken: each longest part that could have begun a character, and each
 * other byte that is out of place, becomes one U+FFFD (the practice of Unicode section 3.9, which
 * the reference library follows and {@link String} does not in all cases).
 */
final class Utf8Text {
    private Utf8Text() {}

    static String decode(byte[] bytes) {
        final StringBuilder out = new StringBuilder(bytes.length);
        int at = 0;
        while (at < bytes.length) {
            final int lead = bytes[at] & 0xFF;
            if (lead < 0x80) {
                out.append((char) lead);
                at++;
                continue;
            }
            final int length =
                    lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
            int value = lead & (0xFF >>> (length + 1));
            int taken = 1;
            while (taken < length
                    && at + taken < bytes.length
                    && continues(lead, taken, bytes[at + taken] & 0xFF)) {
                value = (value << 6) | (bytes[at + taken] & 0x3F);
                taken++;
            }
            if (length != 0 && taken == length) {
                out.appendCodePoint(value);
            } else {
                out.append('\uFFFD');
            }
            at += taken;
        }
        return out.toString();
    }

    /**
     * Whether a byte may stand at a position after a lead byte: no overlong forms, no surrogates.
     */
    private static boolean continues(int lead, int position, int b) {
        int low = 0x80;
        int high = 0xBF;
        if (position == 1) {
            switch (lead) {
                case 0xE0 -> low = 0xA0;
                case 0xED -> high = 0x9F;
                case 0xF0 -> low = 0x90;
                case 0xF4 -> high = 0x8F;
                default -> {
                    // any continuation byte
                }
            }
        }
        return b >= low && b <= high;
    }
}
