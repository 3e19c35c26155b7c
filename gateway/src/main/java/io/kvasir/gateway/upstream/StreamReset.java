package io.kvasir.gateway.upstream;

import org.eclipse.jetty.client.RetryableRequestException;
import org.eclipse.jetty.http2.ErrorCode;
import org.eclipse.jetty.http2.RetryableStreamException;

import java.io.IOException;
import java.util.Arrays;
import java.util.Locale;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * What failures of Jetty's client say of a stream of HTTP/2 whose connection lives on. A reset has
 * no type of its own: its text is the error's name.
 */
public final class StreamReset {
    private static final String REFUSED = name(ErrorCode.REFUSED_STREAM_ERROR);
    private static final String OTHER = "reset_code_";
    private static final Set<String> NAMES =
            Arrays.stream(ErrorCode.values()).map(StreamReset::name).collect(Collectors.toSet());

    private StreamReset() {}

    private static String name(ErrorCode code) {
        return code.name().toLowerCase(Locale.ROOT);
    }

    /** Whether it is the name of an error of HTTP/2, as Jetty's client writes it. */
    static boolean isError(String name) {
        return NAMES.contains(name);
    }

    /** Whether the worker has reset the stream. */
    public static boolean is(Throwable failure) {
        return failure instanceof IOException
                && failure.getMessage() != null
                && (isError(failure.getMessage()) || failure.getMessage().startsWith(OTHER));
    }

    /**
     * Whether the worker has not begun with the request: it has refused the stream, has sent a
     * GOAWAY before it, or there was no room for it on the connection after all.
     */
    static boolean isRefusal(Throwable failure) {
        return failure instanceof RetryableRequestException
                || failure instanceof RetryableStreamException
                || (is(failure) && failure.getMessage().equals(REFUSED))
                || wasNotSent(failure);
    }

    private static boolean wasNotSent(Throwable failure) {
        return failure instanceof IllegalStateException
                && failure.getMessage() != null
                && (failure.getMessage().equals("session closed")
                        || failure.getMessage().startsWith("Max local stream count"));
    }
}
