package io.kvasir.cli.console;

import java.util.Collection;
import java.util.HashSet;
import java.util.Set;

/**
 * Names of one view, each cut in its middle where it is long. All have the same limit, which is
 * raised until names that differ are shown differently. Immutable.
 */
public final class ShortNames {
    private final int most;

    /**
     * Finds the limit.
     *
     * @param names all that are shown
     * @param usual cells of the longest, where they differ within these
     */
    public ShortNames(Collection<String> names, int usual) {
        final Set<String> all = new HashSet<>(names);
        final int longest = all.stream().mapToInt(String::length).max().orElse(0);
        int limit = usual;
        while (limit < 2 * longest && shown(all, limit) < all.size()) {
            limit *= 2;
        }
        most = limit;
    }

    private static long shown(Set<String> names, int limit) {
        return names.stream().map(name -> Terminal.name(name, limit)).distinct().count();
    }

    /** How a name is shown: nothing in it steers the terminal. */
    public String of(String name) {
        return Terminal.name(name, most);
    }
}
