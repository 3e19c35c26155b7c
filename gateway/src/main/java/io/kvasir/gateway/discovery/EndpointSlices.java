package io.kvasir.gateway.discovery;

import com.fasterxml.jackson.databind.JsonNode;

import io.kvasir.gateway.config.DiscoveredWorker;
import io.kvasir.gateway.config.GatewayConfig;
import io.kvasir.gateway.config.GatewaySettings;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;

/**
 * The workers of EndpointSlices. A ready endpoint is a worker; one that is not ready, or that ends
 * and serves what it has, gets no new request; one that ends and serves nothing is none. Its name
 * is the pod's, its generation the pod's UID: a pod that comes again under its name is another
 * worker.
 *
 * @see <a href="https://kubernetes.io/docs/concepts/services-networking/endpoint-slices/">the
 *     resource</a>
 */
final class EndpointSlices {
    private static final String ROLE = "kvasir.io/role";
    private static final String WORKER = "kvasir.io/worker";
    private static final String LABEL = "[A-Za-z0-9._/-]{1,63}";

    /**
     * What holds for each worker.
     *
     * @param model of workers that name none
     * @param port name of the port that serves; null for the only one
     * @param events name of the port that publishes events; null for none
     * @param replay name of the port that replays them; null for none
     * @param texts what else is said of each worker, by the keys of {@code --worker}; a slice's
     *     annotation {@code kvasir.io/worker} says more
     */
    record Ports(
            String model, String port, String events, String replay, Map<String, String> texts) {}

    /** What the control plane says of an endpoint, the best first. */
    enum Condition {
        /** It gets requests. */
        READY,
        /** It gets no new request. */
        DRAINING,
        /** It serves nothing any more. */
        GONE;

        static Condition of(JsonNode endpoint) {
            final JsonNode conditions = endpoint.path("conditions");
            final boolean ready = conditions.path("ready").asBoolean(true);
            final boolean serving = conditions.path("serving").asBoolean(ready);
            final boolean terminating = conditions.path("terminating").asBoolean(false);
            if (terminating && !serving) {
                return GONE;
            }
            return ready && !terminating ? READY : DRAINING;
        }

        boolean isBetterThan(Condition other) {
            return compareTo(other) < 0;
        }
    }

    /** What a slice says of a worker. */
    record Entry(DiscoveredWorker worker, Condition condition) {}

    private final Ports ports;

    EndpointSlices(Ports ports) {
        this.ports = ports;
    }

    /**
     * What a configuration says of them.
     *
     * @throws IllegalArgumentException if something is not key=value
     */
    static Ports ports(GatewayConfig config) {
        return new Ports(
                config.get(GatewaySettings.MODEL),
                config.get(GatewaySettings.DISCOVERY_KUBERNETES_PORT),
                config.get(GatewaySettings.DISCOVERY_KUBERNETES_EVENTS_PORT),
                config.get(GatewaySettings.DISCOVERY_KUBERNETES_REPLAY_PORT),
                texts(config.get(GatewaySettings.DISCOVERY_KUBERNETES_WORKER)));
    }

    /**
     * Keys and values with commas between, as {@code dp=2,role=prefill}.
     *
     * @throws IllegalArgumentException if something is not key=value
     */
    static Map<String, String> texts(String spec) {
        final Map<String, String> texts = new LinkedHashMap<>();
        for (String item : spec.isBlank() ? new String[0] : spec.split(",", -1)) {
            final int equals = item.indexOf('=');
            if (equals < 1) {
                throw new IllegalArgumentException("'" + item + "' is not key=value");
            }
            texts.put(item.substring(0, equals).strip(), item.substring(equals + 1).strip());
        }
        return texts;
    }

    /** Name of a slice. */
    static String name(JsonNode slice) {
        return slice.path("metadata").path("name").asText();
    }

    /**
     * Adds what is said of the pods of a slice.
     *
     * @param all by their UIDs; the better one where something is known of a pod already
     */
    static void conditions(JsonNode slice, Map<String, Condition> all) {
        for (JsonNode endpoint : slice.path("endpoints")) {
            if (!uid(endpoint).isEmpty()) {
                all.merge(
                        uid(endpoint), Condition.of(endpoint), (a, b) -> b.isBetterThan(a) ? b : a);
            }
        }
    }

    private static String uid(JsonNode endpoint) {
        return endpoint.path("targetRef").path("uid").asText();
    }

