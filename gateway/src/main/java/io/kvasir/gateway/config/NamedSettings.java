package io.kvasir.gateway.config;

import io.kvasir.router.settings.Setting;

import java.util.HashMap;
import java.util.Map;

/** Settings that a text has named so far, each of which may be there once. Owned by one thread. */
final class NamedSettings {
    private final Map<Setting<?>, String> names = new HashMap<>();

    /**
     * Takes one.
     *
     * @param name by which the text names it: its own, or a former one
     * @return the setting
     * @throws IllegalArgumentException if it was named before; the message has both names
     */
    Setting<?> add(Setting<?> setting, String name) {
        final String other = names.putIfAbsent(setting, name);
        if (other == null) {
            return setting;
        }
        throw new IllegalArgumentException(
                other.equals(name)
                        ? "'" + name + "' is given twice"
                        : "'"
                                + other
                                + "' and '"
                                + name
                                + "' are names of one setting; give '"
                                + setting
                                + "' alone");
    }
}
