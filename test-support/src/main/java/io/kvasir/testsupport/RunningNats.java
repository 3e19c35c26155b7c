package io.kvasir.testsupport;

import static org.junit.jupiter.api.Assumptions.abort;

import org.junit.jupiter.api.extension.AfterAllCallback;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeAllCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtensionContext;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;

/**
 * A real NATS server with JetStream for tests, which are skipped where it cannot be had: for all
 * tests of a class where the extension is in a static field, else one for each test.
 */
public final class RunningNats
        implements BeforeAllCallback, AfterAllCallback, BeforeEachCallback, AfterEachCallback {
    private NatsServer server; // null while there is none
    private boolean forAll;

    /**
     * Starts a server for a test that needs one only now and then.
     *
     * @param folder an empty one
     * @return to be closed by the caller; without a server the test is skipped
     */
    public static NatsServer started(Path folder) throws InterruptedException {
        try {
            final NatsServer server = NatsServer.in(NatsServer.program(), folder);
            server.start();
            return server;
        } catch (IOException e) {
            return abort("skipped: no NATS: " + e.getMessage());
        }
    }

    @Override
    public void beforeAll(ExtensionContext context) throws IOException, InterruptedException {
        forAll = true;
        server = started(Files.createTempDirectory("nats"));
    }

    @Override
    public void beforeEach(ExtensionContext context) throws IOException, InterruptedException {
        if (!forAll) {
            server = started(Files.createTempDirectory("nats"));
        }
    }

    @Override
    public void afterEach(ExtensionContext context) throws IOException, InterruptedException {
        if (!forAll) {
            end();
        }
    }

    @Override
    public void afterAll(ExtensionContext context) throws IOException, InterruptedException {
        end();
    }

    private void end() throws IOException, InterruptedException {
        if (server != null) {
            server.stop();
            server.delete();
        }
    }

    /** The server, which a test may stop and start again. */
    public NatsServer server() {
        return server;
    }

    /** Where clients reach it. */
    public String url() {
        return server.url();
    }
}
