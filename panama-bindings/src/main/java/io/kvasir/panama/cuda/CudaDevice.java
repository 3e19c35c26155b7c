package io.kvasir.panama.cuda;

import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.util.UUID;

/** A GPU as the driver described it when it was probed. Safe for any thread. */
public final class CudaDevice {
    private static final int NAME_CAPACITY = 256;
    private static final int BUS_ID_CAPACITY = 32;
    private static final int UUID_LENGTH = 16;
    private static final long GIB = 1L << 30;

    private final CudaApi api;
    private final int ordinal;
    private final int handle;
    private final String name;
    private final long totalMemoryBytes;
    private final String pciBusId;
    private final UUID uuid;
    private final String computeCapability;

    private CudaDevice(CudaApi api, int ordinal, int handle) {
        final String subject = "device=" + ordinal;
        this.api = api;
        this.ordinal = ordinal;
        this.handle = handle;
        name = text(CudaFunction.DEVICE_GET_NAME, NAME_CAPACITY);
        totalMemoryBytes = api.longOf(CudaFunction.DEVICE_TOTAL_MEM, handle, subject);
        pciBusId = text(CudaFunction.DEVICE_GET_PCI_BUS_ID, BUS_ID_CAPACITY);
        uuid = readUuid();
        computeCapability =
                attribute(CudaConstants.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)
                        + "."
                        + attribute(CudaConstants.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    }

    /**
     * Asks the driver about a device.
     *
     * @throws CudaException if it cannot answer
     */
    static CudaDevice read(CudaApi api, int ordinal) {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment out = arena.allocate(JAVA_INT);
            api.check(
                    CudaFunction.DEVICE_GET,
                    api.call(CudaFunction.DEVICE_GET, out, ordinal),
                    "device=" + ordinal);
            return new CudaDevice(api, ordinal, out.get(JAVA_INT, 0));
        }
    }

    private String text(CudaFunction function, int capacity) {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment out = arena.allocate(capacity);
            api.check(function, api.call(function, out, capacity, handle), "device=" + ordinal);
            return out.getString(0);
        }
    }

    private UUID readUuid() {
        try (Arena arena = Arena.ofConfined()) {
            final MemorySegment out = arena.allocate(UUID_LENGTH);
            api.check(
                    CudaFunction.DEVICE_GET_UUID,
                    api.call(CudaFunction.DEVICE_GET_UUID, out, handle),
                    "device=" + ordinal);
            final ByteBuffer bytes = ByteBuffer.wrap(out.toArray(JAVA_BYTE));
            return new UUID(bytes.getLong(), bytes.getLong());
        }
    }

    private int attribute(int attribute) {
        return api.intOf(
                CudaFunction.DEVICE_GET_ATTRIBUTE,
                attribute,
                handle,
                "device=%d, attribute=%d".formatted(ordinal, attribute));
    }

    /**
     * Returns the device's number in this process; the device number of NIXL's GPU memory.
     *
     * @return 0 or more; {@code CUDA_VISIBLE_DEVICES} changes it
     */
    public int ordinal() {
        return ordinal;
    }

    /**
     * Returns the product's name.
     *
     * @return for example {@code NVIDIA H200}
     */
    public String name() {
        return name;
    }

    /**
     * Returns how much memory the device has.
     *
     * @return bytes
     */
    public long totalMemoryBytes() {
        return totalMemoryBytes;
    }

    /**
     * Returns where the device sits.
     *
     * @return domain, bus, device and function, in hex
     */
    public String pciBusId() {
        return pciBusId;
    }

    /**
     * Returns what names the device in every process and whatever {@code CUDA_VISIBLE_DEVICES}
     * says.
     *
     * @return the identifier that nvidia-smi prints after {@code GPU-}
     */
    public UUID uuid() {
        return uuid;
    }

    /**
     * Returns the generation of the device.
     *
     * @return major and minor number, for example {@code 9.0}
     */
    public String computeCapability() {
        return computeCapability;
    }

    /**
     * Returns whether this device can read and write the other's memory directly.
     *
     * @param peer the other device
     * @return false for a device and itself
     * @throws CudaException if the driver fails
     */
    public boolean canAccessPeer(CudaDevice peer) {
        return api.intOf(
                        CudaFunction.DEVICE_CAN_ACCESS_PEER,
                        handle,
                        peer.handle,
                        "device=%d, peer=%d".formatted(ordinal, peer.ordinal))
                != 0;
    }

    /**
     * Retains the device's primary context, which all libraries of a process share, and makes it if
     * it is not active yet (hundreds of milliseconds, hundreds of megabytes of the device).
     *
     * @return the context, owned by the caller; not current on any thread by this call
     * @throws CudaException if the driver fails
     */
    public CudaContext retainPrimaryContext() {
        final long context =
                api.longOf(CudaFunction.DEVICE_PRIMARY_CTX_RETAIN, handle, "device=" + ordinal);
        return new CudaContext(api, this, context);
    }

    /** Gives one reference to the primary context back. */
    void releasePrimaryContext() {
        api.check(
                CudaFunction.DEVICE_PRIMARY_CTX_RELEASE,
                api.call(CudaFunction.DEVICE_PRIMARY_CTX_RELEASE, handle),
                "device=" + ordinal);
    }

    /** Says it in one line: number, name, memory, PCI address. */
    String describe() {
        return "%d %s, %.1f GiB, %s"
                .formatted(ordinal, name, (double) totalMemoryBytes / GIB, pciBusId);
    }

    @Override
    public String toString() {
        return "CudaDevice[" + describe() + "]";
    }
}
