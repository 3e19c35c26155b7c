package io.kvasir.pipeline.source;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/**
 * Topics of an event plane's messages over ZMQ: those of a publisher that is connected to directly,
 * and those that brokers carry, which are subjects as over NATS. Immutable.
 */
public final class PlaneTopics {
    private static final byte SUBSCRIBE = 1;

    private final List<byte[]> subscriptions;
    private final byte[] topic;

    /**
     * @param topic of a publisher, such as {@code kv-events}, and the end of a subject
     * @param subjects what subjects begin with; none where nothing comes through brokers
     */
    public PlaneTopics(String topic, String... subjects) {
        this.topic = bytes(topic);
        this.subscriptions =
                Stream.concat(Stream.of(topic), Arrays.stream(subjects))
                        .map(prefix -> subscription(bytes(prefix)))
                        .toList();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] subscription(byte[] prefix) {
        return ByteBuffer.allocate(1 + prefix.length).put(SUBSCRIBE).put(prefix).array();
    }

    /** Messages that subscribe to them; not changed. */
    List<byte[]> subscriptions() {
        return subscriptions;
    }

    /** Whether a message's first frame is one of the topics. */
    boolean count(byte[] bytes, int offset, int length) {
        final int from = offset + length - topic.length;
        return length >= topic.length
                && Arrays.equals(bytes, from, offset + length, topic, 0, topic.length)
                && (length == topic.length || bytes[from - 1] == '.');
    }
}
