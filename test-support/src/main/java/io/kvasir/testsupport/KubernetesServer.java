package io.kvasir.testsupport;

import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyPairGenerator;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.Base64;
import java.util.List;
import java.util.Map;

import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/**
 * A real API server of Kubernetes for tests, over an etcd, with RBAC and without any controller:
 * the program that {@code KUBE_APISERVER} names, else {@code kube-apiserver} on the path. Objects
 * are written as YAML or JSON by the administrator's token; other tokens are those of the service
 * accounts that were named.
 */
public final class KubernetesServer extends ServerProcess {
    /** Token of an administrator. */
    public static final String ADMIN = "admin-token";

    private static final int OK = 200;
    private static final Duration TIMEOUT = Duration.ofSeconds(20);

    /** Collections of the kinds that {@link #apply} knows, by kind; %s is the namespace. */
    private static final Map<String, String> PATHS =
            Map.of(
                    "CustomResourceDefinition",
                    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                    "Namespace",
                    "/api/v1/namespaces",
                    "ServiceAccount",
                    "/api/v1/namespaces/%s/serviceaccounts",
                    "Role",
                    "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/roles",
                    "RoleBinding",
                    "/apis/rbac.authorization.k8s.io/v1/namespaces/%s/rolebindings",
                    "EndpointSlice",
                    "/apis/discovery.k8s.io/v1/namespaces/%s/endpointslices",
                    "KvasirWorker",
                    "/apis/kvasir.io/v1alpha1/namespaces/%s/kvasirworkers");

    private final Path program;
    private final URI etcd;
    private final Map<String, String> tokens;
    private final int port = FreePorts.run(1);
    private HttpClient http; // null before the first certificate

    private KubernetesServer(Path program, URI etcd, Path folder, Map<String, String> tokens) {
        super(folder);
        this.program = program;
        this.etcd = etcd;
        this.tokens = tokens;
    }

    /** What the API server answered. */
    public record Answer(int status, String body) {}

    /**
     * Finds the program.
     *
     * @return where it is
     * @throws IOException saying that there is none
     */
    public static Path program() throws IOException {
        return BuildFolder.program("KUBE_APISERVER", "kube-apiserver")
                .orElseThrow(
                        () ->
                                new IOException(
                                        "KUBE_APISERVER is not set, and no kube-apiserver is on"
                                                + " the path"));
    }

    /**
     * Makes a server that is not yet started.
     *
     * @param program from {@link #program}
     * @param etcd where one runs
     * @param folder an empty one
     * @param accounts token of each service account, which is {@code namespace:name}
     */
    public static KubernetesServer in(
            Path program, URI etcd, Path folder, Map<String, String> accounts) {
        return new KubernetesServer(program, etcd, folder, Map.copyOf(accounts));
    }

    @Override
    List<String> command() throws IOException {
        final Path key = folder().resolve("sa.key");
        if (!Files.exists(key)) {
            Files.writeString(key, rsaKey());
            final StringBuilder csv =
                    new StringBuilder(ADMIN + ",admin,admin,\"system:masters\"\n");
            tokens.forEach(
                    (account, token) ->
                            csv.append(token)
                                    .append(",system:serviceaccount:")
                                    .append(account)
                                    .append(',')
                                    .append(token)
                                    .append('\n'));
            Files.writeString(folder().resolve("tokens.csv"), csv);
        }
        return List.of(
                program.toString(),
                "--etcd-servers=" + etcd,
                "--bind-address=127.0.0.1",
                "--advertise-address=127.0.0.1",
                "--secure-port=" + port,
                "--cert-dir=" + certificate().getParent(),
                "--service-account-issuer=https://localhost",
                "--service-account-key-file=" + key,
                "--service-account-signing-key-file=" + key,
                "--service-cluster-ip-range=10.0.0.0/24",
                "--token-auth-file=" + folder().resolve("tokens.csv"),
                "--authorization-mode=RBAC",
                "--disable-admission-plugins=ServiceAccount",
                "--endpoint-reconciler-type=none");
    }

