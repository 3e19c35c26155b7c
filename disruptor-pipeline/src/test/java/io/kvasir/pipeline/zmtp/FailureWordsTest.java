package io.kvasir.pipeline.zmtp;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

import java.io.EOFException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.BindException;
import java.net.ConnectException;
import java.net.UnknownHostException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.UnresolvedAddressException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.util.concurrent.CompletionException;
import java.util.stream.Stream;

class FailureWordsTest {
    static Stream<Arguments> failures() {
        return Stream.of(
                Arguments.of(new BindException("Address already in use"), "Address already in use"),
                Arguments.of(new BindException(), "the address cannot be bound"),
                Arguments.of(new ConnectException(), "the connection was refused"),
                Arguments.of(new ClosedChannelException(), "the connection was closed"),
                Arguments.of(new EOFException(), "the connection was closed"),
                Arguments.of(new UnknownHostException("gpu-7"), "its host is unknown"),
                Arguments.of(new UnresolvedAddressException(), "its host is unknown"),
                Arguments.of(
                        new NoSuchFileException("/run/kv.sock"),
                        "there is no such file: /run/kv.sock"),
                Arguments.of(
                        new AccessDeniedException("/run/kv.sock"),
                        "there is no permission for /run/kv.sock"),
                Arguments.of(
                        new FileSystemException("/run", null, "No space left"), "No space left"),
                Arguments.of(new CompletionException(new IOException("reset")), "reset"),
                Arguments.of(new UncheckedIOException(new IOException("reset")), "reset"),
                Arguments.of(new IOException(" ", new IOException("reset")), "reset"),
                Arguments.of(new IOException(), "it failed without a reason"));
    }

    @ParameterizedTest
    @MethodSource("failures")
    void aFailureHasWordsWithoutNamesOfClasses(Throwable failure, String words) {
        assertEquals(words, FailureWords.of(failure));
    }
}
