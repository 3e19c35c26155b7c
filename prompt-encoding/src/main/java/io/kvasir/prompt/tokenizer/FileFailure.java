package io.kvasir.prompt.tokenizer;

import com.fasterxml.jackson.core.JsonLocation;
import com.fasterxml.jackson.core.JsonProcessingException;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileSystemException;
import java.nio.file.NoSuchFileException;
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
            case FileSystemException e -> e.getFile() + ": " + e.getReason();
            case JsonProcessingException e -> json(e);
            default -> failure.getMessage();
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
