package io.kvasir.prompt.jinja;

import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Arguments of one call, taken one parameter after the other in the order of the signature: by
 * position first, else by name. {@link #end} refuses what was not taken.
 */
final class Arguments {
    private final String callee;
    private final List<Object> positional;
    private final Map<String, Object> named;
    private int next;

    Arguments(String callee, List<Object> positional, Map<String, Object> named) {
        this.callee = callee;
        this.positional = positional;
        this.named = new LinkedHashMap<>(named);
    }

    /** The next parameter's value, or the default. */
    Object take(String name, Object defaultValue) {
        if (next < positional.size()) {
            if (named.containsKey(name)) {
                throw new ValueException(callee + "() got multiple values for '" + name + "'");
            }
            return positional.get(next++);
        }
        return named.containsKey(name) ? named.remove(name) : defaultValue;
    }

    /** The next parameter's value; it has to be there. */
    Object take(String name) {
        if (next >= positional.size() && !named.containsKey(name)) {
            throw new ValueException(callee + "() needs the argument '" + name + "'");
        }
        return take(name, null);
    }

    /** Positional arguments that were not taken yet. */
    List<Object> rest() {
        final List<Object> rest = positional.subList(next, positional.size());
        next = positional.size();
        return rest;
    }

    /** Keyword arguments that were not taken yet. */
    Map<String, Object> restNamed() {
        final Map<String, Object> rest = new LinkedHashMap<>(named);
        named.clear();
        return rest;
    }

    boolean has(String name) {
        return named.containsKey(name);
    }

    int positionalLeft() {
        return positional.size() - next;
    }

    /** All parameters were taken. */
    void end() {
        if (next < positional.size()) {
            throw new ValueException(
                    callee
                            + "() takes "
                            + next
                            + " arguments but "
                            + positional.size()
                            + " were given");
        }
        if (!named.isEmpty()) {
            throw new ValueException(
                    callee
                            + "() got an unexpected keyword argument '"
                            + named.keySet().iterator().next()
                            + "'");
        }
    }
}
