package io.kvasir.gateway.proxy;

import io.kvasir.gateway.log.RequestRecord;
import io.kvasir.gateway.openai.ApiException;
import io.kvasir.gateway.openai.InferenceRequest;
import io.kvasir.gateway.routing.RoutedPrompt;
import io.kvasir.gateway.routing.WorkerReservations;
import io.kvasir.router.queue.QueueRank;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;

/**
 * What every attempt of one exchange has in common.
 *
 * @param prompt what the router is asked about
 * @param body what is sent to the worker; its position is not moved
 * @param dropUsage whether {@code body} asks for usage that the client did not ask for
 * @param rank how it stands among those that wait for a worker
 * @param trusted whether the client may know what was decided
 * @param record what is known of the client's request
 */
public record ProxyRequest(
        InferenceRequest inference,
        RoutedPrompt prompt,
        ByteBuffer body,
        boolean dropUsage,
        QueueRank rank,
        boolean trusted,
        RequestRecord record) {
    String requestId() {
        return record.id();
    }

    /**
     * What is sent to one of a worker's ranks; made anew by each call where the body has to say
     * which.
     *
     * @throws ApiException 413 if making it needs too much memory
     */
    ByteBuffer body(WorkerReservations.Booking booking) throws ApiException {
        if (inference.route != InferenceRequest.Route.GENERATE || !booking.upstream().hasRanks()) {
            return body; // the rank is in a header
        }
        try {
            return ByteBuffer.wrap(InferenceRequest.withRank(bytes(), booking.decision().dpRank()));
        } catch (IOException e) {
            throw new UncheckedIOException("a body that was read before", e);
        }
    }

    /**
     * What is sent to a worker that takes token ids; made anew by each call.
     *
     * @throws ApiException 413 if making it needs too much memory
     */
    ByteBuffer tokenBody() throws ApiException {
        try {
            return ByteBuffer.wrap(prompt.tokenForm().body(bytes()));
        } catch (IOException e) {
            throw new UncheckedIOException("a body that was read before", e);
        }
    }

    private byte[] bytes() {
        final byte[] text = new byte[body.remaining()];
        body.duplicate().get(text);
        return text;
    }
}
