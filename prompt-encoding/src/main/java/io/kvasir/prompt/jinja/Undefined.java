package io.kvasir.prompt.jinja;

/**
 * A value that does not exist. Printed it is empty, iterated it has no items, tested it is false;
 * anything else fails with the reason it was made with.
 */
final class Undefined {
    private final String reason;

    Undefined(String reason) {
        this.reason = reason;
    }

    ValueException fail() {
        return new ValueException(reason);
    }
}
