package io.kvasir.gateway.upstream;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

import java.io.EOFException;
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
}
