package io.kvasir.pipeline.source;

import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Stream;

/**
 * Topics of an event plane's messages over ZMQ: those of a publisher that is connected to directly,
 * and those that brokers carry, which are subjects as over NATS. Immutable.
 */
public final class PlaneTopics {
    private final List<byte[]> prefixes;
    private final byte[] topic;

    /**
     * @param topic of a publisher, such as {@code kv-events}, and the end of a subject
     * @param subjects what subjects begin with; none where nothing comes through brokers
     */
    public PlaneTopics(String topic, String... subjects) {
        this.topic = bytes(topic);
        this.prefixes =
                Stream.concat(Stream.of(topic), Arrays.stream(subjects))
                        .map(PlaneTopics::bytes)
                        .toList();
    }

    private static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    /** What is subscribed to. */
    List<byte[]> prefixes() {
        return prefixes;
    }

    /** Whether a message's first frame is one of the topics. */
    boolean count(byte[] bytes, int offset, int length) {
        final int from = offset + length - topic.length;
        return length >= topic.length
                && Arrays.equals(bytes, from, offset + length, topic, 0, topic.length)
                && (length == topic.length || bytes[from - 1] == '.');
    }
}
