package io.kvasir.panama.cuda;

import java.util.Optional;

/** Results of the driver that are distinguished; {@code CUDA_ERROR_} and the name in C. */
public enum CudaResult {
    /** Done. */
    SUCCESS(0),
    /** An argument is out of range. */
    INVALID_VALUE(1),
    /** No memory left on the device or, for page-locked memory, on the host. */
    OUT_OF_MEMORY(2),
    /** {@code cuInit} has not been called. */
    NOT_INITIALIZED(3),
    /** The driver is shutting down with the process. */
    DEINITIALIZED(4),
    /** The library is a toolkit's stub, made to link against and not to run. */
    STUB_LIBRARY(34),
    /** The driver sees no GPU. */
    NO_DEVICE(100),
    /** There is no device of that number. */
    INVALID_DEVICE(101),
    /** No context, or another one, is current on the calling thread. */
    INVALID_CONTEXT(201),
    /** The devices cannot reach each other's memory. */
    PEER_ACCESS_UNSUPPORTED(217),
    /** A call of the operating system failed. */
    OPERATING_SYSTEM(304),
    /** A stream, event or other handle is not valid. */
    INVALID_HANDLE(400),
    /** Not finished yet: not an error. */
    NOT_READY(600),
    /** The device touched an address it may not; the context is lost. */
    ILLEGAL_ADDRESS(700),
    /** Peer access is on already. */
    PEER_ACCESS_ALREADY_ENABLED(704),
    /** Peer access is not on. */
    PEER_ACCESS_NOT_ENABLED(705),
    /** The context has been destroyed. */
    CONTEXT_IS_DESTROYED(709),
    /** The host memory is page-locked already. */
    HOST_MEMORY_ALREADY_REGISTERED(712),
    /** The host memory was not registered. */
    HOST_MEMORY_NOT_REGISTERED(713),
    /** Work on the device failed; the context is lost. */
    LAUNCH_FAILED(719),
    /** Not allowed here. */
    NOT_PERMITTED(800),
    /** Not supported on this device or system. */
    NOT_SUPPORTED(801),
    /** The system is not set up yet, for example the fabric manager. */
    SYSTEM_NOT_READY(802),
    /** Library and kernel module are of different versions. */
    SYSTEM_DRIVER_MISMATCH(803),
    /** The compatibility library does not support this device. */
    COMPAT_NOT_SUPPORTED_ON_DEVICE(804),
    /** The driver cannot say. */
    UNKNOWN(999);

    private final int code;

    CudaResult(int code) {
        this.code = code;
    }

    /**
     * Returns the number that stands for this result in C.
     *
     * @return 0 or a positive number
     */
    public int code() {
        return code;
    }

    /**
     * Finds the result of a number returned by the driver.
     *
     * @param code the number
     * @return the result, or empty for a number that is not distinguished here
     */
    public static Optional<CudaResult> of(int code) {
        for (CudaResult result : values()) {
            if (result.code == code) {
                return Optional.of(result);
            }
        }
        return Optional.empty();
    }

    /** Returns the name in C. */
    String cName() {
        return this == SUCCESS ? "CUDA_SUCCESS" : "CUDA_ERROR_" + name();
    }
}
