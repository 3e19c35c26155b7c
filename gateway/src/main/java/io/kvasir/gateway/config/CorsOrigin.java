package io.kvasir.gateway.config;

/** An origin of pages that may call the gateway, as {@code cors-origin} names it. */
public final class CorsOrigin {
    /** Stands for every origin. */
    public static final String ANY = "*";

    private CorsOrigin() {}

    /**
     * Checks an origin.
     *
     * @return the same
     * @throws IllegalArgumentException if it is none
     */
    static String check(String text) {
        if (!text.equals(ANY) && !text.matches("[a-z][a-z0-9+.-]*://[^/\\s*]+|null")) {
            throw new IllegalArgumentException("is no origin, as https://chat.example:8443 is");
        }
        return text;
    }
}
