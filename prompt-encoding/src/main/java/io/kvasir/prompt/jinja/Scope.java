package io.kvasir.prompt.jinja;

import java.util.HashMap;
import java.util.Map;

/** Variables of one block; what is not found here is looked for outside. */
final class Scope {
    private final Scope outer;
    private final Map<String, Object> variables = new HashMap<>();

    Scope(Scope outer) {
        this.outer = outer;
    }

    /** Value of a variable, an {@link Undefined} if there is none of that name. */
    Object find(String name) {
        for (Scope scope = this; scope != null; scope = scope.outer) {
            final Object value = scope.variables.get(name);
            if (value != null || scope.variables.containsKey(name)) {
                return value;
            }
        }
        return new Undefined("'" + name + "' is undefined");
    }

    void set(String name, Object value) {
        variables.put(name, value);
    }
}
