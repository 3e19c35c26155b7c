package io.kvasir.cli.doctor;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.cli.admin.MetricsPage;
import io.kvasir.cli.console.Json;
import io.kvasir.gateway.openai.HealthAnswer;
import io.kvasir.prompt.chat.ChatModel;

import java.io.IOException;
import java.net.http.HttpResponse;
import java.time.Clock;
import java.time.DateTimeException;
import java.time.Duration;
import java.time.Instant;
import java.time.ZonedDateTime;
import java.time.format.DateTimeFormatter;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Set;

/** What an engine's HTTP server says: that it is there, of what model, with which tokens. */
final class ServerChecks {
    static final String REACHABLE = "reachable";
    private static final String MODEL = "model";
    private static final String CLOCK = "clock";
    private static final String TOKENS = "token ids";
    private static final String TEMPLATE = "chat template";
    private static final Duration MOST_SKEW = Duration.ofSeconds(5);
    private static final int MOST_MODELS = 8;
    private static final int MOST_SHOWN = 24;
    private static final String SAMPLE =
            "Kvasir asks: naïve café, 42 times?\n\n\tYes - it's 3.14 (北京) 🙂";
    private static final int MOST_BLOCK_SIZE = 99_999;
    private static final String VLLM = "vllm:cache_config_info";
    private static final String SGLANG = "sglang:page_size";

    private final TestedEngine tested;
    private final EngineApi api;
    private final Clock clock;
    private final List<Check> checks;
    private String model;

    /**
     * @param checks where outcomes are added
     */
    ServerChecks(TestedEngine tested, EngineApi api, Clock clock, List<Check> checks) {
        this.tested = tested;
        this.api = api;
        this.clock = clock;
        this.checks = checks;
        model = tested.modelOrNull();
    }

    /**
     * Runs them.
     *
     * @return whether the server is there
     */
    boolean run() throws InterruptedException {
        final Instant asked = clock.instant();
        final HttpResponse<byte[]> health;
        try {
            health = api.get("/health");
        } catch (IOException e) {
            checks.add(unreachable(String.valueOf(e.getMessage())));
            return false;
        }
        final String fault = HealthAnswer.faultOrNull(health.statusCode());
        if (fault != null) {
            checks.add(unreachable("GET /health " + fault));
            return false;
        }
        checks.add(
                Check.pass(
                        REACHABLE,
                        "GET /health answered " + health.statusCode(),
                        HealthAnswer.GOOD));
        checks.add(clock(health, asked));
        checks.add(model());
        tokens();
        return true;
    }

    private static Check unreachable(String seen) {
        return Check.fail(
                REACHABLE,
                seen,
                "GET /health " + HealthAnswer.GOOD,
                "start the engine; the URL is its base, without /v1");
    }

    /** Name of the model to ask for; null where the engine names none. */
    String modelOrNull() {
        return model;
    }

    /** The engine's clock was read between the question and the answer. */
    private Check clock(HttpResponse<byte[]> answer, Instant asked) {
        final String date = answer.headers().firstValue("date").orElse("");
        final Instant theirs;
        try {
            theirs = ZonedDateTime.parse(date, DateTimeFormatter.RFC_1123_DATE_TIME).toInstant();
        } catch (DateTimeException e) {
            return Check.skip(CLOCK, "no Date header of a known form: '" + date + "'", "");
        }
        final Instant answered = clock.instant();
        final Instant nearest =
                theirs.isBefore(asked) ? asked : theirs.isAfter(answered) ? answered : theirs;
        final Duration skew = Duration.between(nearest, theirs);
        final String seen = skew.toSeconds() + " s ahead of this machine";
        final String expected = "at most " + MOST_SKEW.toSeconds() + " s apart";
        return skew.abs().compareTo(MOST_SKEW) <= 0
                ? Check.pass(CLOCK, seen, expected)
                : Check.fail(
                        CLOCK,
                        seen,
                        expected,
                        "have NTP set the clocks of both machines: ages of events, traces and logs"
                                + " do not fit together");
    }

