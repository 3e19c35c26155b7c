package io.kvasir.panama.cuda;

/** Numbers of the driver's header that are used, under the header's names. */
final class CudaConstants {
    /** The stream does not wait for the default stream. */
    static final int CU_STREAM_NON_BLOCKING = 1;

    static final int CU_EVENT_DEFAULT = 0;

    /** The event takes no time stamp, which makes recording and asking cheaper. */
    static final int CU_EVENT_DISABLE_TIMING = 2;

    /** Page-locked for every context of the process. */
    static final int CU_MEMHOSTREGISTER_PORTABLE = 1;

    static final int CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS = 1;

    static final int CU_POINTER_ATTRIBUTE_SYNC_MEMOPS = 6;
    static final int CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9;

    static final int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75;
    static final int CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76;

    private CudaConstants() {}
}
