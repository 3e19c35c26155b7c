package io.kvasir.prompt.jinja;

import java.util.Map;

/** Attributes that a template can change from inner scopes, too. One rendering, one thread. */
final class Namespace {
    private final Map<Object, Object> attributes;

    Namespace(Arguments arguments) {
        attributes = PythonValues.newDict(arguments);
    }

    Map<Object, Object> attributes() {
        return attributes;
    }

    boolean has(String name) {
        return attributes.containsKey(name);
    }

    Object get(String name) {
        return attributes.get(name);
    }

    void set(String name, Object value) {
        attributes.put(name, value);
    }
}
