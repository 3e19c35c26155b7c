package io.kvasir.testsupport;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A real API server of Kubernetes with an etcd of its own, which serve the custom resource of the
 * source tree.
 */
public final class RunningKubernetes implements AutoCloseable {
    private static final String MANIFESTS = "docs/operations/kubernetes/";
    private static final Pattern VERSION = Pattern.compile("\"resourceVersion\":\\s*\"(\\d+)\"");
    private static final int OK = 200;
    private static final int MAX_TRIES = 600;
    private static final long PAUSE_MS = 100;

    private final EtcdServer etcd;
    private final KubernetesServer server;

    private RunningKubernetes(EtcdServer etcd, KubernetesServer server) {
        this.etcd = etcd;
        this.server = server;
    }

    /**
     * Starts both.
     *
     * @param folder an empty one
     * @param accounts token of each service account, which is {@code namespace:name}
     * @throws IOException saying what cannot be had
     */
    public static RunningKubernetes in(Path folder, Map<String, String> accounts)
            throws IOException, InterruptedException {
        final Path program = KubernetesServer.program();
        final EtcdServer etcd =
                EtcdServer.in(EtcdServer.program(), Files.createDirectory(folder.resolve("etcd")));
        etcd.start();
        final KubernetesServer server =
                KubernetesServer.in(
                        program,
                        etcd.uri(),
                        Files.createDirectory(folder.resolve("api")),
                        accounts);
        final RunningKubernetes both = new RunningKubernetes(etcd, server);
        try {
            server.start();
            server.apply("", manifest("kvasirworker-crd.yaml"));
            both.awaitTheResource();
            return both;
        } catch (IOException | InterruptedException e) {
            both.close();
            throw e;
        }
    }

    /** Waits until the custom resource is served, as it is some time after each start. */
    public void awaitTheResource() throws IOException, InterruptedException {
        final String path = "/apis/kvasir.io/v1alpha1/namespaces/default/kvasirworkers";
        for (int i = 0; server.send("GET", path, null).status() != OK; i++) {
            if (i == MAX_TRIES) {
                throw new IOException("the custom resource is not served");
            }
            Thread.sleep(PAUSE_MS);
        }
    }

    /** A manifest of the source tree, by its name. */
    public static String manifest(String name) throws IOException {
        return Files.readString(Documents.file(MANIFESTS + name));
    }

    /**
     * Puts a definition of the custom resource in the place of the one that is there; it counts
     * some time later.
     *
     * @param yaml as {@link #manifest} has it, or changed
     * @throws IOException if it is refused
     */
    public void define(String yaml) throws IOException, InterruptedException {
        final String name = "kvasirworkers.kvasir.io";
        final String path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + name;
        final Matcher version = VERSION.matcher(server.send("GET", path, null).body());
        if (!version.find()) {
            throw new IOException("the custom resource is not defined");
        }
        final String next =
                yaml.replace(
                        "  name: " + name + "\n",
                        "  name: " + name + "\n  resourceVersion: '" + version.group(1) + "'\n");
        final KubernetesServer.Answer answer = server.send("PUT", path, next);
        if (answer.status() != OK) {
            throw new IOException(answer.toString());
        }
    }

    /** Makes a namespace. */
    public void makeNamespace(String name) throws IOException, InterruptedException {
        server.apply("", "kind: Namespace\napiVersion: v1\nmetadata: {name: " + name + "}");
    }

    /** Its etcd. */
    public EtcdServer etcd() {
        return etcd;
    }

    /** Its API server. */
    public KubernetesServer server() {
        return server;
    }

    /** Kills both and waits for their end. */
    @Override
    public void close() {
        try {
            server.stop();
            etcd.stop();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }
}
