package io.kvasir.testsupport;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * A standalone service of NVIDIA Dynamo for tests, from a PyPI package that is installed without
 * what it depends on, once below the build's folder.
 */
public final class DynamoService extends ServerProcess {
    private static final String PACKAGE = "ai-dynamo-runtime==1.6.1";

    private final String path;
    private final String module;
    private final List<String> arguments;
    private final int port = FreePorts.run(1);

    private DynamoService(String path, String module, Path folder, List<String> arguments) {
        super(folder);
        this.path = path;
        this.module = module;
        this.arguments = arguments;
    }

    /**
     * Finds the package, or fetches it.
     *
     * @return for {@code PYTHONPATH}
     * @throws IOException saying why it cannot be had
     */
    public static String pythonPath() throws IOException {
        if (!System.getProperty("os.name").equals("Linux")
                || !System.getProperty("os.arch").equals("amd64")) {
            throw new IOException("the wheel is for Linux on x86-64");
        }
        try {
            return BuildFolder.pip("ai-dynamo-runtime", "dynamo/_core.abi3.so", PACKAGE)
                    .getParent()
                    .getParent()
                    .toString();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new IOException("interrupted", e);
        }
    }

    /**
     * Makes a service that is not yet started.
     *
     * @param pythonPath from {@link #pythonPath}
     * @param module such as {@code dynamo.indexer}
     * @param folder an empty one
     * @param arguments beside the port
     */
    public static DynamoService of(
            String pythonPath, String module, Path folder, String... arguments) {
        return new DynamoService(pythonPath, module, folder, List.of(arguments));
    }

    @Override
    List<String> command() {
        final List<String> command =
                new ArrayList<>(
                        List.of(
                                "env",
                                "PYTHONPATH=" + path,
                                BuildFolder.PYTHON,
                                "-m",
                                module,
                                "--port",
                                Integer.toString(port)));
        command.addAll(arguments);
        return command;
    }

    @Override
    boolean answers() {
        try (Socket probe = new Socket(InetAddress.getLoopbackAddress(), port)) {
            return probe.isConnected();
        } catch (IOException e) {
            return false;
        }
    }

    /** Port that it listens on. */
    public int port() {
        return port;
    }
}
