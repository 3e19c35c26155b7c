package io.kvasir.pipeline.capture;

import java.io.BufferedInputStream;
import java.io.DataInputStream;
import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;

/**
 * Reads recordings of ZMQ traffic ({@code .zcap}), record by record. All numbers are big-endian.
 *
 * <pre>
 *   file    "ZCAP0001" record*
 *   record  | time ns : 8 | source : 1 | frames : 1 | frame* |
 *   frame   | length : 4 | bytes |
 *   source  0 subscription · 1 replay reply · 2 replay request · 255 mark (one frame of text)
 * </pre>
 *
 * <p>A recording that was cut off while a record was being written ends before that record, and
 * {@link #isTruncated()} says so. One thread.
 */
public final class ZcapReader implements AutoCloseable {
    private static final byte[] MAGIC = "ZCAP0001".getBytes(StandardCharsets.US_ASCII);
    private static final int MAX_FRAME_BYTES = 256 << 20;

    private final DataInputStream in;
    private final String name;
    private boolean truncated;

    private ZcapReader(InputStream in, String name) throws IOException {
        this.in = new DataInputStream(in);
        this.name = name;
        final byte[] magic = this.in.readNBytes(MAGIC.length);
        if (!Arrays.equals(magic, MAGIC)) {
            throw new IOException(
                    name
                            + " is no capture: it starts with "
                            + Arrays.toString(magic)
                            + ", not with ZCAP0001");
        }
    }

    /**
     * Opens a recording.
     *
     * @param file the recording
     * @throws IOException if it cannot be read or is no recording
     */
    public static ZcapReader open(Path file) throws IOException {
        final InputStream in = new BufferedInputStream(Files.newInputStream(file));
        try {
            return new ZcapReader(in, file.toString());
        } catch (IOException e) {
            in.close();
            throw e;
        }
    }

    /**
     * Reads a recording from a stream.
     *
     * @param in the bytes; closed with this reader
     * @param name what to call it in messages
     * @throws IOException if it is no recording
     */
    public static ZcapReader of(InputStream in, String name) throws IOException {
        return new ZcapReader(in, name);
    }

    /**
     * Reads a whole recording.
     *
     * @param file the recording
     * @return its records, in order
     * @throws IOException if it cannot be read or is no recording
     */
    public static List<ZcapRecord> readAll(Path file) throws IOException {
        try (ZcapReader reader = open(file)) {
            final List<ZcapRecord> records = new ArrayList<>();
            for (ZcapRecord record = reader.next(); record != null; record = reader.next()) {
                records.add(record);
            }
            return records;
        }
    }

    /**
     * Reads the next record.
     *
     * @return the record, null at the end
     * @throws IOException if the recording cannot be read, or a frame is longer than 256 MiB
     */
    public ZcapRecord next() throws IOException {
        if (truncated) {
            return null;
        }
        final int first = in.read();
        if (first < 0) {
            return null;
        }
        try {
            long timeNs = first;
            for (int i = 1; i < Long.BYTES; i++) {
                timeNs = (timeNs << 8) | in.readUnsignedByte();
            }
            final ZcapRecord.Source source = source(in.readUnsignedByte());
            final int count = in.readUnsignedByte();
            final List<byte[]> frames = new ArrayList<>(count);
            for (int i = 0; i < count; i++) {
                frames.add(readFrame());
            }
            return new ZcapRecord(timeNs, source, frames);
        } catch (EOFException e) {
            truncated = true;
            return null;
        }
    }

    private byte[] readFrame() throws IOException {
        final int length = in.readInt();
        if (length < 0 || length > MAX_FRAME_BYTES) {
            throw new IOException(
                    name
                            + " is damaged: a frame of "
                            + Integer.toUnsignedLong(length)
                            + " bytes, the limit is "
                            + MAX_FRAME_BYTES);
        }
        // read in parts as they come: a wrong length must not allocate what is not there
        final byte[] frame = in.readNBytes(length);
        if (frame.length < length) {
            throw new EOFException(name);
        }
        return frame;
    }

    /** Whether the recording ended in the middle of a record. */
    public boolean isTruncated() {
        return truncated;
    }

    @Override
    public void close() throws IOException {
        in.close();
    }

    private static ZcapRecord.Source source(int code) {
        return switch (code) {
            case 0 -> ZcapRecord.Source.SUBSCRIPTION;
            case 1 -> ZcapRecord.Source.REPLAY_REPLY;
            case 2 -> ZcapRecord.Source.REPLAY_REQUEST;
            case 255 -> ZcapRecord.Source.MARK;
            default -> ZcapRecord.Source.UNKNOWN;
        };
    }
}
