package io.kvasir.bench.gpu;

import io.kvasir.panama.nixl.NixlMemory;

import java.util.EnumMap;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;

/**
 * What a target tells of itself: its process, what NIXL needs to reach it, and where its pools lie.
 * As text, a line each: {@code pid N}, {@code metadata HEX}, {@code pool MEMORY ADDRESS LENGTH
 * DEVICE}.
 *
 * @param pid its process
 * @param metadata for the initiator's agent, in hexadecimal
 * @param pools their ranges
 */
record TargetInfo(long pid, String metadata, Map<NixlMemory, PoolRange> pools) {
    /** The message's name in the exchange. */
    static final String NAME = "target";

    static TargetInfo of(NixlEnd end, Pools pools) {
        final Map<NixlMemory, PoolRange> ranges = new EnumMap<>(NixlMemory.class);
        pools.all().forEach(pool -> ranges.put(pool.memory(), pool.range()));
        return new TargetInfo(
                ProcessHandle.current().pid(),
                HexFormat.of().formatHex(end.transfers().metadata()),
                ranges);
    }

    String text() {
        final StringBuilder text = new StringBuilder();
        text.append("pid ").append(pid).append("\nmetadata ").append(metadata).append('\n');
        pools.forEach(
                (memory, range) ->
                        text.append(
                                "pool %s %d %d %d%n"
                                        .formatted(
                                                memory,
                                                range.address(),
                                                range.length(),
                                                range.device())));
        return text.toString();
    }

    /**
     * Reads {@link #text()}.
     *
     * @throws BenchFailure if it is something else
     */
    static TargetInfo parse(String text) {
        long pid = 0;
        String metadata = null;
        final Map<NixlMemory, PoolRange> pools = new EnumMap<>(NixlMemory.class);
        for (String line : text.lines().toList()) {
            final List<String> words = List.of(line.split(" ", -1));
            switch (words.getFirst()) {
                case "pid" -> pid = Long.parseLong(words.get(1));
                case "metadata" -> metadata = words.get(1);
                case "pool" ->
                        pools.put(
                                NixlMemory.valueOf(words.get(1)),
                                new PoolRange(
                                        Long.parseLong(words.get(2)),
                                        Long.parseLong(words.get(3)),
                                        Integer.parseInt(words.get(4))));
                default -> throw new BenchFailure("the target introduces itself with: " + line);
            }
        }
        if (metadata == null || pools.isEmpty()) {
            throw new BenchFailure("the target's introduction is cut short: " + text);
        }
        return new TargetInfo(pid, metadata, pools);
    }

    byte[] metadataBytes() {
        return HexFormat.of().parseHex(metadata);
    }
}
