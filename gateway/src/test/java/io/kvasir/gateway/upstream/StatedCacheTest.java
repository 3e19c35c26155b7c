package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.gateway.openai.UsageReader;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Excerpts of pages of real engines: vLLM 0.32.0, SGLang 0.5.23. */
class StatedCacheTest {
    private static final StatedCache UNKNOWN =
            new StatedCache(UsageReader.UNKNOWN, UsageReader.UNKNOWN);

    @Test
    void ofVllm() {
        assertEquals(
                new StatedCache(32, 48),
                StatedCache.of(
                        "# TYPE vllm:cache_config_info gauge\n"
                                + "vllm:cache_config_info{_block_size_resolved=\"True\","
                                + "block_size=\"32\",cache_dtype=\"auto\",engine=\"0\","
                                + "num_gpu_blocks=\"48\",num_gpu_blocks_override=\"48\"} 1.0\n"));
    }

    @Test
    void ofSglang() {
        assertEquals(
                new StatedCache(16, 256),
                StatedCache.of(
                        "# HELP sglang:page_size KV cache page size in tokens.\n"
                                + "# TYPE sglang:page_size gauge\n"
                                + "sglang:page_size{engine_type=\"unified\",model_name=\"tiny\","
                                + "tp_rank=\"0\"} 16.0\n"
                                + "sglang:num_pages{engine_type=\"unified\",model_name=\"tiny\","
                                + "tp_rank=\"0\"} 256.0\n"));
    }

    @ParameterizedTest
    @ValueSource(
            strings = {
                "",
                "sglang:page_size",
                "sglang:page_size{} NaN\n",
                "sglang:page_size{} 1e300\n",
                "my_sglang:page_size{} 16.0\n",
                "sglang:page_size_other{} 16.0\n",
                "vllm:cache_config_info{block_size=\"99999999999999999999\"} 1.0\n",
                "vllm:cache_config_info{block_size=\"\"} 1.0\n"
            })
    void unknownWhereItIsNotStated(String page) {
        assertEquals(UNKNOWN, StatedCache.of(page));
    }
}
