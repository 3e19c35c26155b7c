package io.kvasir.registry;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Path;
import java.security.KeyManagementException;
import java.security.SecureRandom;
import java.util.List;
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
 * TLS made of files that may change: they are read for each connection that is opened, and where
 * their bytes are others than before, the connection and those after it go by them. No session of
 * what was read before is resumed then. Files that cannot be used leave what was read before.
 *
 * <p>Thread-safe.
 */
public final class FollowedTls extends SSLContext {
    private FollowedTls(Followed followed, SSLContext first) {
        super(followed, first.getProvider(), first.getProtocol());
    }

    /**
     * Reads the files.
     *
     * @param reading makes TLS of them, and throws {@link IllegalArgumentException} where one
     *     cannot be used
     * @param problem gets the message of that once for each change of a file; not at first. By any
     *     thread
     * @throws IllegalArgumentException where one cannot be used now
     */
    public static SSLContext of(
            List<Path> files, Supplier<SSLContext> reading, Consumer<String> problem) {
        final Followed followed = new Followed(List.copyOf(files), reading, problem);
        return new FollowedTls(followed, followed.context);
    }

    private static final class Followed extends SSLContextSpi {
        private static final ByteBuffer UNREADABLE = ByteBuffer.allocate(0);

        private final List<Path> files;
        private final Supplier<SSLContext> reading;
        private final Consumer<String> problem;
        private List<ByteBuffer> bytes; // that were seen last; guarded by this
        private SSLContext context; // guarded by this

        Followed(List<Path> files, Supplier<SSLContext> reading, Consumer<String> problem) {
            this.files = files;
            this.reading = reading;
            this.problem = problem;
            bytes = bytes(); // before it is made: what is written meanwhile is seen later
            context = reading.get();
        }

        private List<ByteBuffer> bytes() {
            return files.stream().map(Followed::bytes).toList();
        }

        private static ByteBuffer bytes(Path file) {
            try {
                return ByteBuffer.wrap(ConfiguredFile.read(file));
            } catch (IOException e) {
                return UNREADABLE; // reading it says why
            }
        }

        private synchronized SSLContext now() {
            final List<ByteBuffer> seen = bytes();
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
            throw new KeyManagementException("it is made of " + files);
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
