package io.kvasir.prompt.tokenizer;

import static org.junit.jupiter.api.Assertions.assertEquals;

import org.junit.jupiter.api.Test;

import java.io.EOFException;
import java.io.IOException;
import java.nio.channels.ClosedByInterruptException;
import java.nio.charset.MalformedInputException;
import java.nio.file.FileSystemException;
import java.nio.file.NotDirectoryException;

class FileFailureTest {
    @Test
    void aFailureWithoutMessageIsNamedByItsKind() {
        assertEquals("the file ends too early", FileFailure.words(new EOFException()));
        assertEquals(
                "reading it was interrupted", FileFailure.words(new ClosedByInterruptException()));
        assertEquals("it is no text in UTF-8", FileFailure.words(new MalformedInputException(1)));
        assertEquals("f: it is no folder", FileFailure.words(new NotDirectoryException("f")));
        assertEquals("f: it cannot be read", FileFailure.words(new FileSystemException("f")));
        assertEquals("it cannot be read", FileFailure.words(new IOException()));
    }

    @Test
    void aMessageIsKept() {
        assertEquals("Is a directory", FileFailure.words(new IOException("Is a directory")));
        assertEquals(
                "f: Too many open files",
                FileFailure.words(new FileSystemException("f", null, "Too many open files")));
        assertEquals("short", FileFailure.words(new EOFException("short")));
    }
}
