package io.kvasir.sim.http;

import io.kvasir.host.ClientWatch;
import io.kvasir.sim.batch.Completion;
import io.kvasir.sim.batch.Gate;
import io.kvasir.sim.batch.InjectedFaults;
import io.kvasir.sim.batch.SimRequest;
import io.kvasir.sim.batch.StepLoop;
import io.kvasir.sim.cache.BlockNamer;
import io.kvasir.sim.config.HandoffFault;
import io.kvasir.sim.config.SimConfig;
import io.kvasir.sim.events.Labels;
import io.kvasir.sim.faults.SimFaults;

import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.io.Content;
import org.eclipse.jetty.io.EofException;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;
import org.eclipse.jetty.util.Callback;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

import java.io.IOException;
import java.io.InputStream;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.concurrent.ThreadLocalRandom;

/** Answers completions, chats, and the conversations of two other APIs. Any thread, blocking. */
final class CompletionEndpoint {
    /** What a request speaks. */
    enum Api {
        COMPLETIONS,
        CHAT,
        MESSAGES,
        RESPONSES
    }

    private static final Logger LOG = LoggerFactory.getLogger(CompletionEndpoint.class);
    private static final int DEFAULT_COMPLETION_TOKENS = 16;
    private static final int MOST_SAMPLES = 128;

    private final SimConfig config;
    private final StepLoop loop;
    private final SimFaults faults;
    private final InjectedFaults injected;
    private final Models models;
    private final Handoff handoff;

    CompletionEndpoint(
            SimConfig config,
            StepLoop loop,
            SimFaults faults,
            InjectedFaults injected,
            Models models,
            Handoff handoff) {
        this.handoff = handoff;
        this.config = config;
        this.loop = loop;
        this.faults = faults;
        this.injected = injected;
        this.models = models;
    }

    void handle(Api form, Request request, Response response, Callback callback) throws Exception {
        final boolean chat = form != Api.COMPLETIONS;
        final ApiRequest api;
        try (InputStream body = Content.Source.asInputStream(request)) {
            api = ApiRequest.read(body);
        }
        final int failure = injected.nextFailure();
        if (failure != 0) {
            throw ApiException.of(failure, "Fault on demand: status " + failure);
        }
        final Labels labels = labels(request, api);
        final String id = requestId(request);
        final List<SimRequest> parts = sequences(form, api, labels, Answers.name(chat, id));
        final int rank = rank(request, api);
        for (SimRequest part : parts) {
            loop.submit(rank, part);
        }
        final ClientWatch client = new ClientWatch(request);
        try {
            final String model = labels.lora() == null ? config.model() : labels.loraName();
            final Answers answers =
                    form == Api.MESSAGES || form == Api.RESPONSES
                            ? new ConversationAnswers(
                                    form == Api.MESSAGES, api, model, id, parts, handoff)
                            : new Answers(chat, api, model, id, parts, handoff);
            if (api.stream) {
                stream(answers, parts, client, response);
            } else {
                answer(answers, parts, client, response);
            }
            callback.succeeded();
        } catch (IOException e) { // the client went away, or a fault wants it to think that we did
            client.cut();
            callback.failed(e);
        } finally {
            for (SimRequest part : parts) {
                loop.end(rank, part);
            }
        }
    }

    private List<SimRequest> sequences(Api form, ApiRequest api, Labels labels, String name) {
        if (api.n < 1 || api.n > MOST_SAMPLES) {
            throw ApiException.badRequest(
                    "n must be between 1 and " + MOST_SAMPLES + ", got " + api.n + ".", "n");
        }
        final boolean chat = form != Api.COMPLETIONS;
        final List<int[]> prompts = chat ? List.of(chatPrompt(form, api)) : prompts(api);
        handoff.check(api, prompts.size());
        final BlockNamer namer = loop.namer();
        final Gate gate = new Gate();
        final List<SimRequest> parts = new ArrayList<>(prompts.size() * api.n);
        for (int p = 0; p < prompts.size(); p++) {
            final int[] prompt = prompts.get(p);
            final Completion.Limits limits = limits(chat, api, prompt.length);
            for (int variant = 0; variant < api.n; variant++) {
                final SimRequest part =
                        new SimRequest(
                                Completion.of(prompt, variant, limits),
                                namer,
                                labels,
                                api.announceHits,
                                gate);
                final int other = ~variant; // of no sample that is asked for
                handoff.attach(
                        part,
                        new Handoff.Part(
                                api,
                                p,
                                chat ? name : name + "-" + p,
                                () -> Completion.of(prompt, other, limits)));
                parts.add(part);
            }
        }
        return parts;
    }

