package io.kvasir.pipeline.zmtp;

import java.io.EOFException;
import java.net.BindException;
import java.net.ConnectException;
import java.net.UnknownHostException;
import java.nio.channels.ClosedChannelException;
import java.nio.channels.UnresolvedAddressException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;

/** What a failure of a socket says to an operator. Stateless. */
public final class FailureWords {
    private FailureWords() {}

    /**
     * The first thing that it or one of its causes says, without names of classes.
     *
     * @return not empty; where none of them says anything, that it failed without a reason
     */
    public static String of(Throwable failure) {
        for (Throwable t = failure; t != null; t = t.getCause()) {
            final String said = said(t);
            if (!said.isBlank()) {
                return said;
            }
        }
        return "it failed without a reason";
    }

    /** Blank for nothing, or for nothing but what its cause says. */
    private static String said(Throwable t) {
        return switch (t) {
            case NoSuchFileException e -> "there is no such file: " + e.getFile();
            case AccessDeniedException e -> "there is no permission for " + e.getFile();
            case FileSystemException e -> e.getReason() == null ? "" : e.getReason();
            case UnknownHostException _ -> "its host is unknown";
            case UnresolvedAddressException _ -> "its host is unknown";
            case ClosedChannelException _ -> "the connection was closed";
            case EOFException _ -> "the connection was closed";
            case BindException e -> orElse(e, "the address cannot be bound");
            case ConnectException e -> orElse(e, "the connection was refused");
            default -> isOfItsCause(t) ? "" : orElse(t, "");
        };
    }

    private static String orElse(Throwable t, String words) {
        return t.getMessage() == null || t.getMessage().isBlank() ? words : t.getMessage();
    }

    private static boolean isOfItsCause(Throwable t) {
        return t.getCause() != null && t.getCause().toString().equals(t.getMessage());
    }
}
