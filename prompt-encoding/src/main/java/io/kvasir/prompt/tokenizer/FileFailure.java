package io.kvasir.prompt.tokenizer;

import com.fasterxml.jackson.core.JsonLocation;
import com.fasterxml.jackson.core.JsonProcessingException;

import java.io.EOFException;
import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.charset.CharacterCodingException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.util.regex.Pattern;

/** Why a file of a model cannot be read, in words. Stateless. */
public final class FileFailure {
    private static final Pattern SOURCE =
            Pattern.compile("\\[Source: [^\\]]*?(line: \\d+, column: \\d+)\\]");

    private FileFailure() {}

    /** One line, without names of classes; has the file where the failure does. */
    public static String words(IOException failure) {
        return switch (failure) {
            case NoSuchFileException e -> "there is no file " + e.getFile();
            case AccessDeniedException e -> "there is no permission to read " + e.getFile();
            case NotDirectoryException e -> e.getFile() + ": it is no folder";
            case FileSystemException e -> e.getFile() + ": " + orKind(e.getReason(), e);
            case JsonProcessingException e -> json(e);
            case CharacterCodingException _ -> "it is no text in UTF-8";
            default -> orKind(failure.getMessage(), failure);
        };
    }

    private static String orKind(String messageOrNull, IOException failure) {
        if (messageOrNull != null) {
            return messageOrNull;
        }
        return switch (failure) {
            case EOFException _ -> "the file ends too early";
            case ClosedByInterruptException _ -> "reading it was interrupted";
            default -> "it cannot be read";
        };
    }

    private static String json(JsonProcessingException e) {
        final String what = SOURCE.matcher(e.getOriginalMessage()).replaceAll("$1");
        final JsonLocation at = e.getLocation();
        return at == null
                ? what
                : "line " + at.getLineNr() + ", column " + at.getColumnNr() + ": " + what;
    }
}
