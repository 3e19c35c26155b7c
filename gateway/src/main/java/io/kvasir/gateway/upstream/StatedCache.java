package io.kvasir.gateway.upstream;

import io.kvasir.gateway.openai.UsageReader;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * What an engine states of its cache on its page of metrics: vLLM in the labels of one metric,
 * SGLang ({@code --enable-metrics}) in the values of two.
 *
 * @param blockSize tokens of a block; {@link UsageReader#UNKNOWN} where it does not say
 * @param blocks how many it has, of one rank; likewise
 */
record StatedCache(int blockSize, int blocks) {
    private static final Pattern VLLM_BLOCK_SIZE =
            Pattern.compile("vllm:cache_config_info\\{(?:[^}]*,)?block_size=\"(\\d+)\"");
    private static final Pattern VLLM_BLOCKS =
            Pattern.compile("vllm:cache_config_info\\{(?:[^}]*,)?num_gpu_blocks=\"(\\d+)\"");
    private static final Pattern SGLANG_BLOCK_SIZE = value("sglang:page_size");
    private static final Pattern SGLANG_BLOCKS = value("sglang:num_pages");

    private static Pattern value(String metric) {
        return Pattern.compile("(?m)^" + metric + "(?:\\{[^}]*})? (\\d{1,9})(?:\\.0)?\\s*$");
    }

    /** Reads a page in Prometheus' text format. */
    static StatedCache of(String page) {
        return new StatedCache(
                first(page, VLLM_BLOCK_SIZE, SGLANG_BLOCK_SIZE),
                first(page, VLLM_BLOCKS, SGLANG_BLOCKS));
    }

    private static int first(String page, Pattern... patterns) {
        for (Pattern pattern : patterns) {
            final Matcher matcher = pattern.matcher(page);
            if (matcher.find()) {
                return number(matcher.group(1));
            }
        }
        return UsageReader.UNKNOWN;
    }

    private static int number(String digits) {
        try {
            return Integer.parseInt(digits);
        } catch (NumberFormatException e) {
            return UsageReader.UNKNOWN; // more than any cache has
        }
    }
}
