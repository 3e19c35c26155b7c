package io.kvasir.prompt.jinja;

import java.util.Arrays;
import java.util.List;

/** What {@code groupby} has found for one value: a pair whose items have names, too. */
final class Group extends Tuple {
    Group(Object grouper, List<Object> items) {
        super(Arrays.asList(grouper, items));
    }

    /** An item by its name, or null where there is none of that name. */
    Object attribute(String name) {
        return switch (name) {
            case "grouper" -> get(0);
            case "list" -> get(1);
            default -> null;
        };
    }
}
