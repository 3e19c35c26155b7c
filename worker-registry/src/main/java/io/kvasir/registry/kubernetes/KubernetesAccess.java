package io.kvasir.registry.kubernetes;

import io.kvasir.registry.ConfiguredFile;
import io.kvasir.registry.FailureText;
import io.kvasir.registry.HostPort;
import io.kvasir.registry.HttpAddress;

import java.io.IOException;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;

/**
 * How an API server is reached.
 *
 * @param server its URL
 * @param account folder with {@code token} and {@code ca.crt}, read again for each request; what is
 *     not there is not used
 * @param namespace whose objects are meant
 */
public record KubernetesAccess(URI server, Path account, String namespace) {
    /** Where a pod has its service account. */
    public static final String ACCOUNT = "/var/run/secrets/kubernetes.io/serviceaccount";

    /** Checks the values. */
    public KubernetesAccess {
        final String problem = HttpAddress.problemOrNull(server);
        if (problem != null) {
            throw new IllegalArgumentException("Kubernetes API server " + server + " " + problem);
        }
        if (namespace.isBlank()) {
            throw new IllegalArgumentException("the Kubernetes namespace is blank");
        }
    }

    /**
     * Takes what is not given from the pod that this process runs in.
     *
     * @param serverOrNull null: that of the environment
     * @param namespaceOrNull null: that of the account
     * @throws IllegalArgumentException if one of them is not known
     */
    public static KubernetesAccess of(URI serverOrNull, Path account, String namespaceOrNull) {
        return new KubernetesAccess(
                serverOrNull == null ? serverOfThePod() : serverOrNull,
                account,
                namespaceOrNull == null ? namespaceOfThePod(account) : namespaceOrNull);
    }

    private static URI serverOfThePod() {
        final String host = System.getenv("KUBERNETES_SERVICE_HOST");
        if (host == null) {
            throw new IllegalArgumentException(
                    "no Kubernetes API server is known: this is no pod"
                            + " (KUBERNETES_SERVICE_HOST is not set), and no server is named");
        }
        return URI.create(
                "https://"
                        + HostPort.of(
                                host,
                                System.getenv().getOrDefault("KUBERNETES_SERVICE_PORT", "443")));
    }

    private static String namespaceOfThePod(Path account) {
        try {
            return new String(
                            ConfiguredFile.read(account.resolve("namespace")),
                            StandardCharsets.UTF_8)
                    .strip();
        } catch (IOException e) {
            throw new IllegalArgumentException(
                    "no Kubernetes namespace is known: none is named, and "
                            + account.resolve("namespace")
                            + " cannot be read: "
                            + FailureText.of(e),
                    e);
        }
    }
}
