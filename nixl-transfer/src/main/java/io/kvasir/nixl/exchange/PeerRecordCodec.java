package io.kvasir.nixl.exchange;

import static io.kvasir.nixl.exchange.PeerRecordDescriptor.CHECKSUM_OFFSET;
import static io.kvasir.nixl.exchange.PeerRecordDescriptor.DIGEST;
import static io.kvasir.nixl.exchange.PeerRecordDescriptor.FIELDS_OFFSET;
import static io.kvasir.nixl.exchange.PeerRecordDescriptor.FIELD_HEADER_LENGTH;
import static io.kvasir.nixl.exchange.PeerRecordDescriptor.GENERATION;
import static io.kvasir.nixl.exchange.PeerRecordDescriptor.GROUP_LENGTH;
import static io.kvasir.nixl.exchange.PeerRecordDescriptor.INCARNATION;
import static io.kvasir.nixl.exchange.PeerRecordDescriptor.MAGIC;
import static io.kvasir.nixl.exchange.PeerRecordDescriptor.METADATA;
import static io.kvasir.nixl.exchange.PeerRecordDescriptor.NAME;
import static io.kvasir.nixl.exchange.PeerRecordDescriptor.POOL;
import static io.kvasir.nixl.exchange.PeerRecordDescriptor.REGIONS;
import static io.kvasir.nixl.exchange.PeerRecordDescriptor.REGION_LENGTH;
import static io.kvasir.nixl.exchange.PeerRecordDescriptor.SITE_LENGTH;
import static io.kvasir.nixl.exchange.PeerRecordDescriptor.VERSION;

import io.kvasir.nixl.exchange.ExchangeException.Kind;
import io.kvasir.nixl.memory.KvLayout;
import io.kvasir.nixl.memory.KvLayout.Group;
import io.kvasir.nixl.memory.KvLayout.Order;
import io.kvasir.nixl.memory.KvRegion;
import io.kvasir.panama.nixl.NixlMemory;

import java.nio.BufferUnderflowException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.zip.CRC32C;

/**
 * Writes and reads encoded peer records ({@link PeerRecordDescriptor}). What is read is not
 * trusted: checksum, lengths and counts are checked before anything of their size is allocated.
 */
final class PeerRecordCodec {
    private static final int MAX_REGION_NAME = 256;

    private static final int MAX_REGIONS = 1 << 16; // no record makes its reader allocate more
    private static final int MAX_DESCRIPTORS = 1 << 24;

    private PeerRecordCodec() {}

    static byte[] encode(PeerRecord record) {
        final byte[] name = utf8(record.name());
        final byte[] digest = utf8(record.digest());
        final byte[] metadata = record.metadata();
        final byte[] memory = memory(record);
        final ByteBuffer out =
                ByteBuffer.allocate(
                                FIELDS_OFFSET
                                        + 6 * FIELD_HEADER_LENGTH
                                        + 2 * Long.BYTES
                                        + name.length
                                        + digest.length
                                        + metadata.length
                                        + memory.length)
                        .order(ByteOrder.LITTLE_ENDIAN);
        out.putInt(MAGIC).putInt(VERSION).putInt(0);
        field(out, NAME, name);
        out.putShort(INCARNATION).putInt(Long.BYTES).putLong(record.incarnation());
        out.putShort(GENERATION).putInt(Long.BYTES).putLong(record.generation());
        field(out, METADATA, metadata);
        field(out, DIGEST, digest);
        field(out, record.memory() instanceof PeerMemory.Pool ? POOL : REGIONS, memory);
        out.putInt(CHECKSUM_OFFSET, checksum(out.array()));
        return out.array();
    }

    private static void field(ByteBuffer out, short tag, byte[] content) {
        out.putShort(tag).putInt(content.length).put(content);
    }

