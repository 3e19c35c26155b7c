package io.kvasir.gateway.config;

import java.util.Objects;

/**
 * A token or password. Its text form hides it, so that it is in no log, document or message.
 *
 * @param value the text itself
 */
public record Secret(String value) {
    /** Checks that there is one. */
    public Secret {
        Objects.requireNonNull(value, "value");
    }

    @Override
    public String toString() {
        return value.isBlank() ? "" : "***";
    }
}
