package io.kvasir.pipeline.zmtp;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

import java.io.ByteArrayOutputStream;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;

class FrameReaderTest {
    private static final int MAX = 5_000;

    /** Keeps what comes, and refuses some of it at first. */
    private static final class Taker implements FrameReader.Receiver {
        private final List<List<byte[]>> messages = new ArrayList<>();
        private final List<byte[]> commands = new ArrayList<>();
        private final SplittableRandom refusals;

        private Taker(SplittableRandom refusals) {
            this.refusals = refusals;
        }

        @Override
        public boolean message(ZmtpMessage message) {
            if (refusals != null && refusals.nextInt(4) == 0) {
                return false;
            }
            final List<byte[]> frames = new ArrayList<>();
            for (int i = 0; i < message.frames(); i++) {
                frames.add(message.copy(i));
            }
            messages.add(frames);
            return true;
        }

        @Override
        public void command(byte[] bytes, int offset, int length) {
            commands.add(ByteBuffer.allocate(length).put(bytes, offset, length).array());
        }
    }

    private static byte[] random(SplittableRandom random, int length) {
        final byte[] bytes = new byte[length];
        random.nextBytes(bytes);
        return bytes;
    }

    @ParameterizedTest
    @ValueSource(longs = {1, 2, 3, 4, 5, 6, 7, 8})
    void whateverTheCutsEveryMessageArrivesOnce(long seed) throws ZmtpException {
        final SplittableRandom random = new SplittableRandom(Long.getLong("seed", seed));
        final List<List<byte[]>> sent = new ArrayList<>();
        final ByteArrayOutputStream wire = new ByteArrayOutputStream();
        for (int i = 0; i < 500; i++) {
            final List<byte[]> frames = new ArrayList<>();
            for (int f = random.nextInt(1, 5); f > 0; f--) {
                frames.add(random(random, random.nextInt(random.nextInt(10) == 0 ? 1_000 : 20)));
                if (random.nextInt(20) == 0) { // a PING between the frames of a message
                    wire.writeBytes(new byte[] {4, 2, 1, 'X'});
                }
                final byte[] last = frames.getLast();
                final boolean isLong = last.length > 255 || random.nextInt(8) == 0;
                wire.write((f > 1 ? 1 : 0) | (isLong ? 2 : 0));
                wire.writeBytes(
                        isLong
                                ? ByteBuffer.allocate(8).putLong(last.length).array()
                                : new byte[] {(byte) last.length});
                wire.writeBytes(last);
            }
            sent.add(frames);
        }
        final ByteBudget budget = new ByteBudget(1 << 20);
        final FrameReader reader = new FrameReader(MAX, budget);
        final Taker taker = new Taker(random);
        final byte[] bytes = wire.toByteArray();
        boolean taken = true;
        for (int at = 0; at < bytes.length; ) {
            if (!taken) {
                taken = reader.resume(taker);
                continue;
            }
            final int to = Math.min(bytes.length, at + random.nextInt(1, 1_500));
            taken = reader.read(bytes, at, to, taker);
            at = to;
        }
        while (!taken) {
            taken = reader.resume(taker);
        }
        assertEquals(sent.size(), taker.messages.size());
        for (int i = 0; i < sent.size(); i++) {
            assertEquals(sent.get(i).size(), taker.messages.get(i).size());
            for (int f = 0; f < sent.get(i).size(); f++) {
                assertArrayEquals(sent.get(i).get(f), taker.messages.get(i).get(f));
            }
        }
        assertTrue(budget.used() <= 2_048, () -> budget.used() + " bytes are held at the end");
        reader.release();
        assertEquals(0, budget.used());
    }

    @Test
    void anAnnouncedLengthTakesNoMemoryBeforeItsBytesCome() throws ZmtpException {
        final ByteBudget budget = new ByteBudget(1 << 30);
        final FrameReader reader = new FrameReader(1 << 29, budget);
        final byte[] start = ByteBuffer.allocate(109).put((byte) 2).putLong(1 << 28).array();
        reader.read(start, 0, start.length, new Taker(null));
        assertTrue(budget.used() < 1_000, () -> "held: " + budget.used());
    }

    @Test
    void allConnectionsTogetherKeepToTheBudget() throws ZmtpException {
        final ByteBudget budget = new ByteBudget(10_000);
        final byte[] start = ByteBuffer.allocate(4_009).put((byte) 2).putLong(5_000).array();
        final FrameReader first = new FrameReader(MAX, budget);
        first.read(start, 0, start.length, new Taker(null));
        final FrameReader second = new FrameReader(MAX, budget);
        second.read(start, 0, start.length, new Taker(null));
        final FrameReader third = new FrameReader(MAX, budget);
        final ZmtpException error =
                assertThrows(
                        ZmtpException.class,
                        () -> third.read(start, 0, start.length, new Taker(null)));
        assertTrue(error.getMessage().contains("event-receive-bytes"), error.getMessage());
        first.release();
        new FrameReader(MAX, budget).read(start, 0, start.length, new Taker(null));
    }

    @Test
    void theSizeOfAMessageIsThatOfAllItsFrames() throws ZmtpException {
        final FrameReader reader = new FrameReader(1_000, new ByteBudget(1 << 20));
        final byte[] half = new byte[9 + 600];
        half[0] = 3;
        half[7] = 600 >> 8;
        half[8] = (byte) 600;
        reader.read(half, 0, half.length, new Taker(null));
        assertThrows(ZmtpException.class, () -> reader.read(half, 0, half.length, new Taker(null)));
    }

    @ParameterizedTest
    @ValueSource(longs = {11, 12, 13, 14})
    void noBytesMakeItThrowAnythingElse(long seed) {
        final SplittableRandom random = new SplittableRandom(Long.getLong("seed", seed));
        for (int round = 0; round < 2_000; round++) {
            final ByteBudget budget = new ByteBudget(1 << 20);
            final FrameReader reader = new FrameReader(MAX, budget);
            final byte[] noise = random(random, 300);
            for (int i = 0; i < noise.length; i++) {
                if (random.nextInt(3) > 0) {
                    noise[i] &= 7;
                }
            }
            try {
                for (int at = 0; at < noise.length; at += 30) {
                    reader.read(noise, at, at + 30, new Taker(null));
                }
            } catch (ZmtpException e) {
                reader.release();
                assertEquals(0, budget.used());
            }
        }
    }
}