    private Check model() throws InterruptedException {
        final List<String> served = new ArrayList<>();
        try {
            for (JsonNode each : api.object("/v1/models").path("data")) {
                final String id = each.path("id").asText();
                if (served.size() < MOST_MODELS && !id.isBlank()) {
                    served.add(id);
                }
            }
        } catch (IOException | EngineApi.AnswerException e) {
            return Check.fail(
                    MODEL,
                    String.valueOf(e.getMessage()),
                    "a list of models",
                    "the gateway speaks to OpenAI-compatible servers: is this one?");
        }
        if (served.contains(model)) {
            return Check.pass(MODEL, "serves " + served, model);
        }
        final String asked = model;
        if (!served.isEmpty()) {
            model = served.getFirst(); // one wrong name is not to hide what else is wrong
        }
        if (asked == null && model != null) {
            return Check.pass(MODEL, "serves " + served, "any, as none is named here");
        }
        return Check.fail(
                MODEL,
                "serves " + served,
                asked == null ? "a model" : asked,
                "set model to a name that it serves, or start it with --served-model-name of this"
                        + " one");
    }

    private void tokens() throws InterruptedException {
        final ChatModel encoder = tested.encoderOrNull();
        if (encoder == null) {
            final String why = "no tokenizer is named here";
            final String remedy =
                    "name the model's folder by tokenizer; without it only prompts of token ids are"
                            + " routed by prefix";
            checks.add(Check.skip(TOKENS, why, remedy));
            checks.add(Check.skip(TEMPLATE, why, remedy));
            return;
        }
        final ObjectNode text = body().put("prompt", SAMPLE);
        checks.add(
                compared(
                        TOKENS,
                        text,
                        encoder.completionTokens(SAMPLE),
                        "tokenizer must be the folder of the model that the engine serves"));
        if (!encoder.hasChatTemplate()) {
            checks.add(Check.skip(TEMPLATE, "the model's folder has none", ""));
            return;
        }
        final ObjectNode chat = body();
        chat.putArray("messages").addObject().put("role", "user").put("content", SAMPLE);
        final int[] expected;
        try {
            expected = encoder.chatTokens(chat);
        } catch (RuntimeException e) {
            checks.add(
                    Check.fail(
                            TEMPLATE,
                            String.valueOf(e.getMessage()),
                            "a template that can be used",
                            "put the template that the engine uses beside the tokenizer, as"
                                    + " chat_template.jinja"));
            return;
        }
        checks.add(
                compared(
                        TEMPLATE,
                        chat,
                        expected,
                        "the engine renders another template (its --chat-template?): put the same"
                                + " beside the tokenizer, as chat_template.jinja"));
    }

    private ObjectNode body() {
        return Json.object().put("model", model);
    }

    private Check compared(String name, ObjectNode body, int[] expected, String remedy)
            throws InterruptedException {
        final int[] actual;
        try {
            final JsonNode tokens = api.post("/tokenize", body).path("tokens");
            actual = tokens.isArray() ? Json.MAPPER.convertValue(tokens, int[].class) : null;
        } catch (EngineApi.AnswerException e) {
            return e.isAbsent()
                    ? Check.skip(
                            name,
                            String.valueOf(e.getMessage()),
                            "the engine does not say its token ids; compare prompt_tokens of"
                                    + " answers")
                    : Check.fail(name, String.valueOf(e.getMessage()), "token ids", remedy);
        } catch (IOException | IllegalArgumentException e) {
            return Check.fail(name, String.valueOf(e.getMessage()), "token ids", remedy);
        }
        if (actual == null) {
            return Check.fail(name, "no token ids", expected.length + " token ids", remedy);
        }
        final int at = Arrays.mismatch(expected, actual);
        return at < 0
                ? Check.pass(name, actual.length + " token ids", "the same here")
                : Check.fail(
                        name,
                        "from token " + at + " on: " + shown(actual, at),
                        shown(expected, at),
                        remedy);
    }

    private static String shown(int[] tokens, int from) {
        final int end = Math.min(tokens.length, from + MOST_SHOWN);
        return Arrays.toString(Arrays.copyOfRange(tokens, Math.min(from, end), end))
                + (end < tokens.length ? " and more" : "");
    }

    /** Tokens of a block by the engine's metrics; 0 where they do not say. */
    int statedBlockSize() throws InterruptedException {
        final MetricsPage page;
        try {
            page = MetricsPage.read(api.get("/metrics").body(), Set.of(VLLM, SGLANG));
        } catch (IOException e) {
            return 0;
        }
        for (MetricsPage.Series series : page.series(VLLM)) {
            final String size = series.labels().getOrDefault("block_size", "");
            if (size.matches("[1-9][0-9]{0,4}")) {
                return Integer.parseInt(size);
            }
        }
        return page.series(SGLANG).stream()
                .mapToInt(series -> (int) series.value())
                .filter(size -> size > 0 && size <= MOST_BLOCK_SIZE)
                .findFirst()
                .orElse(0);
    }
}
