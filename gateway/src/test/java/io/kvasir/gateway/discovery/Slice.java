package io.kvasir.gateway.discovery;

import java.nio.charset.StandardCharsets;
import java.util.UUID;

/** An EndpointSlice as an API server writes it. */
final class Slice {
    static final String READY = "\"ready\":true,\"serving\":true,\"terminating\":false";

    private final String name;
    private final StringBuilder ports = new StringBuilder();
    private final StringBuilder endpoints = new StringBuilder();
    private String labels = "";
    private String annotations = "";
    private String uid;

    Slice(String name) {
        this.name = name;
    }

    String name() {
        return name;
    }

    private static String comma(StringBuilder before) {
        return before.isEmpty() ? "" : ",";
    }

    Slice port(String portName, int number) {
        ports.append(comma(ports))
                .append(
                        "{\"name\":\"%s\",\"port\":%d,\"protocol\":\"TCP\"}"
                                .formatted(portName, number));
        return this;
    }

    Slice annotation(String spec) {
        annotations = "\"kvasir.io/worker\":\"%s\"".formatted(spec);
        return this;
    }

    Slice label(String key, String value) {
        labels = "\"%s\":\"%s\"".formatted(key, value);
        return this;
    }

    /** Of the endpoints that follow. */
    Slice uid(String next) {
        uid = next;
        return this;
    }

    Slice endpoint(String pod, String address, String conditions) {
        endpoints
                .append(comma(endpoints))
                .append(
                        """
                        {"addresses":["%s"],"conditions":{%s},\
                        "targetRef":{"kind":"Pod","name":"%s","namespace":"serving","uid":"%s"}}\
                        """
                                .formatted(
                                        address,
                                        conditions,
                                        pod,
                                        uid == null
                                                ? UUID.nameUUIDFromBytes(
                                                        pod.getBytes(StandardCharsets.UTF_8))
                                                : uid));
        return this;
    }

    String json(long version) {
        return """
        {"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice","metadata":{"name":"%s",\
        "namespace":"serving","resourceVersion":"%d","labels":{%s},"annotations":{%s}},\
        "addressType":"IPv4","ports":[%s],"endpoints":[%s]}\
        """
                .formatted(name, version, labels, annotations, ports, endpoints);
    }
}
