package io.kvasir.core.radix;

import io.kvasir.core.memory.BuddyArena;

/**
 * Layout of the header of one run, of its holders and of its table of children.
 *
 * <pre>
 *    0         8         16        24        32        40       48     56     64     72       80
 *   +---------+---------+---------+---------+---------+--------+------+------+------+--------+
 *   | version | parent  | extent  | children| holders | holder 0 … holder 4, when no more    |
 *   +---------+---------+---------+---------+---------+--------+------+------+------+--------+
 *   80      84      88        92         96       100      104        108    112   120       128
 *   +-------+-------+---------+----------+--------+--------+----------+------+-----+---------+
 *   | depth | child | next    | previous | unheld | counts | headless |unused| end | run of  |
 *   |       | count | segment | segment  |        |        |          |      |     | an end  |
 *   +-------+-------+---------+----------+--------+--------+----------+------+-----+---------+
 *   version   [ structure:32 | pages:32 ]   structure: path or length cut; pages: a page given back
 *   parent    end of the parent, 0 = free or not yet linked
 *   extent    [ line of the array:32 | first:16 | length:16 ]      one word, so never torn
 *   children  a link: 0 = none; [ 1:8 | 0:24 | run:32 ]; [ 2:8 | count:16 | order:8 | line of a
 *             table:32 ]; [ 3:8 | 0:24 | line of a node:32 ]
 *   holders    [ line of the page, 0 = in the header:32 | 1 = page is a map:1 | count:31 ]
 *   holder     [ worker slot:16 | leading blocks of this run:16 | tag of the owner:32 ]
 *   counts    line of one int per offset of the array: slots that hold the block; 0 = not counted
 *   end       [ how often it was given up:32 | number:32 ] where the children of the run are
 *   run of an end   run that has the end of this header's number
 *   headless  of a first segment: 1 = a slot may hold other segments of the array and not this one
 *   table     2^(order + 2) entries [ local hash:64 ][ run:32 | 0:32 ], run 0 = empty; the search
 *             for a hash begins at the first order + 2 bits of its key that no node above has used
 *   node      16 links, one for each value of the next four bits of the key
 * </pre>
 *
 * <p>The holders of a run that few slots hold are a list in the header or on a page. Where many do,
 * the page is a map with an entry for every slot, in groups of 64:
 *
 * <pre>
 *    0      8         16     24                   16 g              272 g                    400 g
 *   +------+---------+------+---------+-- … ----+-----------------+-----------------------+
 *   | full | partial | full | partial |         | tag:32 per slot | leading:16 per slot   |
 *   | of slots 0..63 | of slots 64..127         |                 | where partial is set  |
 *   +------+---------+------+---------+-- … ----+-----------------+-----------------------+
 *   full      one bit per slot: holds the whole run
 *   partial   one bit per slot: holds some of it; where both are set, full is the newer one
 * </pre>
 *
 * <p>Children name the <em>end</em> of their parent, not the parent: a split leaves them where they
 * are and gives the end to the lower segment, a join gives it back. There is an end for each
 * header.
 *
 * <p>A run is named by its byte offset over the header length. Headers are handed out from blocks
 * that stay headers, so the words above can be read at any time.
 */
final class RunDescriptor {
    static final int VERSION_OFFSET = 0;
    static final int PARENT_OFFSET = VERSION_OFFSET + Long.BYTES;
    static final int EXTENT_OFFSET = PARENT_OFFSET + Long.BYTES;
    static final int CHILDREN_OFFSET = EXTENT_OFFSET + Long.BYTES;
    static final int HOLDERS_OFFSET = CHILDREN_OFFSET + Long.BYTES;
    static final int INLINE_HOLDERS_OFFSET = HOLDERS_OFFSET + Long.BYTES;
    static final int INLINE_HOLDERS = 5;
    static final int DEPTH_OFFSET = INLINE_HOLDERS_OFFSET + INLINE_HOLDERS * Long.BYTES;
    static final int CHILD_COUNT_OFFSET = DEPTH_OFFSET + Integer.BYTES;
    static final int NEXT_SEGMENT_OFFSET = CHILD_COUNT_OFFSET + Integer.BYTES;
    static final int PREVIOUS_SEGMENT_OFFSET = NEXT_SEGMENT_OFFSET + Integer.BYTES;
    static final int UNHELD_OFFSET = PREVIOUS_SEGMENT_OFFSET + Integer.BYTES;
    static final int HOLDER_COUNTS_OFFSET = UNHELD_OFFSET + Integer.BYTES;
    static final int HEADLESS_OFFSET = HOLDER_COUNTS_OFFSET + Integer.BYTES;
    private static final int UNUSED_OFFSET = HEADLESS_OFFSET + Integer.BYTES;
    static final int END_OFFSET = UNUSED_OFFSET + Integer.BYTES;
    static final int END_RUN_OFFSET = END_OFFSET + Long.BYTES;
    static final int HEADER_LENGTH = END_RUN_OFFSET + Long.BYTES;

