package io.kvasir.gateway.upstream;

import io.kvasir.router.load.LoadReading;

import java.util.Map;
import java.util.TreeMap;
import java.util.function.ObjDoubleConsumer;

/**
 * Reads an engine's load from its page of metrics, in Prometheus' text format, under the names of
 * vLLM (the llm-d simulator's too) and SGLang. Ranks are distinguished by the label {@code engine}
 * or {@code dp_rank}. In one pass over the page, without regular expressions: a page is what
 * another machine has written.
 *
 * <p>Where a series comes more than once for a rank (other models' names, tensor-parallel ranks)
 * the largest value counts.
 */
final class EngineLoadPage {
    /** The rank of series without a label of one. */
    static final int UNLABELLED = -1;

    /** Most ranks that are read of one page. */
    static final int MOST_RANKS = 1_024;

    private static final String VLLM = "vllm:";
    private static final String SGLANG = "sglang:";
    private static final String VLLM_CACHE = "vllm:cache_config_info";
    private static final int MOST_RANK_DIGITS = 6;

    private final String page;
    private final Map<Integer, Values> byRank = new TreeMap<>();
    private String rank; // labels of the line of now; null where they are not there
    private String blocks;

    /** What was read of one rank; NaN where there was nothing. */
    private static final class Values {
        private double running = Double.NaN;
        private double waiting = Double.NaN;
        private double usage = Double.NaN;
        private double usedTokens = Double.NaN;
        private double tokens = Double.NaN;
        private double blocks = Double.NaN;
        private boolean isBad; // a value that is no number

        LoadReading reading(int blockSize) {
            final LoadReading reading = new LoadReading();
            if (isBad) {
                return reading.running(Double.NaN);
            }
            put(reading, running, LoadReading::running);
            put(reading, waiting, LoadReading::waiting);
            put(reading, usage, LoadReading::usage);
            put(reading, usedTokens / blockSize, LoadReading::usedBlocks);
            put(reading, tokens / blockSize, LoadReading::blocks);
            put(reading, blocks, LoadReading::blocks);
            return reading;
        }

        private static void put(
                LoadReading reading, double value, ObjDoubleConsumer<LoadReading> to) {
            if (!Double.isNaN(value)) {
                to.accept(reading, value);
            }
        }
    }

    private EngineLoadPage(String page) {
        this.page = page;
    }

    /**
     * Reads a page.
     *
     * @param blockSize tokens of a block, by which tokens are counted in blocks
     * @return by rank, {@link #UNLABELLED} for series without; empty where the page has none of an
     *     engine's load. Null where a series of the load is not written as it must be
     */
    static Map<Integer, LoadReading> readOrNull(String page, int blockSize) {
        final EngineLoadPage reader = new EngineLoadPage(page);
        if (!reader.readLines()) {
            return null;
        }
        final Map<Integer, LoadReading> readings = new TreeMap<>();
        reader.byRank.forEach((rank, values) -> readings.put(rank, values.reading(blockSize)));
        readings.values().removeIf(r -> r.isEmpty() && r.problemOrNull() == null);
        return readings;
    }

    private boolean readLines() {
        for (int from = 0; from < page.length(); ) {
            final int newline = page.indexOf('\n', from);
            final int end = newline < 0 ? page.length() : newline;
            final int at = skipBlanks(from, end);
            if ((page.startsWith(VLLM, at) || page.startsWith(SGLANG, at)) && !readLine(at, end)) {
                return false;
            }
            from = end + 1;
        }
        return true;
    }

    /** Goes over blanks, tabs and what ends a line; they may be between any two tokens. */
    private int skipBlanks(int from, int end) {
        int at = from;
        while (at < end && page.charAt(at) <= ' ') {
            at++;
        }
        return at;
    }

