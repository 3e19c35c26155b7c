package io.kvasir.router.disagg;

/**
 * Whether a request was split, and why: both alternatives with their terms, in seconds. NaN where a
 * term is not known yet.
 *
 * @param split whether it is
 * @param reason what decided: {@code cost}, the limit {@code min-tokens}, {@code min-ratio} or
 *     {@code queue} that kept it whole, {@code limits} where none did, or {@code probe} where it is
 *     split to learn what that takes
 * @param alternatives what it was decided by
 * @param localSeconds until the first token where one worker does all of it
 * @param harmSeconds what the prompt's computing would delay the requests that generate there,
 *     weighted
 * @param prefillSeconds until the prefill worker has computed the prompt
 * @param transferSeconds from there to the first token of the decode worker
 */
public record SplitChoice(
        boolean split,
        String reason,
        SplitAlternatives alternatives,
        double localSeconds,
        double harmSeconds,
        double prefillSeconds,
        double transferSeconds) {}
