package io.kvasir.registry;

import com.fasterxml.jackson.core.JsonProcessingException;

import java.io.EOFException;
import java.io.IOException;
import java.net.BindException;
import java.net.ConnectException;
import java.net.UnknownHostException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.UnresolvedAddressException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.util.regex.Pattern;

/** What a failure of a connection or of a file says to an operator. Stateless. */
public final class FailureText {
    private static final Pattern CLASS_NAME =
            Pattern.compile("\\b(?:[a-z]\\w*+\\.)++[A-Z]\\w*(?:Exception|Error)(?:: )?");

    private static final Pattern JSON_SOURCE =
            Pattern.compile("\\[Source: [^\\]]*?line: (\\d+), column: (\\d+)\\]");
    private static final Pattern JSON_LIMIT =
            Pattern.compile(", from `StreamReadConstraints\\.\\w+\\(\\)`");

    private FailureText() {}

    /**
     * The first thing that it or one of its causes says, in words, without names of classes.
     *
     * @return not empty; where none of them says anything, the short name of the last one's class
     */
    public static String of(Throwable failure) {
        Throwable last = failure;
        for (Throwable t = failure; t != null; t = t.getCause()) {
            final String said = said(t);
            if (!said.isBlank()) {
                return said;
            }
            last = t;
        }
        return last.getClass().getSimpleName();
    }

    /** The same after the name of the file that it is about; without one where it is about none. */
    public static String withFile(Throwable failure) {
        return failure instanceof FileSystemException e && e.getFile() != null
                ? e.getFile() + ": " + of(failure)
                : of(failure);
    }

    /** Blank for nothing, or for nothing but what its cause says. */
    private static String said(Throwable t) {
        return switch (t) {
            case NoSuchFileException _ -> "there is no such file";
            case AccessDeniedException _ -> "there is no permission for it";
            case FileAlreadyExistsException _ -> "it is there already";
            case NotDirectoryException _ -> "it is no folder";
            case FileSystemException e -> words(e.getReason());
            case CharacterCodingException _ -> "it is no text in UTF-8";
            case JsonProcessingException e -> json(words(e.getOriginalMessage()));
            case UnknownHostException _ -> "its host is unknown";
            case UnresolvedAddressException _ -> "its host is unknown";
            case ConnectException e -> connecting(e);
            case ClosedChannelException _ -> "the connection was closed";
            case EOFException _ -> "the connection was closed";
            case IOException e
                    when e.getCause() instanceof BindException
                            || e.getCause() instanceof UnresolvedAddressException ->
                    ""; // Jetty's
            default -> isOfItsCause(t) ? "" : words(t.getMessage());
        };
    }

    /** Those of the JDK's HTTP client say nothing, and the last cause may be the wrong thing. */
    private static String connecting(ConnectException e) {
        final String message = words(e.getMessage());
        if (!message.isBlank()) {
            return message;
        }
        for (Throwable t = e.getCause(); t != null; t = t.getCause()) {
            if (t instanceof UnresolvedAddressException) {
                return said(t);
            }
        }
        return "the connection was refused";
    }

    private static boolean isOfItsCause(Throwable t) {
        return t.getCause() != null && t.getCause().toString().equals(t.getMessage());
    }

    private static String json(String message) {
        final String located = JSON_SOURCE.matcher(message).replaceAll("line $1, column $2");
        return JSON_LIMIT.matcher(located).replaceAll("");
    }

    private static String words(String messageOrNull) {
        return messageOrNull == null ? "" : CLASS_NAME.matcher(messageOrNull).replaceAll("");
    }
}
