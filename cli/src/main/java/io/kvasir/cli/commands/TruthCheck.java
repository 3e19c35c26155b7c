package io.kvasir.cli.commands;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.core.hash.BlockHasher;
import io.kvasir.core.index.PrefixIndex;
import io.kvasir.core.index.PrefixIndexConfig;
import io.kvasir.core.radix.OverlapScores;
import io.kvasir.pipeline.capture.ZcapReader;
import io.kvasir.pipeline.capture.ZcapRecord;
import io.kvasir.pipeline.events.IndexApplier;
import io.kvasir.pipeline.source.EngineStream;
import io.kvasir.pipeline.source.RemovalRule;
import io.kvasir.pipeline.source.SourceConfig;
import io.kvasir.pipeline.source.SourceStatus;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Feeds a recorded event stream to a real index, message by message, and asks the index at each
 * mark what the engine will find in its cache. One thread; the predictions see events only.
 */
final class TruthCheck implements AutoCloseable {
    private static final Pattern MARK = Pattern.compile("REQ (\\d+)");
    private static final int SLOT = 0;

    /** No event names a block in fewer bytes, so the file's size bounds the blocks in it. */
    private static final int LEAST_BYTES_PER_BLOCK = 8;

    private final Path events;
    private final Map<Integer, GoldenTrace.Request> unasked;
    private final List<Difference> differences = new ArrayList<>();
    private final int blockSize;
    private final boolean lacksLastBlock;
    private final PrefixIndex index;
    private final EngineStream stream;
    private final OverlapScores scores = new OverlapScores(SLOT + 1);
    private final long seed = BlockHasher.seed(null, null);
    private long[] hashes = new long[64];
    private long firstSequence = -1;
    private int exact;

    /**
     * One request where prediction and engine differ.
     *
     * @param request number of the mark
     * @param promptTokens length of the prompt
     * @param predicted cached tokens by the index
     * @param cached cached tokens by the engine
     */
    record Difference(int request, int promptTokens, int predicted, int cached) {}

    /**
     * Outcome of one check.
     *
     * @param exact requests whose prediction equals the engine's figure
     * @param differences the others, in the order of the marks
     * @param unmarked numbers of requests without a mark in the events; nothing was compared
     * @param missingAtStart number of the first message: so many were before it
     * @param source what the event stream saw: counters, drops, gaps
     */
    record Result(
            int exact,
            List<Difference> differences,
            List<Integer> unmarked,
            long missingAtStart,
            SourceStatus source) {

        /** Requests compared. */
        int requests() {
            return exact + differences.size();
        }

        int over() {
            return (int) differences.stream().filter(d -> d.predicted > d.cached).count();
        }

        int under() {
            return differences.size() - over();
        }

        /** Times that numbers were missing; a first message 1 is how some engines begin. */
        long gaps() {
            return source.gaps() + (missingAtStart > 1 ? 1 : 0);
        }

        /** True when every request was compared, all were exact and no message is missing. */
        boolean passed() {
            return differences.isEmpty() && unmarked.isEmpty() && gaps() == 0;
        }
    }

    private TruthCheck(
            Path events,
            Map<Integer, GoldenTrace.Request> requests,
            int blockSize,
            RemovalRule removals,
            boolean lacksLastBlock,
            long maxBlocks) {
        this.events = events;
        this.unasked = new LinkedHashMap<>(requests);
        this.blockSize = blockSize;
        this.lacksLastBlock = lacksLastBlock;
        this.index = new PrefixIndex(new PrefixIndexConfig(SLOT + 1, maxBlocks, maxBlocks));
        this.stream =
                new EngineStream(
                        SourceConfig.of("recording", SLOT, blockSize, "").withRemovals(removals),
                        new IndexApplier(index));
    }

    /**
     * Runs a recording against its requests.
     *
     * @param events capture with event messages and {@code REQ i} marks
     * @param requests by number of the mark
     * @param removals what a removal means to this engine
     * @param lacksLastBlock whether it computes the last block of each hit anew
     * @throws IOException when the capture cannot be read or is none
     * @throws CommandFailure when it is a pipe or a folder, or its marks and the requests differ
     */
    static Result run(
            Path events,
            Map<Integer, GoldenTrace.Request> requests,
            int blockSize,
            RemovalRule removals,
            boolean lacksLastBlock)
            throws IOException {
        final BasicFileAttributes file = Files.readAttributes(events, BasicFileAttributes.class);
        if (!file.isRegularFile()) {
            throw new CommandFailure(
                    events
                            + " is no regular file, and of no other is the size known, which bounds"
                            + " the index: copy the recording into a file");
        }
        final long maxBlocks = file.size() / LEAST_BYTES_PER_BLOCK + 1;
        try (ZcapReader reader = ZcapReader.open(events);
                TruthCheck check =
                        new TruthCheck(
                                events, requests, blockSize, removals, lacksLastBlock, maxBlocks)) {
            long number = 0;
            for (ZcapRecord record = reader.next(); record != null; record = reader.next()) {
                number++;
                check.take(record, number);
            }
            return check.result();
        }
    }

    private void take(ZcapRecord record, long number) {
        if (record.source() == ZcapRecord.Source.MARK) {
            final Matcher mark = MARK.matcher(record.frames().isEmpty() ? "" : record.text());
            if (mark.matches()) {
                compare(request(mark.group(1), number));
            }
        } else if (record.source() == ZcapRecord.Source.SUBSCRIPTION && record.isEventMessage()) {
            if (firstSequence < 0) {
                firstSequence = record.sequence();
            }
            stream.onMessage(record.sequence(), record.payload());
        }
    }

    private int request(String digits, long number) {
        try {
            return Integer.parseInt(digits);
        } catch (NumberFormatException e) {
            throw new CommandFailure(
                    events
                            + ": record "
                            + number
                            + ": mark REQ is "
                            + digits
                            + ", must be a whole number 0.."
                            + Integer.MAX_VALUE,
                    e);
        }
    }

    private void compare(int number) {
        final GoldenTrace.Request request = unasked.remove(number);
        if (request == null) {
            throw new CommandFailure(
                    "mark REQ " + number + " has no request, or stands in the events twice");
        }
        final int predicted = predict(request.prompt());
        if (predicted == request.cachedTokens()) {
            exact++;
        } else {
            differences.add(
                    new Difference(
                            number, request.prompt().length, predicted, request.cachedTokens()));
        }
    }

    /**
     * The last prompt token is always computed, so a prompt of whole blocks never hits its last.
     */
    private int predict(int[] prompt) {
        final int count = BlockHasher.blockCount(prompt.length, blockSize);
        if (hashes.length < count) {
            hashes = new long[count];
        }
        int matched =
                match(BlockHasher.localHashes(prompt, 0, prompt.length, blockSize, seed, hashes));
        if (stream.status().learnedEagle()) {
            matched =
                    Math.max(
                            matched,
                            match(
                                    BlockHasher.eagleLocalHashes(
                                            prompt, 0, prompt.length, blockSize, seed, hashes)));
        }
        final int cap = Math.max(0, prompt.length - 1) / blockSize;
        return Math.max(0, Math.min(matched, cap) - (lacksLastBlock ? 1 : 0)) * blockSize;
    }

    private int match(int count) {
        index.match(hashes, count, scores);
        return scores.depth(SLOT);
    }

    private Result result() {
        return new Result(
                exact,
                List.copyOf(differences),
                List.copyOf(unasked.keySet()),
                Math.max(0, firstSequence),
                stream.status());
    }

    @Override
    public void close() {
        stream.close();
        index.close();
    }
}
