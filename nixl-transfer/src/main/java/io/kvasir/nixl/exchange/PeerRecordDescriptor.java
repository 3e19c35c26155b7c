package io.kvasir.nixl.exchange;

/**
 * Layout of an encoded {@link PeerRecord}: a header, then fields in any order, each with a tag and
 * a length. All numbers are little-endian, all texts UTF-8.
 *
 * <pre>
 *   0       4         8        12
 *   +-------+---------+--------+---------+---------+-- ... --+
 *   | magic | version | CRC32C | field   | field   |         |   CRC32C: of all bytes from 12 on
 *   +-------+---------+--------+---------+---------+-- ... --+
 *
 *   field
 *   0     2        6
 *   +-----+--------+-----------------+   tag 1 name, 5 digest: text    4 metadata: bytes
 *   | tag | length | content: length |   2 incarnation, 3 generation: one long
 *   +-----+--------+-----------------+   6 pool or 7 regions: memory, exactly one of them
 *
 *   pool                                        group
 *   0      1        5      13      17           0       1        5        9                  17
 *   +------+--------+------+-------+--------+   +-------+--------+--------+-------------------+
 *   | kind | device | base | count | groups |   | order | blocks | layers | layer block bytes |
 *   +------+--------+------+-------+--------+   +-------+--------+--------+-------------------+
 *
 *   regions             region, after its name of n bytes
 *   0       4           0   2      2+n     6+n    7+n      11+n   19+n           27+n           35+n     39+n
 *   +-------+--------+  +---+------+-------+------+--------+------+--------------+--------------+--------+
 *   | count | regions|  | n | name | group | kind | device | base | block length | block stride | blocks |
 *   +-------+--------+  +---+------+-------+------+--------+------+--------------+--------------+--------+
 *
 *   kind: 0 DRAM, 1 VRAM, 2 block, 3 object, 4 file    order: 0 block-major, 1 layer-major, 2 keys and values apart
 * </pre>
 *
 * <p>Later fields have tags of their own, which older readers skip; a record that older readers
 * would misunderstand has another version.
 */
final class PeerRecordDescriptor {
    static final int MAGIC = 0x44_43_56_4B; // KVCD
    static final int VERSION = 1;

    static final int MAGIC_OFFSET = 0;
    static final int VERSION_OFFSET = MAGIC_OFFSET + Integer.BYTES;
    static final int CHECKSUM_OFFSET = VERSION_OFFSET + Integer.BYTES;
    static final int FIELDS_OFFSET = CHECKSUM_OFFSET + Integer.BYTES;

    static final int FIELD_HEADER_LENGTH = Short.BYTES + Integer.BYTES;
    static final short NAME = 1;
    static final short INCARNATION = 2;
    static final short GENERATION = 3;
    static final short METADATA = 4;
    static final short DIGEST = 5;
    static final short POOL = 6;
    static final short REGIONS = 7;

    /** Kind of memory, device and base. */
    static final int SITE_LENGTH = Byte.BYTES + Integer.BYTES + Long.BYTES;

    static final int GROUP_LENGTH = Byte.BYTES + 2 * Integer.BYTES + Long.BYTES;

    /** A region without the bytes of its name. */
    static final int REGION_LENGTH =
            Short.BYTES
                    + Integer.BYTES
                    + Byte.BYTES
                    + Integer.BYTES
                    + 3 * Long.BYTES
                    + Integer.BYTES;

    private PeerRecordDescriptor() {}
}
