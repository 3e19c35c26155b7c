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
            case null, default -> UNKNOWN;
        };
    }
}
