package io.kvasir.gateway;

import static org.junit.jupiter.api.Assertions.assertEquals;

import io.kvasir.gateway.testing.FakeEngine;
import io.kvasir.gateway.testing.Gateways;
import io.kvasir.gateway.testing.MetricsPage;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** Which answers' cached tokens are compared with what was predicted. */
class ComparedAnswersTest {
    private static final String ANSWER =
            "{\"choices\":[],\"usage\":{\"prompt_tokens\":3,\"completion_tokens\":1,"
                    + "\"prompt_tokens_details\":{\"cached_tokens\":2}}}";

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "\"max_tokens\":1|1",
                "\"n\":1,\"prompt_logprobs\":null,\"echo\":false,\"use_beam_search\":false|1",
                "\"prompt_logprobs\":0|0",
                "\"prompt_logprobs\":false|0",
                "\"echo\":true,\"logprobs\":1,\"max_tokens\":0|0",
                "\"use_beam_search\":true|0",
                "\"extra_key\":null,\"lora_path\":null|1",
                "\"extra_key\":\"tenant\"|0",
                "\"lora_path\":\"a\"|0",
                "\"n\":3|0",
                "\"best_of\":2|0"
            })
    void answersThatStateSomethingElseAreNotCompared(String members, int compared)
            throws Exception {
        try (FakeEngine engine = new FakeEngine(call -> call.json(200, ANSWER));
                GatewayServer gateway =
                        GatewayServer.start(Gateways.config(engine.worker("w")).build())) {
            assertEquals(
                    200,
                    Gateways.post(
                                    gateway,
                                    "/v1/completions",
                                    "{\"prompt\":[1,2,3]," + members + "}")
                            .statusCode());
            final MetricsPage page = MetricsPage.of(gateway);
            assertEquals(compared, page.sum("kvasir_cache_prediction_total"));
            assertEquals(compared * 2, page.sum("kvasir_engine_cached_tokens_total"));
            assertEquals(1, page.sum("kvasir_cached_tokens_count"), "it is shown all the same");
        }
    }
}
