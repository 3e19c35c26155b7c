package io.kvasir.gateway.routing;

import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.openai.TokenForm;

/** What the router is asked about. */
public final class RoutedPrompt {
    private static final int[] UNKNOWN = {};

    private final int[] tokens;
    private final boolean beginning;
    private final int decodeTokens;
    private final boolean firstTokenUnseen;
    private final int prompts;
    private final boolean computedAnew;
    private final String lora;
    private final String salt;
    private final RoutingHeaders overrides;
    private final TokenForm tokenForm; // null where no worker takes one

    /**
     * @param tokens the prompt's ids as the engine computes them, exactly as long as the prompt,
     *     not copied; null when they cannot be known. Of a batch, all that is computed
     * @param beginning whether more tokens follow, which are not known
     * @param decodeTokens tokens that count as generated from the start, of further answers
     * @param firstTokenUnseen whether the answer comes as a whole
     * @param prompts how many prompts the tokens are of, 1 or more
     * @param computedAnew whether the engine computes all of them, whatever it holds
     * @param lora adapter, null for the base model
     * @param salt cache salt, null for none
     * @param tokenFormOrNull the request for workers that take token ids; null where there were
     *     none when it was read
     */
    RoutedPrompt(
            int[] tokens,
            boolean beginning,
            int decodeTokens,
            boolean firstTokenUnseen,
            int prompts,
            boolean computedAnew,
            String lora,
            String salt,
            RoutingHeaders overrides,
            TokenForm tokenFormOrNull) {
        this.tokens = tokens == null ? UNKNOWN : tokens;
        this.beginning = beginning;
        this.decodeTokens = decodeTokens;
        this.firstTokenUnseen = firstTokenUnseen;
        this.prompts = prompts;
        this.computedAnew = computedAnew;
        this.lora = lora;
        this.salt = salt;
        this.overrides = overrides;
        this.tokenForm = tokenFormOrNull;
    }

    /** Not to be changed; those that are known, empty when there are none. */
    public int[] tokens() {
        return tokens;
    }

    int decodeTokens() {
        return decodeTokens;
    }

    boolean firstTokenUnseen() {
        return firstTokenUnseen;
    }

    int prompts() {
        return prompts;
    }

    boolean computedAnew() {
        return computedAnew;
    }

    /** Whether all of the tokens are known. */
    public boolean known() {
        return tokens.length > 0 && !beginning;
    }

    /** Whether the tokens are those of one whole prompt, if they are known. */
    boolean isWhole() {
        return prompts == 1 && !beginning;
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

    /** The request for a worker that takes token ids; null where it has no such form. */
    public TokenForm tokenForm() {
        return hasTokenForm() ? tokenForm : null;
    }

    /** Whether it can be sent to a worker that takes token ids. */
    boolean hasTokenForm() {
        return tokenForm != null && tokenForm.isPossible();
    }

    /** Why it can be sent to workers alone that take text; null where that is not known. */
    ApiException needsTextOrNull() {
        return tokenForm == null || tokenForm.isPossible() ? null : tokenForm.refusal();
    }
}
