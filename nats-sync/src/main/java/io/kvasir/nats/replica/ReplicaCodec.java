package io.kvasir.nats.replica;

import io.kvasir.router.replica.ReplicaMessage;

import java.io.IOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/** Messages of replica sync to and from bytes; see docs/spec/replica-sync.md. Any thread. */
final class ReplicaCodec {
    private final WireForm form;
    private final BookingEvents events;

    /**
     * @param form in which messages about one booking are written
     * @param blockSize tokens of a block
     */
    ReplicaCodec(WireForm form, int blockSize) {
        this.form = form;
        this.events = new BookingEvents(blockSize);
    }

    /**
     * Writes a message about one booking.
     *
     * @param publisherId of the envelope
     * @param sequence of the envelope: messages of the publisher before this one
     * @param epochMs when it is sent
     */
    byte[] booking(
            ReplicaMessage.OfBooking message, long publisherId, long sequence, long epochMs) {
        final Map<String, Object> event = BookingEvents.event(message, form);
        return form == WireForm.JSON
                ? JsonTree.write(event)
                : envelope(MsgpackTree.write(event), publisherId, sequence, epochMs);
    }

    static byte[] envelope(byte[] payload, long publisherId, long sequence, long epochMs) {
        final Map<String, Object> envelope = new LinkedHashMap<>();
        envelope.put("publisher_id", publisherId);
        envelope.put("sequence", sequence);
        envelope.put("published_at", epochMs);
        envelope.put("topic", ReplicaSubjects.BOOKINGS_TOPIC);
        envelope.put("payload", payload);
        return MsgpackTree.write(envelope);
    }

    /** Writes any other message. */
    static byte[] fleet(ReplicaMessage message) {
        return MsgpackTree.write(FleetMessages.map(message));
    }

    /**
     * Reads what came about bookings: JSON, or msgpack with or without an envelope; one or a batch.
     *
     * @throws IOException saying what cannot be read
     */
    List<ReplicaMessage> readBookings(byte[] body) throws IOException {
        final List<ReplicaMessage> messages = new ArrayList<>();
        if (body.length > 0 && body[0] == '{') { // no map of msgpack begins so
            events.readAll(JsonTree.read(body), messages);
            return messages;
        }
        final Object tree = MsgpackTree.read(body);
        final Object payload = Fields.of(tree).value("payload");
        events.readAll(payload instanceof byte[] inner ? MsgpackTree.read(inner) : tree, messages);
        return messages;
    }

    /**
     * Reads any other message.
     *
     * @return null for a kind of a later version
     * @throws IOException saying what cannot be read
     */
    static ReplicaMessage readFleet(byte[] body) throws IOException {
        return FleetMessages.message(MsgpackTree.read(body));
    }
}
