package io.kvasir.registry;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyManagementException;
import java.security.SecureRandom;
import java.util.function.Consumer;
import java.util.function.Supplier;

import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLContextSpi;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLServerSocketFactory;
import javax.net.ssl.SSLSessionContext;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManager;

/**
 * TLS made of a file that may change: it is read for each connection that is opened, and where its
 * bytes are others than before, the connection and those after it go by them. No session of what
 * was read before is resumed then. A file that cannot be used leaves what was read before.
 *
 * <p>Thread-safe.
 */
final class FollowedTls extends SSLContext {
    private FollowedTls(Followed followed, SSLContext first) {
        super(followed, first.getProvider(), first.getProtocol());
    }

    /**
     * Reads the file.
     *
     * @param reading makes TLS of it, and throws {@link IllegalArgumentException} where it cannot
     *     be used
     * @param problem gets the message of that once for each change of the file; not at first
     * @throws IllegalArgumentException where it cannot be used now
     */
    static SSLContext of(Path file, Supplier<SSLContext> reading, Consumer<String> problem) {
        final Followed followed = new Followed(file, reading, problem);
        return new FollowedTls(followed, followed.context);
    }

    private static final class Followed extends SSLContextSpi {
        private static final ByteBuffer UNREADABLE = ByteBuffer.allocate(0);

        private final Path file;
        private final Supplier<SSLContext> reading;
        private final Consumer<String> problem;
        private ByteBuffer bytes; // that were seen last; guarded by this
        private SSLContext context; // guarded by this

        Followed(Path file, Supplier<SSLContext> reading, Consumer<String> problem) {
            this.file = file;
            this.reading = reading;
            this.problem = problem;
            bytes = bytes(); // before it is made: what is written meanwhile is seen later
            context = reading.get();
        }

        private ByteBuffer bytes() {
            try {
                return ByteBuffer.wrap(Files.readAllBytes(file));
            } catch (IOException e) {
                return UNREADABLE; // reading it says why
            }
        }

        private synchronized SSLContext now() {
            final ByteBuffer seen = bytes();
            if (!seen.equals(bytes)) {
                bytes = seen;
                try {
                    context = reading.get();
                } catch (IllegalArgumentException e) {
                    problem.accept(e.getMessage());
                }
            }
            return context;
        }

        @Override
        protected void engineInit(KeyManager[] keys, TrustManager[] trust, SecureRandom random)
                throws KeyManagementException {
            throw new KeyManagementException("it is made of " + file);
        }

        @Override
        protected SSLSocketFactory engineGetSocketFactory() {
            return now().getSocketFactory();
        }

        @Override
        protected SSLServerSocketFactory engineGetServerSocketFactory() {
            return now().getServerSocketFactory();
        }

        @Override
        protected SSLEngine engineCreateSSLEngine() {
            return now().createSSLEngine();
        }

        @Override
        protected SSLEngine engineCreateSSLEngine(String host, int port) {
            return now().createSSLEngine(host, port);
        }

        @Override
        protected SSLSessionContext engineGetServerSessionContext() {
            return now().getServerSessionContext();
        }

        @Override
        protected SSLSessionContext engineGetClientSessionContext() {
            return now().getClientSessionContext();
        }

        @Override
        protected SSLParameters engineGetDefaultSSLParameters() {
            return now().getDefaultSSLParameters();
        }

        @Override
        protected SSLParameters engineGetSupportedSSLParameters() {
            return now().getSupportedSSLParameters();
        }
    }
}