    private static String rsaKey() throws IOException {
        try {
            final KeyPairGenerator generator = KeyPairGenerator.getInstance("RSA");
            generator.initialize(2048);
            return "-----BEGIN PRIVATE KEY-----\n"
                    + Base64.getMimeEncoder(64, new byte[] {'\n'})
                            .encodeToString(generator.generateKeyPair().getPrivate().getEncoded())
                    + "\n-----END PRIVATE KEY-----\n";
        } catch (GeneralSecurityException e) {
            throw new IOException("no RSA key can be made", e);
        }
    }

    private Path certificate() {
        return data().resolve("apiserver.crt");
    }

    @Override
    boolean answers() throws IOException {
        if (!Files.exists(certificate())) {
            return false;
        }
        try {
            return send("GET", "/readyz", null).status() == OK;
        } catch (IOException e) {
            return false;
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", e);
        }
    }

    /**
     * Where clients reach it.
     *
     * @return the same after another start
     */
    public URI uri() {
        return URI.create("https://127.0.0.1:" + port);
    }

    /**
     * Makes a service account's folder as pods have it; after the first start.
     *
     * @param token that is in it
     * @param to a folder, left as it is if it is there
     * @return that folder
     */
    public Path account(String token, Path to) throws IOException {
        if (!Files.exists(to)) {
            Files.createDirectories(to);
            Files.writeString(to.resolve("token"), token);
            Files.copy(certificate(), to.resolve("ca.crt"));
        }
        return to;
    }

    /**
     * Sends a request of the administrator.
     *
     * @param yamlOrNull JSON is YAML, too
     */
    public Answer send(String method, String path, String yamlOrNull)
            throws IOException, InterruptedException {
        final HttpRequest.Builder request =
                HttpRequest.newBuilder(uri().resolve(path))
                        .timeout(TIMEOUT)
                        .header("Authorization", "Bearer " + ADMIN)
                        .header("Accept", "application/json")
                        .method(
                                method,
                                yamlOrNull == null
                                        ? HttpRequest.BodyPublishers.noBody()
                                        : HttpRequest.BodyPublishers.ofString(yamlOrNull));
        if (yamlOrNull != null) {
            request.header("Content-Type", "application/yaml");
        }
        final HttpResponse<String> answer =
                http().send(request.build(), HttpResponse.BodyHandlers.ofString());
        return new Answer(answer.statusCode(), answer.body());
    }

    /**
     * Makes the objects of a YAML text.
     *
     * @param yaml documents with a line of three dashes between, each with its kind on a line
     * @throws IOException if one is refused
     */
    public void apply(String namespace, String yaml) throws IOException, InterruptedException {
        for (String document : yaml.split("(?m)^---$", -1)) {
            final Answer answer = create(namespace, document);
            if (answer.status() / 100 != 2) {
                throw new IOException(answer + " to " + document);
            }
        }
    }

    /** Makes the object of one YAML document. */
    public Answer create(String namespace, String yaml) throws IOException, InterruptedException {
        final String kind =
                yaml.lines()
                        .filter(line -> line.startsWith("kind: "))
                        .findFirst()
                        .orElseThrow(() -> new IOException("no kind in " + yaml))
                        .substring("kind: ".length());
        return send("POST", PATHS.get(kind).formatted(namespace), yaml);
    }

    private HttpClient http() throws IOException {
        if (http == null) {
            try {
                http = HttpClient.newBuilder().sslContext(trusting(certificate())).build();
            } catch (GeneralSecurityException e) {
                throw new IOException("the server's certificate cannot be read yet", e);
            }
        }
        return http;
    }

    private static SSLContext trusting(Path pem) throws IOException, GeneralSecurityException {
        final KeyStore store = KeyStore.getInstance("PKCS12");
        store.load(null, null);
        try (InputStream in = Files.newInputStream(pem)) {
            for (Certificate each :
                    CertificateFactory.getInstance("X.509").generateCertificates(in)) {
                store.setCertificateEntry("ca-" + store.size(), each);
            }
        }
        final TrustManagerFactory trust =
                TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        final SSLContext tls = SSLContext.getInstance("TLS");
        tls.init(null, trust.getTrustManagers(), null);
        return tls;
    }
}
