package io.kvasir.panama.nixl;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.kvasir.testsupport.Seeds;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Optional;
import java.util.Random;

class ElfFileTest {
    @TempDir Path folder;

    @Test
    void aWholeLibraryHasNoProblem() {
        assertEquals(Optional.empty(), ElfFile.problem(Loopback.unpack(folder)));
    }

    @Test
    void aLibraryCutBeforeItsLastMappedByteIsRefused() throws IOException {
        final byte[] whole = Files.readAllBytes(Loopback.unpack(folder));
        int refused = 0;
        for (int length = 0; length < whole.length; length += 64) {
            final Path file = write(Arrays.copyOf(whole, length));
            if (ElfFile.problem(file).isPresent()) {
                refused++;
            } else {
                assertTrue(length >= lastMappedByte(whole), "accepted at length " + length);
            }
        }
        assertTrue(refused > 50, "refused=" + refused);
    }

    private static long lastMappedByte(byte[] library) {
        final ByteBuffer bytes = ByteBuffer.wrap(library).order(ByteOrder.LITTLE_ENDIAN);
        long end = 0;
        for (int i = 0; i < bytes.getShort(56); i++) {
            final int at = (int) bytes.getLong(32) + i * 56;
            if (bytes.getInt(at) == 1) {
                end = Math.max(end, bytes.getLong(at + 8) + bytes.getLong(at + 32));
            }
        }
        return end;
    }

    @Test
    void aLibraryOfAnotherMachineIsRefusedWithBothNames() throws IOException {
        final byte[] bytes = Files.readAllBytes(Loopback.unpack(folder));
        bytes[18] = (byte) 243; // RISC-V
        final String problem = ElfFile.problem(write(bytes)).orElseThrow();
        assertTrue(problem.contains("243"), problem);
        assertTrue(problem.contains(System.getProperty("os.arch")), problem);
    }

    @Test
    void foldersAbsentFilesAndTextAreRefused() throws IOException {
        assertEquals(Optional.of("not a regular file"), ElfFile.problem(folder));
        assertEquals(Optional.of("no such file"), ElfFile.problem(folder.resolve("absent.so")));
        assertTrue(ElfFile.problem(write("a text\n".getBytes(StandardCharsets.UTF_8))).isPresent());
        assertTrue(ElfFile.problem(write(new byte[0])).isPresent());
    }

    @Test
    void randomChangesOfTheHeadersNeverThrow() throws IOException {
        final byte[] whole = Files.readAllBytes(Loopback.unpack(folder));
        final Random random = new Random(Seeds.next("randomChangesOfTheHeadersNeverThrow"));
        for (int i = 0; i < 500; i++) {
            final byte[] changed = whole.clone();
            for (int n = 0; n < 4; n++) {
                changed[16 + random.nextInt(600)] = (byte) random.nextInt(256);
            }
            ElfFile.problem(write(changed)); // any answer will do
        }
    }

    private Path write(byte[] bytes) throws IOException {
        return Files.write(folder.resolve("candidate.so"), bytes);
    }
}
