package io.kvasir.gateway.openai;

/** What the serving port answers, as metrics and the access log name it. */
public enum Endpoint {
    CHAT(InferenceRequest.Route.CHAT.path, InferenceRequest.Route.CHAT.label),
    COMPLETIONS(InferenceRequest.Route.COMPLETIONS.path, InferenceRequest.Route.COMPLETIONS.label),
    MODELS("/v1/models", "models"),
    TOKENIZE("/tokenize", "tokenize"),
    LIVE("/live", "live"),
    READY("/ready", "ready"),
    HEALTH("/health", "health"),
    /** Any path that is none of these, and requests whose path could not be read. */
    UNKNOWN("-", "unknown");

    private static final String ONE_MODEL = MODELS.path + "/";

    public final String path;
    public final String label;

    Endpoint(String path, String label) {
        this.path = path;
        this.label = label;
    }

    /** The endpoint of a path. */
    public static Endpoint of(String pathOrNull) {
        return switch (pathOrNull) {
            case "/v1/chat/completions" -> CHAT;
            case "/v1/completions" -> COMPLETIONS;
            case "/v1/models" -> MODELS;
            case "/tokenize" -> TOKENIZE;
            case "/live" -> LIVE;
            case "/ready" -> READY;
            case "/health" -> HEALTH;
            case null -> UNKNOWN;
            default -> isOfOneModel(pathOrNull) ? MODELS : UNKNOWN;
        };
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
