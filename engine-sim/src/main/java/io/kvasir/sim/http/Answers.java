package io.kvasir.sim.http;

import io.kvasir.sim.batch.SimRequest;

import java.time.Instant;
import java.util.List;

/**
 * Writes answers in vLLM's shapes: whole ones, and the chunks of a stream. One HTTP request, one
 * thread.
 */
sealed class Answers permits ConversationAnswers {
    private static final String FINGERPRINT = "kvasir-sim";

    private final boolean chat;
    private final ApiRequest api;
    private final String model;
    private final String id;
    private final long created = Instant.now().getEpochSecond();
    private final List<SimRequest> parts;
    private final Handoff handoff;
    private int openParts;

    /**
     * Prepares answers.
     *
     * @param parts all sequences of the request, {@code api.n} per prompt
     */
    Answers(
            boolean chat,
            ApiRequest api,
            String model,
            String id,
            List<SimRequest> parts,
            Handoff handoff) {
        this.handoff = handoff;
        this.chat = chat;
        this.api = api;
        this.model = model;
        this.id = name(chat, id);
        this.parts = parts;
        openParts = parts.size();
    }

    /** What an answer is called in the API. */
    static String name(boolean chat, String id) {
        return (chat ? "chatcmpl-" : "cmpl-") + id;
    }

    String whole() {
        final StringBuilder out = new StringBuilder(1024);
        head(out, chat ? "chat.completion" : "text_completion");
        for (int i = 0; i < parts.size(); i++) {
            final SimRequest part = parts.get(i);
            out.append(i == 0 ? "" : ",").append("{\"index\":").append(i);
            if (chat) {
                out.append(",\"message\":{\"role\":\"assistant\",\"content\":");
                Json.string(out, part.script().text());
                out.append(",\"refusal\":null,\"annotations\":null,\"audio\":null");
                out.append(",\"function_call\":null,\"reasoning\":null}");
            } else {
                out.append(",\"text\":");
                Json.string(out, part.script().text());
            }
            out.append(",\"logprobs\":null,\"finish_reason\":");
            Json.string(out, part.script().finishReason());
            out.append(",\"stop_reason\":");
            Json.value(out, part.script().stopReason());
            out.append(",\"token_ids\":");
            Json.array(
                    out,
                    api.returnTokenIds
                            ? part.script().output(0, part.script().outputTokens())
                            : null);
            if (!chat) {
                out.append(",\"prompt_logprobs\":null,\"prompt_token_ids\":");
                Json.array(out, api.returnTokenIds ? promptIds(part) : null);
            }
            final String parameters = handoff.choiceParameters(part);
            if (parameters != null) {
                out.append(",\"disaggregated_params\":").append(parameters);
            }
            out.append('}');
        }
        out.append("],\"service_tier\":null,\"system_fingerprint\":\"").append(FINGERPRINT);
        out.append("\",");
        usage(out);
        if (chat) {
            out.append(",\"prompt_logprobs\":null,\"prompt_token_ids\":");
            Json.array(out, api.returnTokenIds ? promptIds(parts.getFirst()) : null);
        }
        out.append(",\"kv_transfer_params\":").append(handoff.parameters(parts.getFirst()));
        return out.append('}').toString();
    }

    /** Appends the chunk that opens a choice; only chats have one. */
    void opening(StringBuilder out, int index) {
        if (!chat) {
            return;
        }
        chunkHead(out, index);
        out.append("\"delta\":{\"role\":\"assistant\",\"content\":\"\"}");
        out.append(",\"logprobs\":null,\"finish_reason\":null}]");
        if (api.returnTokenIds) {
            out.append(",\"prompt_token_ids\":");
            Json.array(out, promptIds(parts.get(index)));
        }
        continuousUsage(out, index, 0);
        out.append("}\n\n");
    }

    /** Appends the chunk with some output tokens of a choice; the last one says how it ended. */
    void chunk(StringBuilder out, int index, int from, int to) {
        final SimRequest part = parts.get(index);
        final boolean last = to == part.script().outputTokens();
        chunkHead(out, index);
        out.append(chat ? "\"delta\":{\"content\":" : "\"text\":");
        Json.string(out, part.script().text(from, to));
        out.append(chat ? "}" : "").append(",\"logprobs\":null,\"finish_reason\":");
        Json.string(out, last ? part.script().finishReason() : null);
        out.append(",\"stop_reason\":");
        Json.value(out, last ? part.script().stopReason() : null);
        if (api.returnTokenIds) {
            if (!chat && from == 0) {
                out.append(",\"prompt_token_ids\":");
                Json.array(out, promptIds(part));
            }
            out.append(",\"token_ids\":");
            Json.array(out, part.script().output(from, to));
        }
        out.append("}]");
        openParts -= last ? 1 : 0;
        if (openParts == 0 && !api.includeUsage) { // else the chunk with the usage says it
            out.append(",\"system_fingerprint\":\"").append(FINGERPRINT).append('"');
        }
        continuousUsage(out, index, to);
        out.append("}\n\n");
    }

    /** Appends the chunk with the usage, where it was asked for, and the end mark. */
    void closing(StringBuilder out) {
        if (api.includeUsage) {
            out.append("data: ");
            head(out, chat ? "chat.completion.chunk" : "text_completion");
            out.append("],\"system_fingerprint\":\"").append(FINGERPRINT).append("\",");
            usage(out);
            out.append("}\n\n");
        }
        out.append("data: [DONE]\n\n");
    }

    private void chunkHead(StringBuilder out, int index) {
        out.append("data: ");
        head(out, chat ? "chat.completion.chunk" : "text_completion");
        out.append("{\"index\":").append(index).append(',');
    }

    private void head(StringBuilder out, String object) {
        out.append("{\"id\":");
        Json.string(out, id);
        out.append(",\"object\":\"").append(object);
        out.append("\",\"created\":").append(created);
        out.append(",\"model\":");
        Json.string(out, model);
        out.append(",\"choices\":[");
    }

    private void continuousUsage(StringBuilder out, int index, int outputTokens) {
        if (api.includeUsage && api.continuousUsage) {
            final int prompt = parts.get(index).script().promptTokens();
            out.append(',');
            usage(out, prompt, outputTokens);
            out.append('}');
        }
    }

    private void usage(StringBuilder out) {
        int prompt = 0;
        int output = 0;
        int cached = 0;
        for (int i = 0; i < parts.size(); i++) {
            final SimRequest part = parts.get(i);
            output += part.script().outputTokens();
            if (i % api.n == 0) { // the samples of a prompt share it
                prompt += part.script().promptTokens();
                cached += part.cachedTokens();
            }
        }
        usage(out, prompt, output);
        out.append(",\"prompt_tokens_details\":{\"cached_tokens\":").append(cached).append("}}");
    }

    private static void usage(StringBuilder out, int prompt, int output) {
        out.append("\"usage\":{\"prompt_tokens\":").append(prompt);
        out.append(",\"total_tokens\":").append(prompt + output);
        out.append(",\"completion_tokens\":").append(output);
    }

    private static int[] promptIds(SimRequest part) {
        return java.util.Arrays.copyOf(part.script().tokens(), part.script().promptTokens());
    }
}