    private static int[] chatPrompt(Api form, ApiRequest api) {
        if (api.messages == null || api.messages.isEmpty()) {
            throw ApiException.badRequest("`messages` is missing or empty.", "messages");
        }
        final List<ApiRequest.Message> all = new ArrayList<>(api.messages);
        if (api.instructions != null) {
            all.addFirst(new ApiRequest.Message("system", api.instructions));
        }
        return SimTokenizer.encode(
                SimTokenizer.chat(all, api.addGenerationPrompt), form == Api.RESPONSES);
    }

    private static List<int[]> prompts(ApiRequest api) {
        final List<int[]> prompts = new ArrayList<>();
        for (Object prompt : api.prompts) {
            final int[] tokens =
                    prompt instanceof String text
                            ? SimTokenizer.encode(text, api.addSpecialTokens)
                            : (int[]) prompt;
            if (tokens.length == 0) {
                throw ApiException.badRequest("The prompt is empty.", "prompt");
            }
            prompts.add(tokens);
        }
        if (prompts.isEmpty()) {
            throw ApiException.badRequest(
                    api.promptGiven ? "The prompt is empty." : "`prompt` is missing.", "prompt");
        }
        return prompts;
    }

    private Completion.Limits limits(boolean chat, ApiRequest api, int promptTokens) {
        final int room = config.maxModelLength() - promptTokens;
        if (room < 1) {
            throw ApiException.badRequest(
                    "This model's maximum context length is "
                            + config.maxModelLength()
                            + " tokens. However, your prompt contains "
                            + promptTokens
                            + " input tokens, which exceeds this limit even without any output"
                            + " tokens. Please reduce the length of the input prompt.",
                    "input_tokens");
        }
        Integer wanted = api.maxTokens;
        if (chat && api.maxCompletionTokens != null) {
            wanted = api.maxCompletionTokens;
        }
        if (wanted == null) {
            wanted = chat || api.unlimited ? room : DEFAULT_COMPLETION_TOKENS;
        }
        if (wanted < 1) {
            throw ApiException.badRequest(
                    "max_tokens must be at least 1, got " + wanted + ".", "max_tokens");
        }
        if (api.minTokens < 0 || api.minTokens > wanted) {
            throw ApiException.badRequest(
                    "min_tokens must be between 0 and max_tokens="
                            + wanted
                            + ", got "
                            + api.minTokens
                            + ".",
                    "min_tokens");
        }
        final boolean one = handoff.oneToken(api);
        final int end = chat ? SimTokenizer.IM_END : SimTokenizer.END_OF_TEXT;
        return new Completion.Limits(
                one ? 1 : Math.min(wanted, room),
                one ? 0 : api.minTokens,
                api.ignoreEos ? -1 : end,
                config.meanOutputTokens(),
                api.stops,
                api.stopTokens,
                api.includeStop);
    }

    private Labels labels(Request request, ApiRequest api) {
        final String header = request.getHeaders().get("X-Session-ID");
        return new Labels(
                models.adapter(api.model), api.salt, api.session != null ? api.session : header);
    }

    private int rank(Request request, ApiRequest api) {
        final String header = request.getHeaders().get("X-data-parallel-rank");
        if (header == null || !header.matches("-?[0-9]{1,9}")) {
            final int agreed = handoff.rank(api);
            return agreed >= 0 ? agreed : loop.leastLoadedRank();
        }
        final int rank = Integer.parseInt(header);
        if (rank < 0 || rank >= loop.ranks()) {
            throw ApiException.badRequest(
                    "data_parallel_rank " + rank + " is out of range [0, " + loop.ranks() + ").",
                    null);
        }
        return rank;
    }

    private static String requestId(Request request) {
        final String given = request.getHeaders().get("X-Request-Id");
        return given != null
                ? given
                : HexFormat.of().toHexDigits(ThreadLocalRandom.current().nextLong());
    }

