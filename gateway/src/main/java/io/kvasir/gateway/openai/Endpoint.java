package io.kvasir.gateway.openai;

import java.util.Map;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/** What the serving port answers, as metrics and the access log name it. */
public enum Endpoint {
    CHAT(InferenceRequest.Route.CHAT),
    COMPLETIONS(InferenceRequest.Route.COMPLETIONS),
    RESPONSES(InferenceRequest.Route.RESPONSES),
    MESSAGES(InferenceRequest.Route.MESSAGES),
    GENERATE(InferenceRequest.Route.GENERATE),
    INFERENCE_GENERATE(InferenceRequest.Route.INFERENCE_GENERATE),
    COUNT_TOKENS(InferenceRequest.Route.COUNT_TOKENS),
    EMBEDDINGS(InferenceRequest.Route.EMBEDDINGS),
    POOLING(InferenceRequest.Route.POOLING),
    CLASSIFY(InferenceRequest.Route.CLASSIFY),
    SCORE(InferenceRequest.Route.SCORE),
    V1_SCORE(InferenceRequest.Route.V1_SCORE),
    RERANK(InferenceRequest.Route.RERANK),
    V1_RERANK(InferenceRequest.Route.V1_RERANK),
    V2_RERANK(InferenceRequest.Route.V2_RERANK),
    DETOKENIZE(InferenceRequest.Route.DETOKENIZE),
    MODELS("/v1/models", "models"),
    TOKENIZE("/tokenize", "tokenize"),
    LIVE("/live", "live"),
    READY("/ready", "ready"),
    HEALTH("/health", "health"),
    /** Any path that is none of these, and requests whose path could not be read. */
    UNKNOWN("-", "unknown");

    private static final String ONE_MODEL = MODELS.path + "/";
    private static final Map<String, Endpoint> BY_PATH =
            Stream.of(values())
                    .filter(endpoint -> endpoint != UNKNOWN)
                    .collect(Collectors.toMap(endpoint -> endpoint.path, endpoint -> endpoint));

    public final String path;
    public final String label;

    Endpoint(String path, String label) {
        this.path = path;
        this.label = label;
    }

    Endpoint(InferenceRequest.Route route) {
        this(route.path, route.label);
    }

    /** The endpoint of a path. */
    public static Endpoint of(String pathOrNull) {
        if (pathOrNull == null) {
            return UNKNOWN;
        }
        final Endpoint known = BY_PATH.get(pathOrNull);
        return known != null ? known : isOfOneModel(pathOrNull) ? MODELS : UNKNOWN;
    }

    /** Whether a path is that of one model, which there may not be. */
    public static boolean isOfOneModel(String path) {
        return path.startsWith(ONE_MODEL) && path.length() > ONE_MODEL.length();
    }

    /**
     * The model of a path.
     *
     * @param path one of which {@link #isOfOneModel} says so
     */
    public static String modelOf(String path) {
        return path.substring(ONE_MODEL.length());
    }
}
