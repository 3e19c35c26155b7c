package io.kvasir.nixl.loopback;

import io.kvasir.nixl.transport.KvTransportException;
import io.kvasir.nixl.transport.KvTransportException.Kind;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.TimeUnit;

/** A connected peer: its files as mapped here, its regions, and whether it is still there. */
final class LoopbackPeer implements AutoCloseable {
    /** A peer that has not polled for so long may have ended without its parent noticing. */
    private static final long SILENT_MS = 1_000;

    private final SharedFolder folder;
    private final LoopbackConfig config;
    private final LoopbackId id;
    private final Arena arena;
    private final InboxSender inbox;
    private final ProcessHandle process;
    private final Map<Integer, MemorySegment> memories = new HashMap<>();
    private final long livenessNs;
    private RegionTable regions = RegionTable.EMPTY;
    private long checkedNs = System.nanoTime();
    private String lost;

    private LoopbackPeer(
            SharedFolder folder,
            LoopbackConfig config,
            LoopbackId id,
            Arena arena,
            InboxSender inbox,
            ProcessHandle process) {
        this.folder = folder;
        this.config = config;
        this.id = id;
        this.arena = arena;
        this.inbox = inbox;
        this.process = process;
        this.livenessNs = config.livenessNs();
    }

    /**
     * Connects to a peer that is not known.
     *
     * @throws KvTransportException if it is gone or is not what its metadata says; nothing is left
     *     mapped then
     */
    static LoopbackPeer open(
            SharedFolder folder, LoopbackConfig config, LoopbackId self, LoopbackMetadata peer) {
        final LoopbackId id = peer.id();
        final boolean own = id.pid() == HostProcess.OWN_PID;
        final ProcessHandle process = own ? null : HostProcess.find(id.pid(), id.startMs());
        if (!own && process == null) {
            throw new KvTransportException(
                    Kind.PEER_LOST, "peer " + id + " is gone: no such process");
        }
        final Arena arena = Arena.ofShared();
        final InboxSender inbox;
        try {
            inbox = InboxSender.open(folder, id, self, arena);
        } catch (Throwable t) {
            arena.close();
            throw t;
        }
        final LoopbackPeer opened = new LoopbackPeer(folder, config, id, arena, inbox, process);
        try {
            opened.learn(peer);
        } catch (Throwable t) {
            opened.close();
            throw t;
        }
        return opened;
    }

    /**
     * Knows more of it. What is known stays, except where the new metadata says otherwise.
     *
     * @throws KvTransportException if a region is not what the metadata says; what was known before
     *     is unchanged
     */
    void learn(LoopbackMetadata metadata) {
        final List<RegionTable.Entry> entries = new ArrayList<>();
        for (LoopbackMetadata.Region region : metadata.regions()) {
            entries.add(entry(region));
        }
        final RegionTable table;
        try {
            table = RegionTable.of(entries).over(regions);
        } catch (IllegalArgumentException e) {
            throw new KvTransportException(
                    Kind.BAD_METADATA, "metadata of peer " + id + ": " + e.getMessage(), e);
        }
        if (table.entries().size() > config.maxRegions()) {
            throw new KvTransportException(
                    Kind.CAPACITY,
                    "peer "
                            + id
                            + " has "
                            + table.entries().size()
                            + " regions with those known before, the limit is "
                            + config.maxRegions()
                            + "; raise LoopbackConfig.maxRegions, or disconnect it first");
        }
        regions = table;
    }

    private RegionTable.Entry entry(LoopbackMetadata.Region region) {
        return region.file() == RegionTable.Entry.IN_PROCESS ? inProcess(region) : inFile(region);
    }

    private RegionTable.Entry inProcess(LoopbackMetadata.Region region) {
        final RegionTable.Entry unreachable =
                new RegionTable.Entry(
                        region.name(), region.base(), region.length(), region.file(), null, 0);
        if (process != null) {
            return unreachable;
        }
        final RegionTable.Entry own =
                InProcessPeers.find(id.instance()).find(region.base(), region.length());
        if (own == null || own.file() != region.file() || own.length() != region.length()) {
            throw new KvTransportException(
                    Kind.BAD_METADATA,
                    "peer " + id + " in this process has not registered region " + region.name());
        }
        return own;
    }

    private RegionTable.Entry inFile(LoopbackMetadata.Region region) {
        MemorySegment memory = memories.get(region.file());
        if (memory == null) {
            if (memories.size() == config.maxRegions()) {
                throw new KvTransportException(
                        Kind.CAPACITY,
                        "peer "
                                + id
                                + " shares more than "
                                + config.maxRegions()
                                + " memories; raise LoopbackConfig.maxRegions");
            }
            memory = SharedMemory.map(folder, id, region.file(), arena);
            memories.put(region.file(), memory);
        }
        if (region.offset() + region.length() > memory.byteSize()) {
            throw new KvTransportException(
                    Kind.BAD_METADATA,
                    "peer "
                            + id
                            + ": region "
                            + region.name()
                            + " ends beyond the "
                            + memory.byteSize()
                            + " bytes of its memory");
        }
        return new RegionTable.Entry(
                region.name(),
                region.base(),
                region.length(),
                region.file(),
                memory,
                region.offset());
    }

    LoopbackId id() {
        return id;
    }

    RegionTable regions() {
        return regions;
    }

    /**
     * Whether it is still there. Reads two shared words; checks its process when the last check is
     * long enough ago.
     *
     * @return null, or for people why not; that stays
     */
    String lost(long nowNs) {
        if (lost == null && inbox.isClosed()) {
            lost = "peer " + id + " is gone: it has closed its transport, or refuses messages";
        }
        if (lost == null && process != null && nowNs - checkedNs >= livenessNs) {
            checkedNs = nowNs;
            lostIfDead();
        }
        return lost;
    }

    /** Like {@link #lost}, and checks its process in any case. */
    String lostNow() {
        if (lost(System.nanoTime()) == null && process != null) {
            lostIfDead();
        }
        return lost;
    }

    private void lostIfDead() {
        final boolean silent = inbox.idleMs() >= SILENT_MS; // only then, since it allocates
        if (!process.isAlive() || (silent && HostProcess.isZombie(id.pid()))) {
            lost = "peer " + id + " is gone: its process has ended";
        }
    }

    /**
     * Sends a message.
     *
     * @return false if there is no room
     */
    boolean offer(byte[] message, int length) {
        return inbox.offer(message, length);
    }

    /** Why there is no room, and what to do. */
    String full() {
        return "inbox of peer "
                + id
                + " is full: "
                + inbox.capacity()
                + " bytes wait, it last took messages "
                + inbox.idleMs()
                + " ms ago, waited "
                + TimeUnit.NANOSECONDS.toMillis(config.sendTimeoutNs())
                + " ms; let it poll notifications, or raise its LoopbackConfig.inboxBytes";
    }

    /** Forgets it; its requests fail from now on. Idempotent. */
    @Override
    public void close() {
        if (arena.scope().isAlive()) {
            if (lost == null) {
                lost = "peer " + id + " was disconnected";
            }
            inbox.leave();
            arena.close();
        }
    }
}
