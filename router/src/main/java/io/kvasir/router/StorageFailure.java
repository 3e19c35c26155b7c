package io.kvasir.router;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;

/** What ends the start of a router whose files or store cannot be used. Stateless. */
final class StorageFailure {
    private StorageFailure() {}

    /** The failure, whose message says in words what cannot be used, and why. */
    static UncheckedIOException of(String what, IOException cause) {
        return new UncheckedIOException(what + " cannot be used: " + why(cause), cause);
    }

    private static String why(IOException cause) {
        return cause instanceof FileSystemException e && e.getFile() != null
                ? e.getFile() + ": " + said(e)
                : orElse(cause.getMessage());
    }

    private static String said(FileSystemException cause) {
        return switch (cause) {
            case NoSuchFileException _ -> "there is no such file";
            case AccessDeniedException _ -> "there is no permission for it";
            case FileAlreadyExistsException _ -> "it is there already, and is no folder";
            case NotDirectoryException _ -> "it is no folder";
            default -> orElse(cause.getReason());
        };
    }

    private static String orElse(String wordsOrNull) {
        return wordsOrNull == null || wordsOrNull.isBlank()
                ? "it failed without a reason"
                : wordsOrNull;
    }
}
