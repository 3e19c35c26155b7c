package io.kvasir.router.settings;

import java.util.Collection;
import java.util.Locale;

/** Finds the known name that is most like one that was given, mostly mistyped, in any case. */
public final class NearestName {
    /** Of so many letters one may be wrong, where a name is to be near. */
    private static final int LETTERS_PER_MISTAKE = 3;

    /** Letters of a name that are compared: more than any known one has. */
    private static final int MOST_COMPARED = 64;

    private NearestName() {}

    /**
     * The known name that is most like another one, however unlike it is.
     *
     * @param given the first 64 letters of it count
     * @return the first of those that are equally like it; null where none is known
     */
    public static String ofOrNull(String given, Collection<String> known) {
        final String name = compared(given);
        String best = null;
        int least = Integer.MAX_VALUE;
        for (String each : known) {
            final int distance = distance(name, each.toLowerCase(Locale.ROOT));
            if (distance < least) {
                least = distance;
                best = each;
            }
        }
        return best;
    }

    /**
     * The same where it is likely to be what was meant: one letter in three may be wrong, at least
     * one, and never all; two that are swapped count as one.
     *
     * @return null where no name is that near
     */
    public static String nearOrNull(String given, Collection<String> known) {
        final String name = compared(given);
        final String best = ofOrNull(name, known);
        if (best == null) {
            return null;
        }
        final int distance = distance(name, best.toLowerCase(Locale.ROOT));
        final int most = (name.length() + LETTERS_PER_MISTAKE - 1) / LETTERS_PER_MISTAKE;
        return distance <= most && distance < name.length() ? best : null;
    }

    private static String compared(String name) {
        return name.substring(0, Math.min(name.length(), MOST_COMPARED)).toLowerCase(Locale.ROOT);
    }

    /** Letters to insert, delete or replace, or to swap with the next one (Damerau-Levenshtein). */
    private static int distance(String a, String b) {
        int[] above = new int[b.length() + 1];
        for (int j = 0; j <= b.length(); j++) {
            above[j] = j;
        }
        int[] higher = above; // read from the third row on
        for (int i = 1; i <= a.length(); i++) {
            final int[] row = new int[b.length() + 1];
            row[0] = i;
            for (int j = 1; j <= b.length(); j++) {
                final int replaced = above[j - 1] + (a.charAt(i - 1) == b.charAt(j - 1) ? 0 : 1);
                row[j] = Math.min(replaced, 1 + Math.min(above[j], row[j - 1]));
                if (isSwapped(a, i, b, j)) {
                    row[j] = Math.min(row[j], higher[j - 2] + 1);
                }
            }
            higher = above;
            above = row;
        }
        return above[b.length()];
    }

    private static boolean isSwapped(String a, int i, String b, int j) {
        return i > 1
                && j > 1
                && a.charAt(i - 1) == b.charAt(j - 2)
                && a.charAt(i - 2) == b.charAt(j - 1);
    }
}
