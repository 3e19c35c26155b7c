package io.kvasir.core.memory;

import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Documents;

import org.junit.jupiter.api.Test;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;

/** {@code docs/spec/mapped-index.md} gives the magic number as it is written. */
class MappedIndexDocumentTest {
    @Test
    void theMagicIsGivenAsANumberAndAsBytes() throws IOException {
        final byte[] bytes =
                ByteBuffer.allocate(Long.BYTES)
                        .order(ByteOrder.LITTLE_ENDIAN)
                        .putLong(RecoverableDescriptor.MAGIC)
                        .array();
        final String page = Files.readString(Documents.file("docs/spec/mapped-index.md"));
        assertTrue(page.contains("0x" + Long.toHexString(RecoverableDescriptor.MAGIC)), page);
        assertTrue(page.contains("`" + new String(bytes, StandardCharsets.US_ASCII) + "`"), page);
    }
}
