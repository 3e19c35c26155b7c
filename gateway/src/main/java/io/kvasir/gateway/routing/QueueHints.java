package io.kvasir.gateway.routing;

import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.openai.InferenceRequest;
import io.kvasir.router.queue.QueueRank;

import org.eclipse.jetty.http.HttpFields;

import java.util.concurrent.TimeUnit;

/**
 * How a request of a trusted caller stands among those that wait for a worker: by the headers
 * {@code x-kvasir-priority}, {@code x-kvasir-head-start-ms} and {@code x-kvasir-max-wait-ms}, else
 * by Dynamo's {@code x-dynamo-request-strict-priority} and {@code x-dynamo-request-priority}, else
 * by {@code strict_priority} and {@code priority} of the body's {@code nvext.agent_hints}. In each
 * a higher number goes first. The body's own {@code priority}, in which a lower number goes first,
 * is the engine's: it is passed on and means nothing here.
 */
public final class QueueHints {
    private static final String PRIORITY = RoutingHeaders.PREFIX + "priority";
    private static final String HEAD_START = RoutingHeaders.PREFIX + "head-start-ms";
    private static final String MAX_WAIT = RoutingHeaders.PREFIX + "max-wait-ms";
    private static final String DYNAMO_PRIORITY = "x-dynamo-request-strict-priority";
    private static final String DYNAMO_HEAD_START = "x-dynamo-request-priority";
    private static final double SECOND = TimeUnit.SECONDS.toNanos(1);
    private static final double MILLISECOND = TimeUnit.MILLISECONDS.toNanos(1);
    private static final double MOST_WAIT_MS = Integer.MAX_VALUE;

    private QueueHints() {}

    /**
     * Reads what a trusted caller says.
     *
     * @param nowNs from which the longest wait counts, by the queue's clock
     * @throws ApiException 400 if a value cannot be read, or is out of its range
     */
    public static QueueRank of(HttpFields headers, InferenceRequest request, long nowNs)
            throws ApiException {
        final String maxWait = headers.get(MAX_WAIT);
        return new QueueRank(
                (int)
                        first(
                                headers,
                                PRIORITY,
                                DYNAMO_PRIORITY,
                                "nvext.agent_hints.strict_priority",
                                request.strictPriority,
                                QueueRank.LEAST_PRIORITY,
                                QueueRank.MOST_PRIORITY,
                                1),
                (long) headStart(headers, request),
                maxWait == null
                        ? QueueRank.NO_DEADLINE
                        : nowNs
                                + (long)
                                        (number(MAX_WAIT, maxWait, 1, MOST_WAIT_MS) * MILLISECOND));
    }

    private static double headStart(HttpFields headers, InferenceRequest request)
            throws ApiException {
        final String own = headers.get(HEAD_START);
        return own == null
                ? SECOND
                        * first(
                                headers,
                                DYNAMO_HEAD_START,
                                DYNAMO_HEAD_START,
                                "nvext.agent_hints.priority",
                                request.headStart,
                                0,
                                QueueRank.MOST_HEAD_START_NS / SECOND,
                                0)
                : MILLISECOND
                        * number(HEAD_START, own, 0, QueueRank.MOST_HEAD_START_NS / MILLISECOND);
    }

    /**
     * The first of two headers and a member that is there; 0 where none is.
     *
     * @param step what it must be a multiple of; 0 for any number
     */
    private static double first(
            HttpFields headers,
            String own,
            String other,
            String member,
            String memberText,
            double least,
            double most,
            int step)
            throws ApiException {
        final String name =
                headers.get(own) != null ? own : headers.get(other) != null ? other : member;
        final String text = name.equals(member) ? memberText : headers.get(name);
        if (text == null) {
            return 0;
        }
        final double value = number(name, text, least, most);
        if (step > 0 && value % step != 0) {
            throw wrong(name, text, least, most);
        }
        return value;
    }

    private static double number(String name, String text, double least, double most)
            throws ApiException {
        try {
            final double value = Double.parseDouble(text);
            if (value >= least && value <= most) {
                return value;
            }
        } catch (NumberFormatException e) {
            throw wrong(name, text, least, most);
        }
        throw wrong(name, text, least, most);
    }

    private static ApiException wrong(String name, String text, double least, double most) {
        return ApiException.invalid(
                name,
                name
                        + ": '"
                        + text
                        + (least < 0
                                ? "' must be a whole number from "
                                : "' must be a number from ")
                        + (long) least
                        + " to "
                        + (long) most
                        + (name.equals(MAX_WAIT)
                                ? ""
                                : "; requests with a higher one are served first"));
    }
}
