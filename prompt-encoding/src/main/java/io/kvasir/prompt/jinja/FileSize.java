package io.kvasir.prompt.jinja;

/** Jinja's filter {@code filesizeformat}: a number of bytes as people read it. */
final class FileSize {
    private static final String PREFIXES = "kMGTPEZY";
    private static final double DECIMAL_UNIT = 1000;
    private static final double BINARY_UNIT = 1024;

    private FileSize() {}

    /** A number of bytes in the unit that fits, by thousands or by 1024. */
    static String text(double bytes, boolean binary) {
        final double base = binary ? BINARY_UNIT : DECIMAL_UNIT;
        if (bytes == 1) {
            return "1 Byte";
        }
        if (bytes < base) {
            return Text.of(Numbers.truncated(bytes)) + " Bytes";
        }
        double unit = base * base;
        int prefix = 0;
        while (prefix < PREFIXES.length() - 1 && !(bytes < unit)) {
            unit *= base;
            prefix++;
        }
        return Formats.fixed(base * bytes / unit, 1) + " " + prefix(prefix, binary) + "B";
    }

    private static String prefix(int number, boolean binary) {
        final String prefix = PREFIXES.substring(number, number + 1);
        return binary ? Cases.upper(prefix) + "i" : prefix;
    }
}
