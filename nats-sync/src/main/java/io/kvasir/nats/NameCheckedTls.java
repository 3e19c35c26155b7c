package io.kvasir.nats;

import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.security.KeyManagementException;
import java.security.NoSuchAlgorithmException;
import java.security.SecureRandom;
import java.util.List;
import java.util.regex.Pattern;

import javax.net.ssl.KeyManager;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLContextSpi;
import javax.net.ssl.SSLEngine;
import javax.net.ssl.SSLParameters;
import javax.net.ssl.SSLServerSocketFactory;
import javax.net.ssl.SSLSessionContext;
import javax.net.ssl.SSLSocket;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManager;

/**
 * TLS to servers whose certificate must be for the host that was asked for. NATS's Java client
 * checks its authority only, so that any other certificate of the same authority would do.
 *
 * <p>Servers of a cluster announce each other by address. Where one is connected to by an address
 * that is not configured, its certificate has to be for the first host that is, as NATS's client in
 * Go has it.
 */
final class NameCheckedTls {
    private static final String BY_HOST = "HTTPS"; // the rules of RFC 2818
    private static final Pattern ADDRESS = Pattern.compile("[0-9.]+|.*:.*");

    private NameCheckedTls() {}

    /**
     * Wraps a context.
     *
     * @param hosts that are configured
     */
    static SSLContext of(SSLContext context, List<String> hosts) {
        return new Context(context, List.copyOf(hosts));
    }

    /**
     * That of the JVM.
     *
     * @param hosts that are configured
     */
    static SSLContext ofJvm(List<String> hosts) {
        try {
            return of(SSLContext.getDefault(), hosts);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalArgumentException("this JVM has no TLS: " + e.getMessage(), e);
        }
    }

    private static final class Context extends SSLContext {
        Context(SSLContext context, List<String> hosts) {
            super(new Spi(context, hosts), context.getProvider(), context.getProtocol());
        }
    }

    private static final class Spi extends SSLContextSpi {
        private final SSLContext context;
        private final List<String> hosts;

        Spi(SSLContext context, List<String> hosts) {
            this.context = context;
            this.hosts = hosts;
        }

        @Override
        protected void engineInit(KeyManager[] keys, TrustManager[] trust, SecureRandom random)
                throws KeyManagementException {
            context.init(keys, trust, random);
        }

        @Override
        protected SSLSocketFactory engineGetSocketFactory() {
            return new Sockets(context.getSocketFactory(), hosts);
        }

        @Override
        protected SSLServerSocketFactory engineGetServerSocketFactory() {
            return context.getServerSocketFactory();
        }

        @Override
        protected SSLEngine engineCreateSSLEngine() {
            return context.createSSLEngine();
        }

        @Override
        protected SSLEngine engineCreateSSLEngine(String host, int port) {
            final SSLEngine engine = context.createSSLEngine(host, port);
            engine.setSSLParameters(byHost(engine.getSSLParameters()));
            return engine;
        }

        @Override
        protected SSLSessionContext engineGetServerSessionContext() {
            return context.getServerSessionContext();
        }

        @Override
        protected SSLSessionContext engineGetClientSessionContext() {
            return context.getClientSessionContext();
        }

        @Override
        protected SSLParameters engineGetDefaultSSLParameters() {
            return context.getDefaultSSLParameters();
        }

        @Override
        protected SSLParameters engineGetSupportedSSLParameters() {
            return context.getSupportedSSLParameters();
        }
    }

    private static SSLParameters byHost(SSLParameters parameters) {
        parameters.setEndpointIdentificationAlgorithm(BY_HOST);
        return parameters;
    }

    private static final class Sockets extends SSLSocketFactory {
        private final SSLSocketFactory factory;
        private final List<String> hosts;

        Sockets(SSLSocketFactory factory, List<String> hosts) {
            this.factory = factory;
            this.hosts = hosts;
        }

        private static Socket checked(Socket socket) {
            if (socket instanceof SSLSocket tls) {
                tls.setSSLParameters(byHost(tls.getSSLParameters()));
            }
            return socket;
        }

        private String named(String host) {
            return hosts.isEmpty() || hosts.contains(host) || !ADDRESS.matcher(host).matches()
                    ? host
                    : hosts.getFirst();
        }

        @Override
        public Socket createSocket(Socket under, String host, int port, boolean closes)
                throws IOException {
            return checked(factory.createSocket(under, named(host), port, closes));
        }

        @Override
        public Socket createSocket(String host, int port) throws IOException {
            return checked(factory.createSocket(host, port));
        }

        @Override
        public Socket createSocket(String host, int port, InetAddress from, int fromPort)
                throws IOException {
            return checked(factory.createSocket(host, port, from, fromPort));
        }

        @Override
        public Socket createSocket(InetAddress host, int port) throws IOException {
            return checked(factory.createSocket(host, port));
        }

        @Override
        public Socket createSocket(InetAddress host, int port, InetAddress from, int fromPort)
                throws IOException {
            return checked(factory.createSocket(host, port, from, fromPort));
        }

        @Override
        public String[] getDefaultCipherSuites() {
            return factory.getDefaultCipherSuites();
        }

        @Override
        public String[] getSupportedCipherSuites() {
            return factory.getSupportedCipherSuites();
        }
    }
}
