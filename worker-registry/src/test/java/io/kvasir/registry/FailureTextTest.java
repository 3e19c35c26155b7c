package io.kvasir.registry;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.databind.json.JsonMapper;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

import java.io.EOFException;
import java.io.IOException;
import java.net.BindException;
import java.net.ConnectException;
import java.net.URI;
import java.net.UnknownHostException;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.net.http.HttpTimeoutException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.UnresolvedAddressException;
import java.nio.charset.MalformedInputException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.util.concurrent.CompletionException;
import java.util.concurrent.ExecutionException;

class FailureTextTest {
    private static void assertSaid(String expected, Throwable failure) {
        assertEquals(expected, FailureText.of(failure));
        assertEquals(expected, FailureText.of(new ExecutionException(failure)));
        assertEquals(expected, FailureText.of(new CompletionException(failure)));
    }

    @Test
    void connectionsThatWereNotMade() {
        final ConnectException refused = new ConnectException(); // as of the JDK's HTTP client
        refused.initCause(new ClosedChannelException());
        assertSaid("the connection was refused", refused);
        assertSaid("Connection refused", new ConnectException("Connection refused"));
        final ConnectException unresolved = new ConnectException();
        unresolved.initCause(new UnresolvedAddressException());
        assertSaid("its host is unknown", unresolved);
        final ConnectException ofBlockingSend = new ConnectException();
        ofBlockingSend.initCause(unresolved);
        assertSaid("its host is unknown", ofBlockingSend);
        assertSaid("its host is unknown", new UnknownHostException("h"));
    }

    @Test
    void aHostWithoutAddressIsNotOneThatRefuses() throws Exception {
        final String tooLong = "x".repeat(64); // no server of names is asked for it
        final HttpRequest toNone = HttpRequest.newBuilder(URI.create("http://" + tooLong)).build();
        try (HttpClient client = HttpClient.newHttpClient()) {
            final IOException blocking =
                    assertThrows(
                            IOException.class,
                            () -> client.send(toNone, HttpResponse.BodyHandlers.discarding()));
            assertEquals("its host is unknown", FailureText.of(blocking));
        }
    }

    @Test
    void connectionsThatEnded() {
        assertSaid("the connection was closed", new ClosedChannelException());
        assertSaid("the connection was closed", new IOException(new EOFException()));
        assertSaid("request timed out", new HttpTimeoutException("request timed out"));
    }

    @Test
    void aMessageIsSaidWithoutNamesOfClasses() {
        assertSaid("what", new IOException("what", new IOException("why")));
        assertSaid("why", new IllegalStateException(" ", new IOException("why")));
        assertSaid(
                "(unknown) PKIX path building failed: unable to find it",
                new IOException(
                        "(unknown) PKIX path building failed:"
                                + " sun.security.provider.certpath.SunCertPathBuilderException:"
                                + " unable to find it"));
        assertSaid("why", new IOException(new IOException(new IOException("why"))));
    }

    @Test
    void filesThatCannotBeRead() {
        assertSaid("there is no such file", new NoSuchFileException("f"));
        assertSaid("it is no text in UTF-8", new MalformedInputException(1));
        assertSaid("there is no permission for it", new AccessDeniedException("f"));
        assertSaid("it is there already", new FileAlreadyExistsException("f"));
        assertSaid("in use", new IOException("Failed to bind to /x", new BindException("in use")));
        assertSaid("it is no folder", new NotDirectoryException("f"));
        assertSaid("Too many levels", new FileSystemException("f", null, "Too many levels"));
    }

    @Test
    void aFileIsNamedWhereItIsAskedFor() {
        assertEquals(
                "f: there is no such file", FailureText.withFile(new NoSuchFileException("f")));
        assertEquals("why", FailureText.withFile(new FileSystemException(null, null, "why")));
        assertEquals("full", FailureText.withFile(new IOException("full")));
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "<html>  | Unexpected character ('<' (code 60)): expected a valid value",
                "{\"a\":[} | Unexpected close marker '}': expected ']' (for Array starting at line"
                        + " 1, column 6)",
                "[       | Unexpected end-of-input: expected close marker for Array (start marker"
                        + " at line 1, column 1)",
                "LONG    | Number value length (1001) exceeds the maximum allowed (1000)"
            })
    void whatIsNoJsonIsSaidWithoutWordsOfTheLibrary(String text, String expected) {
        final JsonProcessingException failure =
                assertThrows(
                        JsonProcessingException.class,
                        () -> new JsonMapper().readTree(text.replace("LONG", "9".repeat(1001))));
        final String said = FailureText.of(failure);
        assertTrue(said.startsWith(expected), said);
        assertFalse(said.matches("(?s).*(\n|Source|StreamRead|REDACTED).*"), said);
    }

    @Test
    void withoutAMessageItsKindIsSaid() {
        assertSaid("InterruptedException", new InterruptedException());
        assertSaid("NullPointerException", new IOException(new NullPointerException()));
    }
}
