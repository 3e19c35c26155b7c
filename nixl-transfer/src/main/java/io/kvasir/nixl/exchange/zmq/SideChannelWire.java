package io.kvasir.nixl.exchange.zmq;

import io.kvasir.nixl.exchange.ExchangeException;
import io.kvasir.nixl.exchange.ExchangeException.Kind;
import io.kvasir.nixl.exchange.MetadataExchange;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/**
 * Messages of the own side channel.
 *
 * <pre>
 *   0       4          12         20      24
 *   +-------+----------+----------+
 *   | magic | instance | revision |             question: what the asker has last seen; 0, 0: nothing
 *   +-------+----------+----------+-------+
 *   | magic | instance | revision | count |     answer: sender, how often its records have changed,
 *   +-------+----------+----------+-------+     and the number of frames of a record each that follow;
 *   little-endian                               -1: nothing has changed
 * </pre>
 */
final class SideChannelWire {
    static final int UNCHANGED = -1;
    private static final int MAGIC = 0x31_58_56_4B; // KVX1
    private static final int QUESTION_LENGTH = 20;
    private static final int ANSWER_LENGTH = 24;

    private SideChannelWire() {}

    /** State of an exchange's records: which exchange, and how often they have changed. */
    record Version(long instance, long revision) {
        static final Version NONE = new Version(0, 0);
    }

    record Answer(Version version, int count) {}

    static byte[] question(Version lastSeen) {
        return start(QUESTION_LENGTH, lastSeen).array();
    }

    static byte[] answer(Version version, int count) {
        return start(ANSWER_LENGTH, version).putInt(count).array();
    }

    private static ByteBuffer start(int length, Version version) {
        return ByteBuffer.allocate(length)
                .order(ByteOrder.LITTLE_ENDIAN)
                .putInt(MAGIC)
                .putLong(version.instance)
                .putLong(version.revision);
    }

    static Version parseQuestion(byte[] message) {
        return version(reader(message, QUESTION_LENGTH));
    }

    static Answer parseAnswer(byte[] message) {
        final ByteBuffer in = reader(message, ANSWER_LENGTH);
        final Answer answer = new Answer(version(in), in.getInt());
        if (answer.count < UNCHANGED || answer.count > MetadataExchange.MAX_OWN) {
            throw malformed(answer.count + " records, the limit is " + MetadataExchange.MAX_OWN);
        }
        return answer;
    }

    private static Version version(ByteBuffer in) {
        return new Version(in.getLong(), in.getLong());
    }

    private static ByteBuffer reader(byte[] message, int length) {
        final ByteBuffer in = ByteBuffer.wrap(message).order(ByteOrder.LITTLE_ENDIAN);
        if (message.length != length || in.getInt() != MAGIC) {
            throw malformed(message.length + " bytes");
        }
        return in;
    }

    private static ExchangeException malformed(String what) {
        return new ExchangeException(Kind.MALFORMED, "not a message of this side channel: " + what);
    }
}