    private static byte[] utf8(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    private static byte[] memory(PeerRecord record) {
        return switch (record.memory()) {
            case PeerMemory.Pool pool -> pool(pool);
            case PeerMemory.Regions regions -> regions(regions.regions());
        };
    }

    private static byte[] pool(PeerMemory.Pool pool) {
        final List<Group> groups = pool.layout().groups();
        checkPool(groups);
        final ByteBuffer out =
                ByteBuffer.allocate(SITE_LENGTH + Integer.BYTES + groups.size() * GROUP_LENGTH)
                        .order(ByteOrder.LITTLE_ENDIAN);
        final KvLayout.Site site = pool.site();
        out.put(code(site.memory())).putInt(site.device()).putLong(site.base());
        out.putInt(groups.size());
        for (Group group : groups) {
            out.put(code(group.order())).putInt(group.blocks()).putInt(group.layers());
            out.putLong(group.layerBlockBytes());
        }
        return out.array();
    }

    private static byte[] regions(List<KvRegion> regions) {
        check(regions.size(), regions.stream().mapToDouble(KvRegion::blocks).sum());
        final List<byte[]> names = regions.stream().map(region -> clipped(region.name())).toList();
        final ByteBuffer out =
                ByteBuffer.allocate(
                                Integer.BYTES
                                        + regions.size() * REGION_LENGTH
                                        + names.stream().mapToInt(text -> text.length).sum())
                        .order(ByteOrder.LITTLE_ENDIAN);
        out.putInt(regions.size());
        for (int i = 0; i < regions.size(); i++) {
            final KvRegion region = regions.get(i);
            out.putShort((short) names.get(i).length).put(names.get(i));
            out.putInt(region.group()).put(code(region.memory())).putInt(region.device());
            out.putLong(region.base()).putLong(region.blockLength()).putLong(region.blockStride());
            out.putInt(region.blocks());
        }
        return out.array();
    }

    private static byte[] clipped(String name) {
        return utf8(name.substring(0, Math.min(name.length(), MAX_REGION_NAME / 4))); // 4: UTF-8's
    }

    private static void checkPool(List<Group> groups) {
        double regions = 0; // cannot overflow
        double descriptors = 0;
        for (Group group : groups) {
            final double each =
                    switch (group.order()) {
                        case BLOCK_MAJOR -> 1;
                        case LAYER_MAJOR -> group.layers();
                        case KEYS_AND_VALUES_APART -> 2.0 * group.layers();
                    };
            regions += each;
            descriptors += each * group.blocks();
        }
        check(regions, descriptors);
    }

    private static void check(double regions, double descriptors) {
        if (regions > MAX_REGIONS || descriptors > MAX_DESCRIPTORS) {
            throw new IllegalArgumentException(
                    "memory of "
                            + (long) regions
                            + " regions and "
                            + (long) descriptors
                            + " descriptors, the limits are "
                            + MAX_REGIONS
                            + " and "
                            + MAX_DESCRIPTORS
                            + "; use larger blocks, or a block-major layout");
        }
    }

    private static int checksum(byte[] record) {
        final CRC32C crc = new CRC32C();
        crc.update(record, FIELDS_OFFSET, record.length - FIELDS_OFFSET);
        return (int) crc.getValue();
    }

    static PeerRecord decode(byte[] record) {
        if (record.length < FIELDS_OFFSET || record.length > PeerRecord.MAX_BYTES) {
            throw malformed(
                    record.length
                            + " bytes, limits "
                            + FIELDS_OFFSET
                            + ".."
                            + PeerRecord.MAX_BYTES);
        }
        final ByteBuffer in = ByteBuffer.wrap(record).order(ByteOrder.LITTLE_ENDIAN);
        if (in.getInt() != MAGIC) {
            throw malformed("not a record");
        }
        final int version = in.getInt();
        if (version != VERSION) {
            throw malformed("version " + version + ", known is " + VERSION);
        }
        if (in.getInt() != checksum(record)) {
            throw malformed("wrong checksum");
        }
        try {
            return fields(in);
        } catch (BufferUnderflowException e) {
            throw new ExchangeException(
                    Kind.MALFORMED, "a record cannot be read: a field ends too early", e);
        } catch (IllegalArgumentException e) {
            throw new ExchangeException(
                    Kind.MALFORMED, "a record cannot be read: " + e.getMessage(), e);
        }
    }

    private static PeerRecord fields(ByteBuffer in) {
        String name = null;
        long incarnation = 0;
        long generation = 0;
        byte[] metadata = new byte[0];
        String digest = "";
        PeerMemory memory = null;
        while (in.hasRemaining()) {
            final short tag = in.getShort();
            final int length = in.getInt();
            if (length < 0 || length > in.remaining()) {
                throw malformed("field " + tag + " has " + length + " bytes of " + in.remaining());
            }
            final ByteBuffer field = in.slice(in.position(), length).order(ByteOrder.LITTLE_ENDIAN);
            in.position(in.position() + length);
            switch (tag) {
                case NAME -> name = text(field, length);
                case INCARNATION -> incarnation = field.getLong();
                case GENERATION -> generation = field.getLong();
                case METADATA -> metadata = bytes(field, length);
                case DIGEST -> digest = text(field, length);
                case POOL -> memory = pool(field);
                case REGIONS -> memory = regions(field);
                default -> field.position(length); // of a later writer
            }
            if (field.hasRemaining()) {
                throw malformed("field " + tag + " has " + field.remaining() + " bytes too many");
            }
        }
        if (name == null || memory == null) {
            throw malformed("no name, or no memory");
        }
        return new PeerRecord(name, incarnation, generation, metadata, memory, digest);
    }

    private static byte[] bytes(ByteBuffer in, int length) {
        final byte[] bytes = new byte[length];
        in.get(bytes);
        return bytes;
    }

    private static String text(ByteBuffer in, int length) {
        return new String(bytes(in, length), StandardCharsets.UTF_8);
    }

    private static int count(ByteBuffer in, int elementLength) {
        final int count = in.getInt();
        if (count < 1 || count > in.remaining() / elementLength) {
            throw malformed(count + " elements in " + in.remaining() + " bytes");
        }
        return count;
    }

    private static PeerMemory pool(ByteBuffer in) {
        final KvLayout.Site site = new KvLayout.Site(memory(in.get()), in.getInt(), in.getLong());
        final int count = count(in, GROUP_LENGTH);
        final List<Group> groups = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            groups.add(new Group(order(in.get()), in.getInt(), in.getInt(), in.getLong()));
        }
        checkPool(groups); // before the layout's regions are made
        return new PeerMemory.Pool(KvLayout.of(groups), site);
    }

