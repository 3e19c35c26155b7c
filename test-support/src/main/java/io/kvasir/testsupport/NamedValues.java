package io.kvasir.testsupport;

import java.util.function.BiConsumer;

/** Values with names in one line, as tables of test cases have them. */
public final class NamedValues {
    private NamedValues() {}

    /**
     * Reads {@code name=value} pairs.
     *
     * @param text pairs with a space between two; may be empty
     * @param to takes name and value of each, in order
     */
    public static void each(String text, BiConsumer<String, String> to) {
        for (String pair : text.split(" ", -1)) {
            if (!pair.isEmpty()) {
                final String[] parts = pair.split("=", 2);
                to.accept(parts[0], parts[1]);
            }
        }
    }
}