    /** Reads {@code name{label="value",...} value}; other metrics than those of load are left. */
    private boolean readLine(int from, int end) {
        int at = from;
        while (at < end && page.charAt(at) != '{' && page.charAt(at) > ' ') {
            at++;
        }
        final String name = page.substring(from, at);
        if (!isOfLoad(name)) {
            return true;
        }
        rank = null;
        blocks = null;
        at = skipBlanks(at, end);
        if (at < end && page.charAt(at) == '{') {
            at = readLabels(at + 1, end);
            if (at < 0) {
                return false;
            }
        }
        final int number = rankNumber();
        if (number < UNLABELLED || (byRank.size() >= MOST_RANKS && !byRank.containsKey(number))) {
            return false;
        }
        final Values values = byRank.computeIfAbsent(number, _ -> new Values());
        return name.equals(VLLM_CACHE) ? readBlocks(values) : readValue(name, values, at, end);
    }

    private static boolean isOfLoad(String name) {
        return switch (name) {
            case "vllm:num_requests_running",
                    "vllm:num_requests_waiting",
                    "vllm:kv_cache_usage_perc",
                    "vllm:gpu_cache_usage_perc",
                    VLLM_CACHE,
                    "sglang:num_running_reqs",
                    "sglang:num_queue_reqs",
                    "sglang:num_used_tokens",
                    "sglang:max_total_num_tokens" ->
                    true;
            default -> false;
        };
    }

    /**
     * Reads labels up to the closing brace.
     *
     * @return the character after it; -1 where there is none
     */
    private int readLabels(int from, int end) {
        int at = skipBlanks(from, end);
        while (at < end && page.charAt(at) != '}') {
            final int equals = page.indexOf('=', at);
            final int open = equals < 0 ? end : skipBlanks(equals + 1, end);
            if (open >= end || page.charAt(open) != '"') {
                return -1;
            }
            int close = open + 1;
            while (close < end && page.charAt(close) != '"') {
                close += page.charAt(close) == '\\' ? 2 : 1;
            }
            if (close >= end) {
                return -1;
            }
            takeLabel(page.substring(at, equals), open + 1, close);
            at = skipBlanks(close + 1, end);
            if (at < end && page.charAt(at) == ',') {
                at = skipBlanks(at + 1, end);
            }
        }
        return at < end ? at + 1 : -1;
    }

    private void takeLabel(String name, int from, int to) {
        switch (name.strip()) {
            case "engine", "dp_rank" -> rank = page.substring(from, to);
            case "num_gpu_blocks" -> blocks = page.substring(from, to);
            default -> {}
        }
    }

    /** Below {@link #UNLABELLED} where the label is no rank. */
    private int rankNumber() {
        if (rank == null || rank.isEmpty()) {
            return UNLABELLED;
        }
        final boolean isNumber =
                rank.length() <= MOST_RANK_DIGITS
                        && rank.chars().allMatch(c -> c >= '0' && c <= '9');
        return isNumber ? Integer.parseInt(rank) : UNLABELLED - 1;
    }

    private boolean readBlocks(Values values) {
        if (blocks != null && !blocks.equals("None")) {
            values.blocks = larger(values.blocks, number(blocks), values);
        }
        return true;
    }

    private boolean readValue(String name, Values values, int from, int end) {
        final int at = skipBlanks(from, end);
        int to = at;
        while (to < end && page.charAt(to) > ' ') {
            to++;
        }
        if (at == to) {
            return false;
        }
        final double value = number(page.substring(at, to));
        switch (name) {
            case "vllm:num_requests_running", "sglang:num_running_reqs" ->
                    values.running = larger(values.running, value, values);
            case "vllm:num_requests_waiting", "sglang:num_queue_reqs" ->
                    values.waiting = larger(values.waiting, value, values);
            case "sglang:num_used_tokens" ->
                    values.usedTokens = larger(values.usedTokens, value, values);
            case "sglang:max_total_num_tokens" ->
                    values.tokens = larger(values.tokens, value, values);
            default -> values.usage = larger(values.usage, value, values);
        }
        return true;
    }

    /** NaN where the text is no number. */
    private static double number(String text) {
        try {
            return switch (text) {
                case "+Inf", "Inf" -> Double.POSITIVE_INFINITY;
                case "-Inf" -> Double.NEGATIVE_INFINITY;
                default -> Double.parseDouble(text);
            };
        } catch (NumberFormatException e) {
            return Double.NaN;
        }
    }

    private static double larger(double known, double value, Values values) {
        values.isBad |= Double.isNaN(value) || value < 0;
        return Double.isNaN(known) ? value : Math.max(known, value);
    }
}
