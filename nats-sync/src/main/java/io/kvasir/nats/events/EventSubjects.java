package io.kvasir.nats.events;

import io.kvasir.pipeline.source.PlaneTopics;

import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.Locale;
import java.util.Objects;

/**
 * Names of what a component of a namespace publishes: subjects of core NATS, and the stream of
 * JetStream that older publishers write to.
 *
 * <pre>
 *   endpoint   namespace.NS.component.COMP.endpoint.EP.TOPIC
 *   component  namespace.NS.component.COMP.TOPIC
 *   query      namespace.NS.component.COMP.kv-query.WORKER.RANK
 *   stream     namespace-NS-component-COMP-TOPIC     in lower case, all but letters and digits -
 *   in it      STREAM.queue (old), STREAM.TOPIC
 *   bucket     namespace-NS-component-COMP-radix-bucket
 * </pre>
 *
 * In names of subjects, bytes outside {@code [A-Za-z0-9_-]} are written as {@code %XX}.
 *
 * @param namespace of the component
 * @param component whose workers speak
 * @param endpoint of the component; null where the component itself is spoken of
 * @param topic what about, as {@link #KV_EVENTS}
 */
public record EventSubjects(String namespace, String component, String endpoint, String topic) {
    /** The topic of events of workers' caches. */
    public static final String KV_EVENTS = "kv-events";

    /** The topic of reports of workers' load. */
    public static final String KV_METRICS = "kv_metrics";

    private static final String QUERY = "kv-query";
    private static final String BUCKET = "radix-bucket";
    private static final String OLD_SUBJECT = "queue";

    /**
     * Checks the values.
     *
     * @throws IllegalArgumentException if a name is empty
     */
    public EventSubjects {
        requireName("namespace", namespace);
        requireName("component", component);
        requireName("topic", topic);
        if (endpoint != null) {
            requireName("endpoint", endpoint);
        }
    }

    private static void requireName(String what, String name) {
        if (Objects.requireNonNull(name, what).isEmpty()) {
            throw new IllegalArgumentException(what + " must not be empty");
        }
    }

    /** Events of the caches of an endpoint's workers, or of a component's if that is null. */
    public static EventSubjects kvEvents(String namespace, String component, String endpoint) {
        return new EventSubjects(namespace, component, endpoint, KV_EVENTS);
    }

    /** The same names with another topic. */
    public EventSubjects about(String otherTopic) {
        return new EventSubjects(namespace, component, endpoint, otherTopic);
    }

    /** Subject of the endpoint, or of the component where there is none. */
    public String subject() {
        return endpoint == null
                ? componentSubject()
                : componentPrefix() + ".endpoint." + encoded(endpoint) + "." + topic;
    }

    /**
     * Subject of the endpoint; where there is none, a pattern that fits those of all endpoints of
     * the component.
     */
    String endpointSubjects() {
        return endpoint == null ? componentPrefix() + ".endpoint.*." + topic : subject();
    }

    /** Subject of the component. */
    public String componentSubject() {
        return componentPrefix() + "." + topic;
    }

    /**
     * Subject of queries to the local indexer of a worker and rank, whatever the endpoint.
     *
     * @param workerId the worker, 64 unsigned bits
     * @param dpRank its data-parallel rank
     */
    public String querySubject(long workerId, int dpRank) {
        return componentPrefix()
                + "."
                + QUERY
                + "."
                + Long.toUnsignedString(workerId)
                + "."
                + dpRank;
    }

    /** What messages of these events begin with over ZMQ, from publishers and from brokers. */
    public PlaneTopics zmqTopics() {
        return endpoint == null
                ? new PlaneTopics(topic, componentPrefix() + ".")
                : new PlaneTopics(topic, subject(), componentSubject());
    }

    private String componentPrefix() {
        return "namespace." + encoded(namespace) + ".component." + encoded(component);
    }

    private static String encoded(String name) {
        final StringBuilder out = new StringBuilder(name.length());
        for (byte b : name.getBytes(StandardCharsets.UTF_8)) {
            final char c = (char) (b & 0xff);
            if (isPlain(c) || c == '_' || c == '-') {
                out.append(c);
            } else {
                out.append('%').append(HexFormat.of().withUpperCase().toHexDigits(b));
            }
        }
        return out.toString();
    }

    private static boolean isPlain(char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    }

    /** The stream of JetStream. */
    public String stream() {
        return slug(topic);
    }

    /** The bucket of JetStream's object store for what the stream's messages have led to. */
    public String bucket() {
        return slug(BUCKET);
    }

    private String slug(String of) {
        final String subject = "namespace." + namespace + ".component." + component + "." + of;
        final StringBuilder out = new StringBuilder(subject.length());
        for (char c : subject.toLowerCase(Locale.ROOT).toCharArray()) {
            out.append(isPlain(c) ? c : '-');
        }
        return out.toString();
    }

    /** All subjects of the stream. */
    public String streamSubjects() {
        return stream() + ".*";
    }

    /** The stream's subject for what is published now. */
    public String streamSubject() {
        return stream() + "." + topic;
    }

    /** The stream's subject that publishers of 0.7 and before use. */
    public String oldStreamSubject() {
        return stream() + "." + OLD_SUBJECT;
    }
}
