package io.kvasir.sim.http;

import java.io.Serial;

/** A request that is answered with an error in vLLM's shape. */
final class ApiException extends RuntimeException {
    @Serial private static final long serialVersionUID = 1L;

    private final int status;
    private final String parameter;

    private ApiException(int status, String message, String parameter) {
        super(message, null, false, false);
        this.status = status;
        this.parameter = parameter;
    }

    static ApiException badRequest(String message, String parameter) {
        return new ApiException(400, message, parameter);
    }

    static ApiException unknownModel(String model) {
        return new ApiException(404, "The model `" + model + "` does not exist.", "model");
    }

    static ApiException of(int status, String message) {
        return new ApiException(status, message, null);
    }

    int status() {
        return status;
    }

    /** Name of the offending parameter or null. */
    String parameter() {
        return parameter;
    }

    /** vLLM's name for this kind of error. */
    String type() {
        return switch (status) {
            case 400 -> "BadRequestError";
            case 404 -> "NotFoundError";
            case 503 -> "ServiceUnavailableError";
            default -> status < 500 ? "BadRequestError" : "InternalServerError";
        };
    }
}
