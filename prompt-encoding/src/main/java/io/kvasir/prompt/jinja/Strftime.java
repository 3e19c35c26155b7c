package io.kvasir.prompt.jinja;

import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.time.temporal.ChronoField;
import java.time.temporal.IsoFields;
import java.util.Locale;

/** Python's {@code strftime} in the C locale. */
final class Strftime {
    /** A format is compiled for most of them. */
    private static final int STEPS_PER_DIRECTIVE = 100;

    private Strftime() {}

    static String format(String format, ZonedDateTime time) {
        Budget.current().text(format.length());
        final StringBuilder out = new StringBuilder();
        for (int i = 0; i < format.length(); i++) {
            final char c = format.charAt(i);
            if (c != '%' || i + 1 == format.length()) {
                out.append(c);
                continue;
            }
            char directive = format.charAt(++i);
            final boolean unpadded = directive == '-' && i + 1 < format.length();
            if (unpadded) {
                directive = format.charAt(++i);
            }
            Budget.current().steps(STEPS_PER_DIRECTIVE);
            final String text = directive(directive, time);
            Budget.current().text(text.length());
            out.append(unpadded ? text.replaceFirst("^[0 ]+(?=.)", "") : text);
        }
        return out.toString();
    }

    private static String directive(char directive, ZonedDateTime time) {
        return switch (directive) {
            case 'a' -> pattern("EEE", time);
            case 'A' -> pattern("EEEE", time);
            case 'b', 'h' -> pattern("MMM", time);
            case 'B' -> pattern("MMMM", time);
            case 'c' -> format("%a %b %e %H:%M:%S %Y", time);
            case 'C' -> "%02d".formatted(time.getYear() / 100);
            case 'd' -> "%02d".formatted(time.getDayOfMonth());
            case 'D', 'x' -> format("%m/%d/%y", time);
            case 'e' -> "%2d".formatted(time.getDayOfMonth());
            case 'f' -> "%06d".formatted(time.getNano() / 1000);
            case 'F' -> format("%Y-%m-%d", time);
            case 'G' -> "%d".formatted(time.get(IsoFields.WEEK_BASED_YEAR));
            case 'H' -> "%02d".formatted(time.getHour());
            case 'I' -> "%02d".formatted(time.get(ChronoField.CLOCK_HOUR_OF_AMPM));
            case 'j' -> "%03d".formatted(time.getDayOfYear());
            case 'k' -> "%2d".formatted(time.getHour());
            case 'l' -> "%2d".formatted(time.get(ChronoField.CLOCK_HOUR_OF_AMPM));
            case 'm' -> "%02d".formatted(time.getMonthValue());
            case 'M' -> "%02d".formatted(time.getMinute());
            case 'n' -> "\n";
            case 'p' -> time.getHour() < 12 ? "AM" : "PM";
            case 'r' -> format("%I:%M:%S %p", time);
            case 'R' -> format("%H:%M", time);
            case 's' -> Long.toString(time.toEpochSecond());
            case 'S' -> "%02d".formatted(time.getSecond());
            case 't' -> "\t";
            case 'T', 'X' -> format("%H:%M:%S", time);
            case 'u' -> Integer.toString(time.getDayOfWeek().getValue());
            case 'V' -> "%02d".formatted(time.get(IsoFields.WEEK_OF_WEEK_BASED_YEAR));
            case 'w' -> Integer.toString(time.getDayOfWeek().getValue() % 7);
            case 'y' -> "%02d".formatted(time.getYear() % 100);
            case 'Y' -> Integer.toString(time.getYear());
            case 'z', 'Z' -> ""; // the reference passes a time without a zone
            case '%' -> "%";
            default ->
                    throw new ValueException("strftime_now: %" + directive + " is not implemented");
        };
    }

    private static String pattern(String pattern, ZonedDateTime time) {
        return DateTimeFormatter.ofPattern(pattern, Locale.ENGLISH).format(time);
    }
}
