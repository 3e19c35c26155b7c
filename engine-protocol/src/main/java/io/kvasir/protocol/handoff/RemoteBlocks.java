package io.kvasir.protocol.handoff;

import com.fasterxml.jackson.databind.JsonNode;

import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * The blocks a prefill engine holds for a hand-off, as its own numbers.
 *
 * @param groups block numbers per KV cache group, in prompt order; an engine that announces a flat
 *     list has one group
 * @param grouped whether the engine announced groups
 */
public record RemoteBlocks(List<List<Integer>> groups, boolean grouped) {
    /** Copies the lists. */
    public RemoteBlocks {
        groups = groups.stream().map(List::copyOf).toList();
    }

    /**
     * Counts the blocks of all groups.
     *
     * @return blocks
     */
    public int count() {
        return groups.stream().mapToInt(List::size).sum();
    }

    /** Reads {@code [1, 2]} or {@code [[1, 2], [3]]}; empty for any other form. */
    static Optional<RemoteBlocks> read(JsonNode node) {
        if (!node.isArray()) {
            return Optional.empty();
        }
        if (node.isEmpty() || !node.get(0).isArray()) {
            return group(node).map(group -> new RemoteBlocks(List.of(group), false));
        }
        final List<List<Integer>> groups = new ArrayList<>();
        for (JsonNode element : node) {
            final Optional<List<Integer>> group = group(element);
            if (group.isEmpty()) {
                return Optional.empty();
            }
            groups.add(group.get());
        }
        return Optional.of(new RemoteBlocks(groups, true));
    }

    private static Optional<List<Integer>> group(JsonNode node) {
        if (!node.isArray()) {
            return Optional.empty();
        }
        final List<Integer> blocks = new ArrayList<>(node.size());
        for (JsonNode block : node) {
            if (!block.isIntegralNumber() || !block.canConvertToInt()) {
                return Optional.empty();
            }
            blocks.add(block.intValue());
        }
        return Optional.of(blocks);
    }
}
