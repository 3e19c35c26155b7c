package io.kvasir.pipeline.wire;

import io.kvasir.core.index.StorageTier;

import java.util.Set;

/**
 * Decides by medium, locality, ownership and cache group whether an event is about blocks that the
 * index is to know: held in a tier that is indexed, on this machine or in shared storage, by the
 * engine itself, in the group of the model's full attention.
 *
 * <p>A model with several cache groups announces each block once per group. Only one group may
 * count: the first that announces itself as full attention, or group 0 as long as none has. One
 * thread.
 */
final class Placement {
    private static final int UNLEARNED = -1;

    private static final byte[][] DEVICE = words("GPU", "DEVICE", "");
    private static final byte[][] HOST = words("CPU", "CPU_PINNED", "CPU_TIER1");
    private static final byte[][] DISK = words("CPU_TIER2", "DISK", "NVME", "STORAGE");
    private static final byte[][] EXTERNAL = words("EXTERNAL", "NETWORK", "REMOTE", "SHARED");
    private static final byte[][] LOCAL = words("LOCAL", "");
    private static final byte[][] FOREIGN_OWNERS = words("kvcr");
    private static final byte[][] ENGINE_OWNED = words("");
    private static final byte[][] MAIN_KINDS =
            words("full_attention", "mla_attention", "sink_full_attention");
    private static final byte[][] OTHER_KINDS =
            words(
                    "sliding_window",
                    "sliding_window_mla",
                    "chunked_local_attention",
                    "mamba",
                    "cross_attention",
                    "encoder_only_attention");

    private final Set<StorageTier> indexed;
    private long mainGroup = UNLEARNED;
    private volatile String otherGroups = "";
    private StorageTier tier = StorageTier.DEVICE;

    /**
     * @param indexed tiers below the device whose blocks the index is to know
     */
    Placement(Set<StorageTier> indexed) {
        this.indexed = indexed;
    }

    /** Where the blocks of the event are that was checked last. */
    StorageTier tier() {
        return tier;
    }

    void forget() {
        mainGroup = UNLEARNED;
        otherGroups = "";
    }

    /**
     * A kind of cache group that the engine has besides the one that counts: its hits end where
     * blocks of that one are missing, too. Empty as long as none has announced itself; any thread.
     */
    String otherGroups() {
        return otherGroups;
    }

    /** The cache group that counts, −1 as long as none has announced itself. */
    long mainGroup() {
        return mainGroup;
    }

    void mainGroup(long group) {
        mainGroup = group;
    }

    /** Why the event is not for the index; null if it is. */
    DropReason check(MsgpackReader reader, EventFields fields) {
        DropReason reason = medium(reader, fields.at(EventFields.MEDIUM));
        if (reason == null && tier != StorageTier.SHARED) { // that is elsewhere by its nature
            reason = locality(reader, fields.at(EventFields.LOCALITY));
        }
        if (reason == null) {
            reason = ownership(reader, fields.at(EventFields.OWNERSHIP));
        }
        if (reason == null) {
            reason = group(reader, fields);
        }
        return reason;
    }

    DropReason medium(MsgpackReader reader, int at) {
        tier = StorageTier.DEVICE;
        if (!readText(reader, at)) {
            return absentOrMalformed(reader, at);
        }
        if (isOneOf(reader, DEVICE)) {
            return null;
        }
        if (isOneOf(reader, HOST)) {
            tier = StorageTier.HOST;
        } else if (isOneOf(reader, DISK)) {
            tier = StorageTier.DISK;
        } else if (isOneOf(reader, EXTERNAL)) {
            tier = StorageTier.SHARED;
        } else {
            return DropReason.UNKNOWN_MEDIUM;
        }
        return indexed.contains(tier) ? null : notIndexed(tier);
    }

    /** Why blocks of a tier are dropped where it is not indexed. */
    static DropReason notIndexed(StorageTier tier) {
        return switch (tier) {
            case HOST -> DropReason.HOST_PINNED_TIER;
            case DISK -> DropReason.DISK_TIER;
            case SHARED -> DropReason.EXTERNAL_TIER;
            case DEVICE -> throw new IllegalArgumentException("the device is always indexed");
        };
    }

    private static DropReason locality(MsgpackReader reader, int at) {
        if (!readText(reader, at)) {
            return absentOrMalformed(reader, at);
        }
        return isOneOf(reader, LOCAL) ? null : DropReason.NON_LOCAL_LOCALITY;
    }

    private static DropReason ownership(MsgpackReader reader, int at) {
        if (!readText(reader, at)) {
            return absentOrMalformed(reader, at);
        }
        if (isOneOf(reader, ENGINE_OWNED)) {
            return null;
        }
        return isOneOf(reader, FOREIGN_OWNERS)
                ? DropReason.UNSUPPORTED_OWNERSHIP
                : DropReason.UNKNOWN_OWNERSHIP;
    }

    private DropReason group(MsgpackReader reader, EventFields fields) {
        final int kindAt = fields.at(EventFields.SPEC_KIND);
        final int groupAt = fields.at(EventFields.GROUP_IDX);
        final boolean hasGroup = isPresent(reader, groupAt);
        long group = UNLEARNED;
        if (hasGroup) {
            if (reader.peek() != MsgpackReader.Kind.INTEGER) {
                return DropReason.MALFORMED_EVENT;
            }
            group = reader.readLong();
            if (group < 0) {
                return DropReason.MALFORMED_EVENT;
            }
        }
        if (isPresent(reader, kindAt)) {
            if (!readText(reader, kindAt)) {
                return DropReason.MALFORMED_EVENT;
            }
            if (!isOneOf(reader, MAIN_KINDS)) {
                return ofOtherKind(reader);
            }
            if (hasGroup && mainGroup == UNLEARNED) {
                mainGroup = group;
            }
        }
        if (!hasGroup || group == mainGroup) {
            return null;
        }
        if (mainGroup != UNLEARNED) {
            return DropReason.NON_MAIN_ATTENTION_GROUP;
        }
        return group == 0 ? null : DropReason.UNLEARNED_GROUP_IDX;
    }

    private DropReason ofOtherKind(MsgpackReader reader) {
        if (!isOneOf(reader, OTHER_KINDS)) {
            return DropReason.UNKNOWN_KIND;
        }
        if (otherGroups.isEmpty()) {
            otherGroups = reader.dataText();
        }
        return DropReason.NON_MAIN_ATTENTION_KIND;
    }

    private static boolean isPresent(MsgpackReader reader, int at) {
        if (at < 0) {
            return false;
        }
        reader.position(at);
        return reader.peek() != MsgpackReader.Kind.NIL;
    }

    private static boolean readText(MsgpackReader reader, int at) {
        return isPresent(reader, at)
                && reader.peek() == MsgpackReader.Kind.STRING
                && reader.readData();
    }

    private static DropReason absentOrMalformed(MsgpackReader reader, int at) {
        return isPresent(reader, at) ? DropReason.MALFORMED_EVENT : null;
    }

    private static boolean isOneOf(MsgpackReader reader, byte[][] words) {
        for (byte[] word : words) {
            if (reader.dataEquals(word)) {
                return true;
            }
        }
        return false;
    }

    private static byte[][] words(String... words) {
        final byte[][] result = new byte[words.length][];
        for (int i = 0; i < words.length; i++) {
            result[i] = EventFields.ascii(words[i]);
        }
        return result;
    }
}