    /**
     * The workers of a slice, those that serve nothing any more too. One that is described so that
     * it cannot be used stays as it was while it is the same pod at the same address.
     *
     * @param slice as the API server writes it
     * @param used those that are used so far, by their names
     * @param problems gets what cannot be used, and why
     */
    List<Entry> workers(
            JsonNode slice, Map<String, DiscoveredWorker> used, Map<String, String> problems) {
        final List<Entry> all = new ArrayList<>();
        for (JsonNode endpoint : slice.path("endpoints")) {
            final Condition condition = Condition.of(endpoint);
            try {
                all.add(new Entry(worker(slice, endpoint), condition));
            } catch (IllegalArgumentException e) {
                if (condition == Condition.GONE) {
                    continue;
                }
                final DiscoveredWorker former = used.get(podOrAddress(endpoint));
                final boolean stays = former != null && isOf(endpoint, former);
                if (stays) {
                    all.add(new Entry(former, condition));
                }
                final String what = name(slice) + "/" + podOrAddress(endpoint);
                problems.put(
                        what,
                        "endpoint "
                                + what
                                + (stays ? " stays as it was: " : " is left out: ")
                                + e.getMessage());
            }
        }
        return all;
    }

    private static boolean isOf(JsonNode endpoint, DiscoveredWorker worker) {
        return worker.generation() == generation(endpoint)
                && worker.worker().url().getHost().equals(host(endpoint));
    }

    private DiscoveredWorker worker(JsonNode slice, JsonNode endpoint) {
        final JsonNode metadata = slice.path("metadata");
        final Map<String, String> texts = new LinkedHashMap<>(ports.texts);
        texts.putAll(texts(metadata.path("annotations").path(WORKER).asText()));
        final JsonNode serving = port(slice, ports.port);
        final String address = address(endpoint);
        final String scheme =
                serving.path("appProtocol").asText().equals("https") ? "https" : "http";
        texts.put("url", scheme + "://" + address + ":" + serving.path("port").asInt());
        texts.put("name", podOrAddress(endpoint));
        if (has(slice, ports.events)) {
            texts.put("events", zmq(address, port(slice, ports.events)));
            if (has(slice, ports.replay)) {
                texts.put("replay", zmq(address, port(slice, ports.replay)));
            }
        }
        final JsonNode role = metadata.path("labels").path(ROLE);
        if (role.isTextual()) {
            texts.put("role", role.asText());
        }
        texts.merge("labels", labels(endpoint), EndpointSlices::joined);
        if (texts.get("labels").isEmpty()) {
            texts.remove("labels");
        }
        texts.put("generation", Long.toString(generation(endpoint)));
        return DiscoveredWorker.of(ports.model, texts);
    }

    /** Whether a slice has a port of that name; null is none. */
    private static boolean has(JsonNode slice, String name) {
        for (JsonNode each : slice.path("ports")) {
            if (each.path("name").asText().equals(name)) {
                return true;
            }
        }
        return false;
    }

    private static String zmq(String address, JsonNode port) {
        return "tcp://" + address + ":" + port.path("port").asInt();
    }

    private static JsonNode port(JsonNode slice, String name) {
        final JsonNode all = slice.path("ports");
        if (name == null && all.size() == 1) {
            return checked(all.get(0), "the only port");
        }
        for (JsonNode each : all) {
            if (each.path("name").asText().equals(name)) {
                return checked(each, name);
            }
        }
        throw new IllegalArgumentException(
                name == null
                        ? all.size() + " ports; name one with discovery-kubernetes-port"
                        : "no port is named " + name);
    }

    private static JsonNode checked(JsonNode port, String name) {
        if (!port.path("port").isInt()) {
            throw new IllegalArgumentException(name + " has no number");
        }
        return port;
    }

    private static String address(JsonNode endpoint) {
        final String host = host(endpoint);
        if (host.isEmpty()) {
            throw new IllegalArgumentException("it has no address");
        }
        return host;
    }

    /** Empty where there is none. */
    private static String host(JsonNode endpoint) {
        final String address = endpoint.path("addresses").path(0).asText();
        return address.contains(":") ? "[" + address + "]" : address;
    }

    private static String podOrAddress(JsonNode endpoint) {
        final String pod = endpoint.path("targetRef").path("name").asText();
        return pod.isEmpty() ? endpoint.path("addresses").path(0).asText() : pod;
    }

    /** 0 where there is no UID. */
    private static long generation(JsonNode endpoint) {
        final String uid = uid(endpoint);
        try {
            return UUID.fromString(uid).getMostSignificantBits() & Long.MAX_VALUE;
        } catch (IllegalArgumentException e) {
            return uid.hashCode() & Integer.MAX_VALUE;
        }
    }

    private static String labels(JsonNode endpoint) {
        return joined(
                label("zone", endpoint.path("zone").asText()),
                label("node", endpoint.path("nodeName").asText()));
    }

    private static String label(String key, String value) {
        return value.matches(LABEL) ? key + ":" + value : "";
    }

    private static String joined(String a, String b) {
        return a.isEmpty() || b.isEmpty() ? a + b : a + ";" + b;
    }
}
