package io.kvasir.nixl.loopback;

import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.transport.KvTransportException.Kind;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;

/**
 * What a peer needs in order to reach an end. Names no files: they follow from the end's id, so
 * that no process can be made to map another.
 *
 * <pre>
 *   0       8         12       16    24      32         40
 *   +-------+---------+--------+-----+-------+----------+------+--------+---------+---------------+
 *   | magic | version | CRC32C | pid | start | instance | name | folder | regions | region        | ...
 *   +-------+---------+--------+-----+-------+----------+------+--------+---------+---------------+
 *   CRC32C: of all after it          text: length:16, UTF-8    regions: count:32
 *   region: name, base:64, length:64, file:32 (-1: none), offset in the file's memory:64
 *   little-endian
 * </pre>
 *
 * @param id of the end
 * @param folder where its files lie
 * @param regions what is registered
 */
record LoopbackMetadata(LoopbackId id, String folder, List<Region> regions) {
    private static final long MAGIC = 0x41_54_45_4D_53_56_4B_01L;
    private static final int VERSION = 1;
    private static final int BODY_OFFSET = 16;
    private static final int MAX_FOLDER = 4096;
    private static final int MAX_REGION_NAME = 256;
    private static final int MIN_REGION = 2 + 8 + 8 + 4 + 8;

    /**
     * A registered region.
     *
     * @param name for messages
     * @param base address in the end's process
     * @param length bytes
     * @param file number of the shared memory, -1 if it lies in none
     * @param offset in the shared memory
     */
    record Region(String name, long base, long length, int file, long offset) {}

    byte[] encode() {
        final byte[] name = id.name().getBytes(StandardCharsets.UTF_8);
        final byte[] path = folder.getBytes(StandardCharsets.UTF_8);
        final List<byte[]> names = regions.stream().map(region -> clipped(region.name())).toList();
        final int length =
                BODY_OFFSET
                        + 3 * Long.BYTES
                        + 2
                        + name.length
                        + 2
                        + path.length
                        + 4
                        + names.stream().mapToInt(text -> MIN_REGION + text.length).sum();
        final ByteBuffer out = ByteBuffer.allocate(length).order(ByteOrder.LITTLE_ENDIAN);
        out.putLong(MAGIC).putInt(VERSION).putInt(0);
        out.putLong(id.pid()).putLong(id.startMs()).putLong(id.instance());
        out.putShort((short) name.length).put(name);
        out.putShort((short) path.length).put(path);
        out.putInt(regions.size());
        for (int i = 0; i < regions.size(); i++) {
            final Region region = regions.get(i);
            out.putShort((short) names.get(i).length).put(names.get(i));
            out.putLong(region.base).putLong(region.length);
            out.putInt(region.file).putLong(region.offset);
        }
        out.putInt(12, checksum(out.array()));
        return out.array();
    }

    private static byte[] clipped(String name) {
        final String text =
                name.substring(0, Math.min(name.length(), MAX_REGION_NAME / 4)); // 4: UTF-8's most
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static int checksum(byte[] metadata) {
        final CRC32C crc = new CRC32C();
        crc.update(metadata, BODY_OFFSET, metadata.length - BODY_OFFSET);
        return (int) crc.getValue();
    }

    /**
     * Reads metadata.
     *
     * @param maxRegions how many are accepted
     * @throws KvTransportException {@code BAD_METADATA}, or {@code CAPACITY} for too many regions
     */
    static LoopbackMetadata decode(byte[] metadata, int maxRegions) {
        if (metadata.length < BODY_OFFSET) {
            throw bad(metadata.length + " bytes");
        }
        final ByteBuffer in = ByteBuffer.wrap(metadata).order(ByteOrder.LITTLE_ENDIAN);
        if (in.getLong() != MAGIC) {
            throw bad("not of the loopback transport");
        }
        final int version = in.getInt();
        if (version != VERSION) {
            throw bad("version " + version + ", known is " + VERSION);
        }
        if (in.getInt() != checksum(metadata)) {
            throw bad("wrong checksum");
        }
        try {
            return body(in, maxRegions);
        } catch (BufferUnderflowException e) {
            throw new KvTransportException(
                    Kind.BAD_METADATA, "metadata of a peer ends too early", e);
        }
    }

    private static LoopbackMetadata body(ByteBuffer in, int maxRegions) {
        final long pid = in.getLong();
        final long startMs = in.getLong();
        final long instance = in.getLong();
        final String name = text(in, LoopbackId.MAX_NAME);
        final String folder = text(in, MAX_FOLDER);
        if (pid <= 0 || startMs < 0 || name.isBlank()) {
            throw bad("name '" + name + "', pid " + pid + ", start " + startMs);
        }
        final int count = in.getInt();
        if (count < 0 || count > in.remaining() / MIN_REGION) {
            throw bad(count + " regions in " + in.remaining() + " bytes");
        }
        if (count > maxRegions) {
            throw new KvTransportException(
                    Kind.CAPACITY,
                    "peer "
                            + name
                            + " has "
                            + count
                            + " regions, the limit is "
                            + maxRegions
                            + "; raise LoopbackConfig.maxRegions");
        }
        final List<Region> regions = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            regions.add(region(in));
        }
        if (in.hasRemaining()) {
            throw bad(in.remaining() + " bytes too many");
        }
        return new LoopbackMetadata(new LoopbackId(name, pid, startMs, instance), folder, regions);
    }

    private static Region region(ByteBuffer in) {
        final String name = text(in, MAX_REGION_NAME);
        final Region region =
                new Region(name, in.getLong(), in.getLong(), in.getInt(), in.getLong());
        final boolean fits =
                region.base > 0
                        && region.length > 0
                        && region.length <= Long.MAX_VALUE - region.base
                        && region.file >= RegionTable.Entry.IN_PROCESS
                        && region.offset >= 0
                        && region.length <= Long.MAX_VALUE - region.offset;
        if (!fits) {
            throw bad(region.toString());
        }
        return region;
    }

    private static String text(ByteBuffer in, int max) {
        final int length = Short.toUnsignedInt(in.getShort());
        if (length > max) {
            throw bad("a text of " + length + " bytes, the limit is " + max);
        }
        final byte[] bytes = new byte[length];
        in.get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    static KvTransportException bad(String what) {
        return new KvTransportException(
                Kind.BAD_METADATA, "metadata of a peer cannot be understood: " + what);
    }
}
