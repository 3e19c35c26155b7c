package io.kvasir.cli.admin;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.cli.console.CommandFailure;
import io.kvasir.cli.console.Json;
import io.kvasir.cli.console.Terminal;
import io.kvasir.cli.http.BoundedClient;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Set;

/** A gateway's admin port. Any thread. */
public final class AdminPort implements AutoCloseable {
    /** Of ten thousand workers, several times. */
    private static final long MOST_BYTES = 256L << 20;

    private static final int MOST_WORDS = 400;
    private static final int OK = 200;
    private static final int UNAUTHORIZED = 401;
    private static final int FORBIDDEN = 403;

    /** How a gateway begins that refuses a caller for another reason than its token. */
    private static final String TOKENLESS = "without an admin token";

    private final URI url;
    private final AdminToken tokenOrNull;
    private final BoundedClient client;

    /**
     * One to be asked.
     *
     * @param url its base
     * @param tokenOrNull null for none
     * @param limit longest time of one exchange
     */
    public AdminPort(URI url, AdminToken tokenOrNull, Duration limit) {
        this.url = BoundedClient.withoutSlash(url);
        this.tokenOrNull = tokenOrNull;
        client =
                new BoundedClient(
                        this.url,
                        tokenOrNull == null ? null : "Bearer " + tokenOrNull.secret().value(),
                        limit,
                        MOST_BYTES);
    }

    /** Its base. */
    public URI url() {
        return url;
    }

    /**
     * A page.
     *
     * @param path with its query
     * @param others statuses beside 200 that are answers
     * @return the answer, of one of these statuses
     * @throws CommandFailure if there is none; the message says what to change
     */
    HttpResponse<byte[]> page(String path, Integer... others) throws InterruptedException {
        return answer(path, () -> client.get(path), others);
    }

    /** The same of a change. */
    HttpResponse<byte[]> patch(String path, byte[] json, Integer... others)
            throws InterruptedException {
        return answer(path, () -> client.patch(path, json), others);
    }

    /** One exchange. */
    private interface Exchange {
        HttpResponse<byte[]> run() throws IOException, InterruptedException;
    }

    private HttpResponse<byte[]> answer(String path, Exchange exchange, Integer... others)
            throws InterruptedException {
        final HttpResponse<byte[]> answer;
        try {
            answer = exchange.run();
        } catch (IOException e) {
            throw new CommandFailure(
                    "cannot reach the admin port: "
                            + e.getMessage()
                            + "; --url names it (admin-host and admin-port of the gateway: port +"
                            + " 1000 where that is not set)",
                    e);
        }
        final int status = answer.statusCode();
        if (status == OK || Set.of(others).contains(status)) {
            return answer;
        }
        final String words = words(answer);
        throw new CommandFailure(
                url + path + " answered " + status + ": " + words + remedy(status, words));
    }

    private String remedy(int status, String words) {
        return switch (status) {
            case UNAUTHORIZED -> tokenRemedy();
            case FORBIDDEN -> words.startsWith(TOKENLESS) ? "" : tokenRemedy();
            default -> "; is --url the admin port of a gateway?";
        };
    }

    private String tokenRemedy() {
        return (tokenOrNull == null
                        ? "; "
                        : "; the token of " + tokenOrNull.from() + " was refused: ")
                + "give the gateway's admin token by --token-file, --token or the variable "
                + AdminToken.VARIABLE;
    }

    /** What an error says. */
    static String words(HttpResponse<byte[]> answer) {
        final String body = new String(answer.body(), StandardCharsets.UTF_8);
        try {
            final String message =
                    Json.MAPPER.readTree(body).path("error").path("message").asText();
            return Terminal.printable(message.isEmpty() ? body : message, MOST_WORDS);
        } catch (JsonProcessingException e) {
            return Terminal.printable(body, MOST_WORDS);
        }
    }

    /**
     * The JSON of a page.
     *
     * @throws CommandFailure if it is no JSON object
     */
    JsonNode json(String path, HttpResponse<byte[]> answer) {
        try {
            final JsonNode read = Json.MAPPER.readTree(answer.body());
            if (read.isObject()) {
                return read;
            }
        } catch (IOException e) {
            throw noJson(path, e);
        }
        throw noJson(path, null);
    }

    CommandFailure noJson(String path, IOException causeOrNull) {
        return new CommandFailure(
                url
                        + path
                        + " answered something else than a JSON object; is --url the admin port of"
                        + " a gateway?",
                causeOrNull);
    }

    /**
     * A text that each gateway's page has.
     *
     * @throws CommandFailure if this one has none: the page is another server's
     */
    String text(String path, JsonNode page, String name) {
        if (!page.path(name).isTextual()) {
            throw noGateway(path, page, name, "text");
        }
        return page.path(name).textValue();
    }

    /** That a page has no member that each gateway's has, or one of another type. */
    CommandFailure noGateway(String path, JsonNode page, String name, String type) {
        return new CommandFailure(
                url
                        + path
                        + " is not the answer of a Kvasir gateway: "
                        + (page.has(name)
                                ? "its \"" + name + "\" is no " + type
                                : "it has no \"" + name + "\"")
                        + "; is --url the admin port of a gateway?");
    }

    @Override
    public void close() {
        client.close();
    }
}
