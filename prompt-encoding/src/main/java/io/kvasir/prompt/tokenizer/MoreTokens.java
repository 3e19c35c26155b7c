package io.kvasir.prompt.tokenizer;

import com.fasterxml.jackson.databind.JsonNode;

import java.util.List;

/**
 * Added tokens of other files than {@code tokenizer.json}, in the form that its {@code
 * added_tokens} have, without ids.
 *
 * @param replacing how these strip and where they count holds in place of what the file says of
 *     tokens with the same text; those that the file lacks are added
 * @param further those are added whose text no other has
 */
public record MoreTokens(List<JsonNode> replacing, List<JsonNode> further) {
    /** No other file says anything. */
    public static final MoreTokens NONE = new MoreTokens(List.of(), List.of());

    /** Copies the lists. */
    public MoreTokens {
        replacing = List.copyOf(replacing);
        further = List.copyOf(further);
    }
}
