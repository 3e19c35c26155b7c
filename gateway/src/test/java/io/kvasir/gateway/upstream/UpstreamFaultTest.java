package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

import java.io.EOFException;
import java.io.IOException;
import java.net.ConnectException;
import java.net.SocketTimeoutException;
import java.net.UnknownHostException;
import java.nio.channels.UnresolvedAddressException;
import java.util.concurrent.ExecutionException;

import javax.net.ssl.SSLHandshakeException;

class UpstreamFaultTest {
    private static void assertSaid(String expected, Throwable failure) {
        assertEquals(expected, UpstreamFault.describe(failure));
    }

    @Test
    void whatAFailureSaysHasNoNamesOfClasses() {
        assertSaid("its host is unknown", new UnresolvedAddressException());
        assertSaid("its host is unknown", new UnknownHostException("h"));
        assertSaid("Connection refused", new ConnectException("Connection refused"));
        assertSaid(
                "Connection refused",
                new ExecutionException(new ConnectException("Connection refused")));
        assertSaid("no answer", new SocketTimeoutException("no answer"));
        assertSaid(
                "(certificate_unknown) PKIX path building failed: unable to find it",
                new SSLHandshakeException(
                        "(certificate_unknown) PKIX path building failed:"
                                + " sun.security.provider.certpath.SunCertPathBuilderException:"
                                + " unable to find it"));
        assertSaid("the connection was closed before the answer was complete", new EOFException());
    }

    @Test
    void theEndOfAConnectionOfHttp2IsInTheWordsOfHttp1() {
        final String closed = "the connection was closed before the answer was complete";
        for (String reason :
                new String[] {"stop", "close", "input_shutdown", "idle_timeout", "null"}) {
            assertSaid(closed, new IOException("no_error/" + reason));
        }
        assertSaid(closed + " (protocol_error)", new IOException("protocol_error/null"));
        assertSaid(
                closed + " (enhance_your_calm_error: too_many_pings)",
                new ExecutionException(new IOException("enhance_your_calm_error/too_many_pings")));
        assertSaid(closed + " (77: a/b)", new IOException("77/a/b"));
        assertSaid("of files/no error", new IOException("of files/no error"));
        assertSaid(
                "the stream was reset: cancel_stream_error",
                new IOException("cancel_stream_error"));
    }

    @Test
    void memoryThatTheGatewayLacksIsNoFaultOfAWorker() {
        final Error lack = new OutOfMemoryError("Cannot reserve 65536 bytes of direct memory");
        for (Throwable failure :
                new Throwable[] {
                    lack,
                    new ExecutionException(lack),
                    new EOFException().initCause(lack),
                    new SSLHandshakeException("no buffer").initCause(lack)
                }) {
            assertEquals(UpstreamFault.LOCAL, UpstreamFault.of(failure));
            assertEquals(UpstreamFault.LOCAL, UpstreamFault.ofUnwritten(failure));
            assertSaid("Cannot reserve 65536 bytes of direct memory", failure);
        }
    }
}
