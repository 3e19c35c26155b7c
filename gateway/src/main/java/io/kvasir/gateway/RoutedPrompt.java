package io.kvasir.gateway;

/**
 * What the router is asked about.
 *
 * @param tokens the prompt's ids as the engine computes them, exactly as long as the prompt; empty when they
 *     cannot be known
 * @param known whether the tokens are known
 * @param lora adapter, null for the base model
 * @param salt cache salt, null for none
 * @param overrides the request's routing headers
 */
record RoutedPrompt(int[] tokens, boolean known, String lora, String salt, RoutingHeaders overrides) {}
