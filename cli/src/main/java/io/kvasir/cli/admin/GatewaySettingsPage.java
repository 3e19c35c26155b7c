package io.kvasir.cli.admin;

import com.fasterxml.jackson.databind.node.ObjectNode;

import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;

/** The settings of a gateway that runs: reads and changes them over its admin port. */
public final class GatewaySettingsPage {
    private static final String PAGE = "/settings";
    private static final int BAD_REQUEST = 400;
    private static final int CONFLICT = 409;

    private GatewaySettingsPage() {}

    /** All of them. */
    public static ObjectNode read(AdminPort port) throws InterruptedException {
        return (ObjectNode) port.json(PAGE, port.page(PAGE)); // or it has thrown
    }

    /**
     * What a change has led to.
     *
     * @param page answer of the gateway
     * @param refusal why nothing was changed; empty where it was
     */
    public record Change(ObjectNode page, String refusal) {}

    /** Changes some, or is refused. */
    public static Change change(AdminPort port, ObjectNode body) throws InterruptedException {
        final HttpResponse<byte[]> answer =
                port.patch(
                        PAGE,
                        body.toString().getBytes(StandardCharsets.UTF_8),
                        BAD_REQUEST,
                        CONFLICT);
        final boolean isRefused =
                answer.statusCode() == BAD_REQUEST || answer.statusCode() == CONFLICT;
        return new Change(
                (ObjectNode) port.json(PAGE, answer), isRefused ? AdminPort.words(answer) : "");
    }
}