    private static PeerMemory regions(ByteBuffer in) {
        final int count = count(in, REGION_LENGTH);
        final List<KvRegion> regions = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            regions.add(
                    new KvRegion(
                            text(in, Short.toUnsignedInt(in.getShort())),
                            in.getInt(),
                            memory(in.get()),
                            in.getInt(),
                            in.getLong(),
                            in.getLong(),
                            in.getLong(),
                            in.getInt()));
        }
        return new PeerMemory.Regions(regions);
    }

    private static byte code(Order order) {
        return switch (order) {
            case BLOCK_MAJOR -> 0;
            case LAYER_MAJOR -> 1;
            case KEYS_AND_VALUES_APART -> 2;
        };
    }

    private static Order order(byte code) {
        return switch (code) {
            case 0 -> Order.BLOCK_MAJOR;
            case 1 -> Order.LAYER_MAJOR;
            case 2 -> Order.KEYS_AND_VALUES_APART;
            default -> throw malformed("no order of blocks has the number " + code);
        };
    }

    private static byte code(NixlMemory memory) {
        return switch (memory) {
            case DRAM -> 0;
            case VRAM -> 1;
            case BLOCK -> 2;
            case OBJECT -> 3;
            case FILE -> 4;
            case UNKNOWN -> throw new IllegalArgumentException("a region's kind is unknown");
        };
    }

    private static NixlMemory memory(byte code) {
        return switch (code) {
            case 0 -> NixlMemory.DRAM;
            case 1 -> NixlMemory.VRAM;
            case 2 -> NixlMemory.BLOCK;
            case 3 -> NixlMemory.OBJECT;
            case 4 -> NixlMemory.FILE;
            default -> throw malformed("no kind of memory has the number " + code);
        };
    }

    private static ExchangeException malformed(String what) {
        return new ExchangeException(Kind.MALFORMED, "a record cannot be read: " + what);
    }
}
