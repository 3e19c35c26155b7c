package io.kvasir.nats.replica;

import java.nio.charset.StandardCharsets;
import java.util.HexFormat;
import java.util.List;

/**
 * Subjects of replica sync: {@code namespace.{ns}.component.{comp}.{topic}}, with {@code
 * .endpoint.{ep}} before the topic where an endpoint is set. In names every byte but letters,
 * digits, {@code _} and {@code -} is written as {@code %XX}.
 */
final class ReplicaSubjects {
    /** Topic of messages about one booking, which other makes have, too. */
    static final String BOOKINGS_TOPIC = "active_sequences_events";

    /** Topic of what only Kvasir has. */
    static final String FLEET_TOPIC = "kvasir_replica_sync";

    private static final HexFormat HEX = HexFormat.of().withUpperCase();

    private final String component;
    private final String endpoint; // with its dots; empty for none

    ReplicaSubjects(String namespace, String component, String endpoint) {
        this.component = "namespace." + encode(namespace) + ".component." + encode(component);
        this.endpoint = endpoint.isEmpty() ? "" : ".endpoint." + encode(endpoint);
    }

    /** Where messages about one booking are sent. */
    String bookings() {
        return component + endpoint + "." + BOOKINGS_TOPIC;
    }

    /** Where all is read: bookings of the component and of every endpoint, and all else. */
    List<String> read() {
        return List.of(
                component + "." + BOOKINGS_TOPIC,
                component + ".endpoint.*." + BOOKINGS_TOPIC,
                fleet());
    }

    /** Where all else is sent and received. */
    String fleet() {
        return component + "." + FLEET_TOPIC;
    }

    private static String encode(String name) {
        final StringBuilder out = new StringBuilder();
        for (byte b : name.getBytes(StandardCharsets.UTF_8)) {
            final char c = (char) (b & 0xff);
            if (c < 128 && (Character.isLetterOrDigit(c) || c == '_' || c == '-')) {
                out.append(c);
            } else {
                out.append('%').append(HEX.toHexDigits(b));
            }
        }
        return out.toString();
    }
}
