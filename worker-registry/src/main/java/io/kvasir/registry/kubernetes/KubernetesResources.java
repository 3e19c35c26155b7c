package io.kvasir.registry.kubernetes;

import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;

/**
 * Which objects of a namespace are meant.
 *
 * @param group API group, such as {@code discovery.k8s.io}
 * @param version of the group
 * @param plural name of the resource in paths
 * @param selector labels that objects must have; empty for all
 */
public record KubernetesResources(String group, String version, String plural, String selector) {
    /** EndpointSlices with certain labels. */
    public static KubernetesResources endpointSlices(String selector) {
        return new KubernetesResources("discovery.k8s.io", "v1", "endpointslices", selector);
    }

    static String encoded(String text) {
        return URLEncoder.encode(text, StandardCharsets.UTF_8);
    }

    String path(String namespace) {
        return "/apis/"
                + group
                + "/"
                + version
                + "/namespaces/"
                + encoded(namespace)
                + "/"
                + plural;
    }

    String path(String namespace, String name) {
        return path(namespace) + "/" + encoded(name);
    }

    /** Ends so that further parameters can follow an ampersand. */
    String listPath(String namespace) {
        return path(namespace) + "?labelSelector=" + encoded(selector);
    }

    @Override
    public String toString() {
        return plural + " of " + group;
    }
}
