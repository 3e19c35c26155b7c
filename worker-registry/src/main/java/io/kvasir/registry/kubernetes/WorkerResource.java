package io.kvasir.registry.kubernetes;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.json.JsonMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import io.kvasir.registry.InstanceId;
import io.kvasir.registry.Registration;
import io.kvasir.registry.Stored;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.time.Duration;
import java.time.Instant;
import java.time.format.DateTimeParseException;
import java.time.temporal.ChronoUnit;
import java.util.HexFormat;
import java.util.regex.Pattern;

/**
 * The custom resource {@code KvasirWorker}: its {@code spec} is a registration, its {@code lease}
 * says when that was renewed last and for how long; without a lease it holds while it is there. An
 * owner is the pod with which Kubernetes deletes it.
 */
final class WorkerResource {
    static final String GROUP = "kvasir.io";
    static final String VERSION = "v1alpha1";
    static final String PLURAL = "kvasirworkers";

    private static final JsonMapper JSON = new JsonMapper();
    private static final String KIND = "KvasirWorker";
    private static final int MAX_NAME = 253;
    private static final int MAX_SECONDS = 3600;
    private static final Duration MAX_AGE = Duration.ofDays(1);

    /** Four labels of DNS, none of which needs an escape. */
    private static final Pattern PLAIN =
            Pattern.compile("[a-z0-9]([-a-z0-9]*[a-z0-9])?(/[a-z0-9]([-a-z0-9]*[a-z0-9])?){3}");

    private final JsonNode object;

    WorkerResource(JsonNode object) {
        this.object = object;
    }

    /**
     * Name of the object of a key: the parts with dots between where all are labels of DNS, else
     * {@code x-} and 40 hexadecimal digits of the key's SHA-256.
     */
    static String name(String key) {
        return PLAIN.matcher(key).matches() && key.length() <= MAX_NAME
                ? key.replace('/', '.')
                : "x-" + HexFormat.of().formatHex(sha256(key), 0, 20);
    }

    private static byte[] sha256(String text) {
        try {
            return MessageDigest.getInstance("SHA-256")
                    .digest(text.getBytes(StandardCharsets.UTF_8));
        } catch (NoSuchAlgorithmException e) {
            throw new AssertionError("every JDK has SHA-256", e);
        }
    }

    /**
     * An object to be written.
     *
     * @param key of the registration
     * @param document the registration
     * @param version at which the object must be; null: it must not be there
     * @param podOrNull its owner
     * @throws IllegalArgumentException if the document is not the key's registration
     */
    static ObjectNode of(
            String key,
            byte[] document,
            String version,
            Instant renewed,
            Duration ttl,
            OwnerPod podOrNull) {
        final Registration registration = Registration.decode(document);
        if (!registration.id().key().equals(key)) {
            throw new IllegalArgumentException(
                    "key " + key + " is not that of the registration of " + registration.id());
        }
        final ObjectNode out = JSON.createObjectNode();
        out.put("apiVersion", GROUP + "/" + VERSION).put("kind", KIND);
        final ObjectNode metadata = out.putObject("metadata").put("name", name(key));
        if (version != null) {
            metadata.put("resourceVersion", version);
        }
        if (podOrNull != null) {
            metadata.putArray("ownerReferences")
                    .addObject()
                    .put("apiVersion", "v1")
                    .put("kind", "Pod")
                    .put("name", podOrNull.name())
                    .put("uid", podOrNull.uid());
        }
        out.set("spec", tree(document));
        out.putObject("lease")
                .put("renewTime", renewed.truncatedTo(ChronoUnit.MICROS).toString())
                .put("durationSeconds", Math.ceilDiv(ttl.toMillis(), 1000L));
        return out;
    }

    private static JsonNode tree(byte[] document) {
        try {
            return JSON.readTree(document);
        } catch (IOException e) {
            throw new AssertionError("it has been read", e);
        }
    }

    String name() {
        return object.path("metadata").path("name").asText();
    }

    /** Changes where an object of the same name is made anew. */
    String uid() {
        return object.path("metadata").path("uid").asText();
    }

    String version() {
        return object.path("metadata").path("resourceVersion").asText();
    }

    /** UID of the pod that owns it; empty for none. */
    String podUid() {
        for (JsonNode owner : object.path("metadata").path("ownerReferences")) {
            if (owner.path("kind").asText().equals("Pod")) {
                return owner.path("uid").asText();
            }
        }
        return "";
    }

    /** Key that the registration says it has; empty where it says none. */
    String key() {
        final JsonNode spec = object.path("spec");
        try {
            return new InstanceId(
                            spec.path("namespace").asText(),
                            spec.path("component").asText(),
                            spec.path("endpoint").asText(),
                            spec.path("instance").asText())
                    .key();
        } catch (IllegalArgumentException e) {
            return "";
        }
    }

    /** As a store has it. An object of another name than its key's has its name for a key. */
    Stored stored() {
        try {
            return new Stored(
                    name(key()).equals(name()) ? key() : name(),
                    JSON.writeValueAsBytes(object.path("spec")),
                    Long.parseLong(version()));
        } catch (IOException e) {
            throw new AssertionError("a tree can be written", e);
        }
    }

    /** The text of the last renewal: another one is a renewal. Empty without a lease. */
    String renewTime() {
        return object.path("lease").path("renewTime").asText();
    }

    /** How long it holds after a renewal; null: while it is there. */
    Duration leaseOrNull() {
        final int seconds = object.path("lease").path("durationSeconds").asInt();
        return seconds < 1 ? null : Duration.ofSeconds(Math.min(seconds, MAX_SECONDS));
    }

    /** How long ago it was renewed by a clock: 0 where it does not say so, and not beyond a day. */
    Duration age(Instant now) {
        try {
            final Duration age =
                    renewTime().isEmpty()
                            ? Duration.ZERO
                            : Duration.between(Instant.parse(renewTime()), now);
            if (age.isNegative()) {
                return Duration.ZERO;
            }
            return age.compareTo(MAX_AGE) < 0 ? age : MAX_AGE;
        } catch (DateTimeParseException e) {
            return Duration.ZERO;
        }
    }

    /** Whether its lease has ended by a clock. */
    boolean hasEnded(Instant now) {
        return leaseOrNull() != null && age(now).compareTo(leaseOrNull()) > 0;
    }
}