    static final int HOLDER_MAP = 1 << 31;
    static final int MAP_GROUP_SLOTS = Long.SIZE;
    static final int FULL_OFFSET = 0;
    static final int PARTIAL_OFFSET = FULL_OFFSET + Long.BYTES;
    static final int MAP_GROUP_LENGTH = PARTIAL_OFFSET + Long.BYTES;

    static final int MAX_RUN = 512;
    static final int ENTRY_HASH_OFFSET = 0;
    static final int ENTRY_RUN_OFFSET = ENTRY_HASH_OFFSET + Long.BYTES;
    static final int TABLE_ENTRY_LENGTH = ENTRY_RUN_OFFSET + Long.BYTES;
    static final int TABLE_ENTRIES_PER_LINE = 4;
    static final int ONE_CHILD = 1;
    static final int CHILD_TABLE = 2;
    static final int CHILD_NODE = 3;
    static final int NODE_BITS = 4;
    static final int NODE_LINKS = 1 << NODE_BITS;
    static final int NODE_LENGTH = NODE_LINKS * Long.BYTES;
    static final long STRUCTURE = 0xFFFF_FFFF_0000_0000L;

    private RunDescriptor() {}

    /** Byte offset of a run's header. */
    static long headerOffset(int run) {
        return (long) run * HEADER_LENGTH;
    }

    static long extent(int line, int first, int length) {
        return (long) line << 32 | (long) first << 16 | length;
    }

    static int line(long word) {
        return (int) (word >>> 32);
    }

    static int first(long extent) {
        return (int) (extent >>> 16) & 0xFFFF;
    }

    static int length(long extent) {
        return (int) extent & 0xFFFF;
    }

    static long holder(int slot, int leading, int tag) {
        return (long) slot << 48 | (long) leading << 32 | (tag & 0xFFFF_FFFFL);
    }

    static int slot(long holder) {
        return (int) (holder >>> 48);
    }

    static int leading(long holder) {
        return (int) (holder >>> 32) & 0xFFFF;
    }

    static int tag(long holder) {
        return (int) holder;
    }

    static long oneChild(int run) {
        return (long) ONE_CHILD << 56 | run;
    }

    static long childTable(int line, int order) {
        return (long) CHILD_TABLE << 56 | (long) order << 32 | line;
    }

    static long holders(int line, int count) {
        return (long) line << 32 | count;
    }

    static long holderMap(int line, int count) {
        return (long) line << 32 | ((count | HOLDER_MAP) & 0xFFFF_FFFFL);
    }

    static boolean isMap(long holders) {
        return (int) holders < 0;
    }

    static int count(long holders) {
        return (int) holders & ~HOLDER_MAP;
    }

    /** Groups of 64 slots in a map of holders. */
    static int mapGroups(int slots) {
        return (slots + MAP_GROUP_SLOTS - 1) / MAP_GROUP_SLOTS;
    }

    static long mapTags(int groups) {
        return (long) groups * MAP_GROUP_LENGTH;
    }

    static long mapLeadings(int groups) {
        return mapTags(groups) + (long) groups * MAP_GROUP_SLOTS * Integer.BYTES;
    }

    static long mapLength(int groups) {
        return mapLeadings(groups) + (long) groups * MAP_GROUP_SLOTS * Short.BYTES;
    }

    static int childKind(long children) {
        return (int) (children >>> 56);
    }

    static int tableOrder(long children) {
        return (int) (children >>> 32) & 0xFF;
    }

    /** Children in a table. */
    static int tableCount(long children) {
        return (int) (children >>> 40) & 0xFFFF;
    }

    static long withCount(long table, int count) {
        return (table & ~(0xFFFFL << 40)) | (long) count << 40;
    }

    static long childNode(int line) {
        return (long) CHILD_NODE << 56 | line;
    }

    /** Byte offset of a link of a node. */
    static long nodeLinkOffset(long node, int link) {
        return BuddyArena.offset((int) node) + (long) link * Long.BYTES;
    }

    /** What a child is found by; different local hashes have different keys. */
    static long childKey(long localHash, long secret) {
        return (localHash ^ localHash >>> 32) * secret;
    }

    /** Link of a node for a key, of which the nodes above have used and shifted out some bits. */
    static int nodeLink(long key) {
        return (int) (key >>> (Long.SIZE - NODE_BITS));
    }

    /** Entry where the search for such a key begins, in a table of 2^(order + 2) entries. */
    static int tableHome(long key, int order) {
        return (int) (key >>> (62 - order));
    }

    /** The end that an end is after it was given up: no child of the old one is believed then. */
    static long nextEnd(long end) {
        return end + (1L << 32);
    }
}
