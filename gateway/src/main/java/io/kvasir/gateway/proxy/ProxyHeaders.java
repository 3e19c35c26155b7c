package io.kvasir.gateway.proxy;

import io.kvasir.gateway.log.RequestRecord;
import io.kvasir.gateway.routing.DecisionRecord;
import io.kvasir.gateway.routing.RoutingHeaders;
import io.kvasir.gateway.routing.WorkerReservations;
import io.kvasir.gateway.server.CrossOrigin;

import org.eclipse.jetty.http.HttpField;
import org.eclipse.jetty.http.HttpFields;
import org.eclipse.jetty.http.HttpHeader;
import org.eclipse.jetty.http.HttpHeaderValue;
import org.eclipse.jetty.http.HttpVersion;
import org.eclipse.jetty.server.Request;
import org.eclipse.jetty.server.Response;

import java.util.List;
import java.util.Set;

/** Which headers go from one side to the other: all but those that belong to one connection. */
final class ProxyHeaders {
    static final String RANK = "X-data-parallel-rank";

    private static final Set<String> OF_ONE_CONNECTION =
            Set.of(
                    "connection",
                    "keep-alive",
                    "proxy-authenticate",
                    "proxy-authorization",
                    "proxy-connection",
                    "te",
                    "trailer",
                    "transfer-encoding",
                    "upgrade");

    /** Set anew, or for the gateway alone: it reads the response, and chooses the rank. */
    private static final Set<String> NOT_UPSTREAM =
            Set.of(
                    "host",
                    "content-length",
                    "content-encoding",
                    "expect",
                    "accept-encoding",
                    "x-request-id",
                    "x-data-parallel-rank");

    private ProxyHeaders() {}

    /** The headers of a request to a booked worker. */
    static HttpFields toWorker(
            ProxyContext context,
            Request request,
            String requestId,
            WorkerReservations.Booking booking) {
        final HttpFields.Mutable headers = HttpFields.build();
        toWorker(request.getHeaders(), headers);
        headers.put(RequestRecord.HEADER, requestId);
        booking.decision().trace().putInto(headers);
        if (booking.upstream().hasRanks()) {
            headers.put(RANK, Integer.toString(booking.decision().dpRank()));
        }
        final String key = context.workerKey().of(booking.upstream());
        if (key != null) {
            headers.put(HttpHeader.AUTHORIZATION, key);
        } else if (context.trusted().hasToken(request)) {
            headers.remove(HttpHeader.AUTHORIZATION); // the gateway's token, not a worker's
        }
        return headers;
    }

    /** Copies a client's headers for the worker. */
    static void toWorker(HttpFields given, HttpFields.Mutable headers) {
        for (HttpField field : given) {
            final String name = field.getLowerCaseName();
            if (!isPassedOn(given, name)
                    || NOT_UPSTREAM.contains(name)
                    || name.startsWith(RoutingHeaders.PREFIX)) {
                continue;
            }
            if (name.equals("cookie")) {
                headers.computeField(HttpHeader.COOKIE, (_, before) -> joined(before, field));
            } else {
                headers.add(field);
            }
        }
    }

    /** HTTP/2 may have split a field of cookies into several. */
    private static HttpField joined(List<HttpField> before, HttpField next) {
        return before == null
                ? next
                : new HttpField(
                        HttpHeader.COOKIE, before.getFirst().getValue() + "; " + next.getValue());
    }

    /**
     * Gives an answer of HTTP/1.1 whose length is not known an end of its own. On the last one of a
     * connection the server would let the connection's end be its end, which a client cannot tell
     * from an answer that broke off (RFC 9112, 6.3).
     */
    static void putChunked(Response response) {
        final HttpFields.Mutable headers = response.getHeaders();
        if (!headers.contains(HttpHeader.CONTENT_LENGTH)
                && response.getRequest().getConnectionMetaData().getHttpVersion()
                        == HttpVersion.HTTP_1_1) {
            headers.put(HttpHeader.TRANSFER_ENCODING, HttpHeaderValue.CHUNKED.asString());
        }
    }

    /**
     * Copies a worker's headers for the client.
     *
     * @param otherLength the length is not the worker's: of a stream an event may be left out
     */
    static void toClient(HttpFields given, boolean otherLength, HttpFields.Mutable headers) {
        for (HttpField field : given) {
            final String name = field.getLowerCaseName();
            if (!isPassedOn(given, name)
                    || CrossOrigin.isForBrowsers(field)
                    || name.equals("x-request-id") // the answer has it already
                    || (otherLength && name.equals("content-length"))) {
                continue;
            }
            if (name.equals("date") || name.equals("server")) {
                headers.put(field); // instead of the gateway's
            } else {
                headers.add(field);
            }
        }
    }

    private static boolean isPassedOn(HttpFields all, String name) {
        return !OF_ONE_CONNECTION.contains(name) && !all.contains(HttpHeader.CONNECTION, name);
    }

    /** Says what was decided of a request, or of its prefill. */
    static void putDecision(
            HttpFields.Mutable headers, ProxyRequest request, DecisionRecord decision) {
        headers.put("x-kvasir-request-id", request.requestId());
        headers.put("x-kvasir-worker", decision.worker());
        headers.put("x-kvasir-dp-rank", Integer.toString(decision.dpRank()));
        headers.put("x-kvasir-overlap-blocks", Integer.toString(decision.overlapBlocks()));
        if (decision.lowerTierBlocks() > 0) {
            headers.put("x-kvasir-lower-tier-blocks", Integer.toString(decision.lowerTierBlocks()));
        }
        putPrediction(headers, request, decision);
        headers.put("x-kvasir-event-sequence", Long.toString(decision.eventSequence()));
    }

    /** Says what was decided of the prefill, by whose cached tokens the answer is stated. */
    static void putPrefill(
            HttpFields.Mutable headers, ProxyRequest request, DecisionRecord decision) {
        headers.put(RoutingHeaders.PREFILL_WORKER, decision.worker());
        putPrediction(headers, request, decision);
    }

    private static void putPrediction(
            HttpFields.Mutable headers, ProxyRequest request, DecisionRecord decision) {
        if (request.inference().prompts() > 1) {
            return; // made for the first prompt, and engines state another one's, or the sum
        }
        headers.put(
                "x-kvasir-predicted-cached-tokens",
                Integer.toString(decision.predictedCachedTokens()));
    }
}