    private void answer(
            Answers answers, List<SimRequest> parts, ClientWatch client, Response response)
            throws Exception {
        for (SimRequest part : parts) {
            while (part.phase() != SimRequest.Phase.FINISHED) {
                await(part, client);
            }
        }
        final boolean prefill = parts.getFirst().hold() != null;
        if (prefill && injected.next(HandoffFault.DIES_BEFORE_ANSWER)) {
            faults.restart();
            throw new EofException("died on demand");
        }
        eventSequence(response, parts.getFirst());
        response.getHeaders().put(HttpHeader.CONTENT_TYPE, "application/json");
        write(response, true, answers.whole());
        if (prefill && injected.next(HandoffFault.DIES_AFTER_ANSWER)) {
            faults.restart();
        }
    }

    private void stream(
            Answers answers, List<SimRequest> parts, ClientWatch client, Response response)
            throws Exception {
        final int[] sent = new int[parts.size()];
        final boolean cut = injected.nextCut();
        final StringBuilder out = new StringBuilder(512);
        int open = parts.size();
        boolean begun = false;
        while (true) {
            open = parts.size();
            for (int i = 0; i < parts.size(); i++) {
                final int total = parts.get(i).script().outputTokens();
                final int ready =
                        Math.min(shown(parts.get(i)), cut ? Math.max(1, total / 2) : total);
                if (ready > sent[i]) {
                    if (sent[i] == 0) {
                        answers.opening(out, i);
                    }
                    answers.chunk(out, i, sent[i], ready);
                    sent[i] = ready;
                }
                open -= sent[i] == total ? 1 : 0;
            }
            if (open == 0 && !cut) {
                break;
            }
            if (!out.isEmpty()) {
                if (!begun) {
                    begun = true;
                    begin(response, parts.getFirst());
                }
                write(response, false, out);
                out.setLength(0);
                if (cut && sent[0] >= Math.max(1, parts.getFirst().script().outputTokens() / 2)) {
                    throw new EofException("cut on demand");
                }
            }
            try {
                await(next(parts, sent), client);
            } catch (ApiException e) {
                if (begun) {
                    throw new EofException(e.getMessage());
                }
                throw e;
            }
        }
        if (!begun) {
            begin(response, parts.getFirst());
        }
        answers.closing(out);
        write(response, true, out);
    }

    /** Tokens that may be shown: none of a prefill that is not finished before its pull. */
    private static int shown(SimRequest part) {
        return part.hold() != null
                        && part.hold().answeredAfterPull()
                        && part.phase() != SimRequest.Phase.FINISHED
                ? 0
                : part.generated();
    }

    /** A part that has something left to send. */
    private static SimRequest next(List<SimRequest> parts, int[] sent) {
        for (int i = 0; i < sent.length; i++) {
            if (sent[i] < parts.get(i).script().outputTokens()) {
                return parts.get(i);
            }
        }
        return parts.getFirst();
    }

    private static void begin(Response response, SimRequest part) {
        eventSequence(response, part);
        response.getHeaders().put(HttpHeader.CONTENT_TYPE, "text/event-stream; charset=utf-8");
        response.getHeaders().put(HttpHeader.CACHE_CONTROL, "no-cache");
    }

    private static void eventSequence(Response response, SimRequest part) {
        response.getHeaders().put("x-sim-event-sequence", Long.toString(part.eventSequence()));
    }

    /** Waits for news; throws when there will be none or the client has left. */
    private void await(SimRequest part, ClientWatch client) throws EofException {
        part.gate().await(ClientWatch.periodNs());
        if (part.phase() == SimRequest.Phase.BROKEN || !loop.alive()) {
            throw new EofException("engine restarted");
        }
        if (part.phase() == SimRequest.Phase.FAILED) {
            LOG.info("a hand-off failed: {}", part.failure());
            final boolean isReported = config.handoff().strict() || part.hold() != null;
            throw ApiException.of(500, isReported ? part.failure() : "Internal server error");
        }
        if (client.disconnected()) {
            throw new EofException("client gone");
        }
    }

    private static void write(Response response, boolean last, CharSequence text) throws Exception {
        final ByteBuffer bytes = StandardCharsets.UTF_8.encode(text.toString());
        Content.Sink.write(response, last, bytes);
    }
}
