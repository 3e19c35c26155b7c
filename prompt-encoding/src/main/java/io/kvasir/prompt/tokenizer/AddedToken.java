package io.kvasir.prompt.tokenizer;

/**
 * A token that is found in the text before anything else happens to it.
 *
 * @param id token id
 * @param content the text it stands for
 * @param special whether decoding may skip it
 * @param normalized whether it is looked for after normalisation instead of before
 * @param leftStrip whether it swallows white space before it
 * @param rightStrip whether it swallows white space after it
 * @param singleWord whether it counts only when no word character touches it
 */
record AddedToken(
        int id,
        String content,
        boolean special,
        boolean normalized,
        boolean leftStrip,
        boolean rightStrip,
        boolean singleWord) {}
