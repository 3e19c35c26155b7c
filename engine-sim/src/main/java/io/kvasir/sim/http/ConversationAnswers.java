package io.kvasir.sim.http;

import io.kvasir.sim.batch.SimRequest;

import java.util.List;

/**
 * Writes answers of the Messages API and of the Responses API in the simplest form that vLLM's
 * have: one text, and what it took. One HTTP request, one thread.
 */
final class ConversationAnswers extends Answers {
    private final boolean isMessages;
    private final String model;
    private final String id;
    private final SimRequest part;
    private int events;

    ConversationAnswers(
            boolean isMessages,
            ApiRequest api,
            String model,
            String id,
            List<SimRequest> parts,
            Handoff handoff) {
        super(true, api, model, id, parts, handoff);
        this.isMessages = isMessages;
        this.model = model;
        this.id = (isMessages ? "msg_" : "resp_") + id;
        part = parts.getFirst();
    }

    @Override
    String whole() {
        final StringBuilder out = new StringBuilder(1024);
        object(out, true);
        return out.toString();
    }

    @Override
    void opening(StringBuilder out, int index) {
        if (isMessages) {
            event(out, "message_start").append(",\"message\":");
            object(out, false);
            out.append("}\n\n");
            event(out, "content_block_start")
                    .append(
                            ",\"index\":0,\"content_block\":{\"type\":\"text\",\"text\":\"\"}}\n\n");
        } else {
            event(out, "response.created").append(",\"response\":");
            object(out, false);
            out.append("}\n\n");
        }
    }

    @Override
    void chunk(StringBuilder out, int index, int from, int to) {
        if (isMessages) {
            event(out, "content_block_delta")
                    .append(",\"index\":0,\"delta\":{\"type\":\"text_delta\",\"text\":");
            Json.string(out, part.script().text(from, to)).append('}');
        } else {
            event(out, "response.output_text.delta")
                    .append(",\"output_index\":0,\"content_index\":0,\"delta\":");
            Json.string(out, part.script().text(from, to));
        }
        out.append("}\n\n");
    }

    @Override
    void closing(StringBuilder out) {
        if (isMessages) {
            event(out, "content_block_stop").append(",\"index\":0}\n\n");
            event(out, "message_delta").append(",\"delta\":{\"stop_reason\":\"");
            out.append(stopReason()).append("\"},");
            usage(out, true);
            out.append("}\n\n");
            event(out, "message_stop").append("}\n\n");
        } else {
            event(out, "response.completed").append(",\"response\":");
            object(out, true);
            out.append("}\n\n");
        }
    }

    /** The answer itself: as it begins, or whole. */
    private void object(StringBuilder out, boolean ended) {
        out.append("{\"id\":");
        Json.string(out, id).append(",\"model\":");
        Json.string(out, model);
        if (isMessages) {
            out.append(",\"type\":\"message\",\"role\":\"assistant\",\"content\":[");
            if (ended) {
                text(out, "text");
            }
            out.append("],\"stop_reason\":");
            Json.string(out, ended ? stopReason() : null).append(',');
            usage(out, ended);
        } else {
            out.append(",\"object\":\"response\",\"status\":\"");
            out.append(ended ? isCut() ? "incomplete" : "completed" : "in_progress");
            out.append("\",\"output\":[");
            if (ended) {
                out.append("{\"type\":\"message\",\"role\":\"assistant\",\"content\":[");
                text(out, "output_text");
                out.append("]}");
            }
            out.append("],");
            if (ended) {
                usage(out, true);
            } else {
                out.append("\"usage\":null");
            }
        }
        out.append('}');
    }

    private void text(StringBuilder out, String type) {
        out.append("{\"type\":\"").append(type).append("\",\"text\":");
        Json.string(out, part.script().text()).append('}');
    }

    private void usage(StringBuilder out, boolean ended) {
        final int prompt = part.script().promptTokens();
        final int cached = ended ? part.cachedTokens() : 0;
        out.append("\"usage\":{\"input_tokens\":").append(isMessages ? prompt - cached : prompt);
        out.append(",\"output_tokens\":").append(ended ? part.script().outputTokens() : 0);
        if (isMessages) {
            out.append(",\"cache_read_input_tokens\":").append(cached).append('}');
        } else {
            out.append(",\"input_tokens_details\":{\"cached_tokens\":").append(cached);
            out.append("}}");
        }
    }

    private boolean isCut() {
        return "length".equals(part.script().finishReason());
    }

    private String stopReason() {
        return isCut() ? "max_tokens" : "end_turn";
    }

    private StringBuilder event(StringBuilder out, String type) {
        out.append("event: ").append(type).append("\ndata: {\"type\":\"").append(type).append('"');
        return isMessages ? out : out.append(",\"sequence_number\":").append(events++);
    }
}
