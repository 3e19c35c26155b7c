package io.kvasir.gateway;

/** What the router is asked about. */
final class RoutedPrompt {
    private static final int[] UNKNOWN = {};

    private final int[] tokens;
    private final String lora;
    private final String salt;
    private final RoutingHeaders overrides;

    /**
     * @param tokens the prompt's ids as the engine computes them, exactly as long as the prompt,
     *     not copied; null when they cannot be known
     * @param lora adapter, null for the base model
     * @param salt cache salt, null for none
     */
    RoutedPrompt(int[] tokens, String lora, String salt, RoutingHeaders overrides) {
        this.tokens = tokens == null ? UNKNOWN : tokens;
        this.lora = lora;
        this.salt = salt;
        this.overrides = overrides;
    }

    /** Not to be changed; empty when the tokens cannot be known. */
    int[] tokens() {
        return tokens;
    }

    boolean known() {
        return tokens.length > 0;
    }

    String lora() {
        return lora;
    }

    String salt() {
        return salt;
    }

    RoutingHeaders overrides() {
        return overrides;
    }
}
