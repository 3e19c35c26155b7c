package io.kvasir.panama.cuda;

import static java.lang.foreign.ValueLayout.ADDRESS;
import static java.lang.foreign.ValueLayout.JAVA_BYTE;
import static java.lang.foreign.ValueLayout.JAVA_INT;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.MemoryLayout;

/**
 * The driver's functions that are bound: symbol and signature. All return a {@code CUresult}.
 *
 * <p>Addresses of device memory and handles of contexts, streams and events are {@code JAVA_LONG}:
 * the first is a number in C too, the others are never read through. Host addresses in copies are
 * {@code JAVA_LONG} as well, which spares a copy the 13 ns that holding a shared arena costs; what
 * a function fills in is {@code ADDRESS}.
 */
@SuppressWarnings("ImmutableEnumChecker") // a FunctionDescriptor cannot change, by its contract
enum CudaFunction {
    INIT("cuInit", JAVA_INT),
    DRIVER_GET_VERSION("cuDriverGetVersion", ADDRESS),
    GET_ERROR_NAME("cuGetErrorName", JAVA_INT, ADDRESS),
    GET_ERROR_STRING("cuGetErrorString", JAVA_INT, ADDRESS),
    GET_PROC_ADDRESS("cuGetProcAddress_v2", ADDRESS, ADDRESS, JAVA_INT, JAVA_LONG, ADDRESS),

    DEVICE_GET_COUNT("cuDeviceGetCount", ADDRESS),
    DEVICE_GET("cuDeviceGet", ADDRESS, JAVA_INT),
    DEVICE_GET_NAME("cuDeviceGetName", ADDRESS, JAVA_INT, JAVA_INT),
    DEVICE_TOTAL_MEM("cuDeviceTotalMem_v2", ADDRESS, JAVA_INT),
    DEVICE_GET_ATTRIBUTE("cuDeviceGetAttribute", ADDRESS, JAVA_INT, JAVA_INT),
    DEVICE_GET_PCI_BUS_ID("cuDeviceGetPCIBusId", ADDRESS, JAVA_INT, JAVA_INT),
    DEVICE_GET_UUID("cuDeviceGetUuid_v2", ADDRESS, JAVA_INT),
    DEVICE_CAN_ACCESS_PEER("cuDeviceCanAccessPeer", ADDRESS, JAVA_INT, JAVA_INT),

    DEVICE_PRIMARY_CTX_RETAIN("cuDevicePrimaryCtxRetain", ADDRESS, JAVA_INT),
    DEVICE_PRIMARY_CTX_RELEASE("cuDevicePrimaryCtxRelease_v2", JAVA_INT),
    CTX_SET_CURRENT("cuCtxSetCurrent", JAVA_LONG),
    CTX_GET_CURRENT("cuCtxGetCurrent", ADDRESS),
    CTX_PUSH_CURRENT("cuCtxPushCurrent_v2", JAVA_LONG),
    CTX_POP_CURRENT("cuCtxPopCurrent_v2", ADDRESS),
    CTX_SYNCHRONIZE("cuCtxSynchronize"),
    CTX_ENABLE_PEER_ACCESS("cuCtxEnablePeerAccess", JAVA_LONG, JAVA_INT),

    MEM_ALLOC("cuMemAlloc_v2", ADDRESS, JAVA_LONG),
    MEM_FREE("cuMemFree_v2", JAVA_LONG),
    MEM_GET_INFO("cuMemGetInfo_v2", ADDRESS, ADDRESS),
    MEM_GET_ADDRESS_RANGE("cuMemGetAddressRange_v2", ADDRESS, ADDRESS, JAVA_LONG),
    MEM_HOST_ALLOC("cuMemHostAlloc", ADDRESS, JAVA_LONG, JAVA_INT),
    MEM_FREE_HOST("cuMemFreeHost", JAVA_LONG),
    MEM_HOST_REGISTER("cuMemHostRegister_v2", JAVA_LONG, JAVA_LONG, JAVA_INT),
    MEM_HOST_UNREGISTER("cuMemHostUnregister", JAVA_LONG),
    MEMSET_D8("cuMemsetD8_v2", JAVA_LONG, JAVA_BYTE, JAVA_LONG),
    MEMSET_D8_ASYNC("cuMemsetD8Async", JAVA_LONG, JAVA_BYTE, JAVA_LONG, JAVA_LONG),

    MEMCPY_H_TO_D_ASYNC("cuMemcpyHtoDAsync_v2", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG),
    MEMCPY_D_TO_H_ASYNC("cuMemcpyDtoHAsync_v2", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG),
    MEMCPY_D_TO_D_ASYNC("cuMemcpyDtoDAsync_v2", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG),
    MEMCPY_ASYNC("cuMemcpyAsync", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG),
    MEMCPY_PEER_ASYNC(
            "cuMemcpyPeerAsync", JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG, JAVA_LONG),
    /** Since CUDA 12.8; from 13.0 on the published header means {@link #MEMCPY_BATCH_ASYNC_V2}. */
    MEMCPY_BATCH_ASYNC(
            Presence.NEWER_DRIVERS,
            "cuMemcpyBatchAsync",
            ADDRESS,
            ADDRESS,
            ADDRESS,
            JAVA_LONG,
            ADDRESS,
            ADDRESS,
            JAVA_LONG,
            ADDRESS,
            JAVA_LONG),
    /** Since CUDA 13.0: no index of the copy that failed. */
    MEMCPY_BATCH_ASYNC_V2(
            Presence.NEWER_DRIVERS,
            "cuMemcpyBatchAsync_v2",
            ADDRESS,
            ADDRESS,
            ADDRESS,
            JAVA_LONG,
            ADDRESS,
            ADDRESS,
            JAVA_LONG,
            JAVA_LONG),

    STREAM_CREATE("cuStreamCreate", ADDRESS, JAVA_INT),
    STREAM_DESTROY("cuStreamDestroy_v2", JAVA_LONG),
    STREAM_SYNCHRONIZE("cuStreamSynchronize", JAVA_LONG),
    STREAM_QUERY("cuStreamQuery", JAVA_LONG),
    STREAM_WAIT_EVENT("cuStreamWaitEvent", JAVA_LONG, JAVA_LONG, JAVA_INT),
    LAUNCH_HOST_FUNC("cuLaunchHostFunc", JAVA_LONG, ADDRESS, ADDRESS),
    EVENT_CREATE("cuEventCreate", ADDRESS, JAVA_INT),
    EVENT_RECORD("cuEventRecord", JAVA_LONG, JAVA_LONG),
    EVENT_QUERY("cuEventQuery", JAVA_LONG),
    EVENT_SYNCHRONIZE("cuEventSynchronize", JAVA_LONG),
    EVENT_ELAPSED_TIME("cuEventElapsedTime", ADDRESS, JAVA_LONG, JAVA_LONG),
    EVENT_ELAPSED_TIME_V2(
            Presence.NEWER_DRIVERS, "cuEventElapsedTime_v2", ADDRESS, JAVA_LONG, JAVA_LONG),
    EVENT_DESTROY("cuEventDestroy_v2", JAVA_LONG),

    POINTER_GET_ATTRIBUTE("cuPointerGetAttribute", ADDRESS, JAVA_INT, JAVA_LONG),
    POINTER_SET_ATTRIBUTE("cuPointerSetAttribute", ADDRESS, JAVA_INT, JAVA_LONG),
    IPC_GET_MEM_HANDLE("cuIpcGetMemHandle", ADDRESS, JAVA_LONG),
    IPC_OPEN_MEM_HANDLE("cuIpcOpenMemHandle_v2", ADDRESS, IpcHandleDescriptor.LAYOUT, JAVA_INT),
    IPC_CLOSE_MEM_HANDLE("cuIpcCloseMemHandle", JAVA_LONG);

    /** Whether every driver since CUDA 12.0 exports a function. */
    enum Presence {
        EVERY_DRIVER,
        NEWER_DRIVERS
    }

    private final Presence presence;
    private final String symbol;
    private final FunctionDescriptor descriptor;

    CudaFunction(String symbol, MemoryLayout... arguments) {
        this(Presence.EVERY_DRIVER, symbol, arguments);
    }

    CudaFunction(Presence presence, String symbol, MemoryLayout... arguments) {
        this.presence = presence;
        this.symbol = symbol;
        this.descriptor = FunctionDescriptor.of(JAVA_INT, arguments);
    }

    String symbol() {
        return symbol;
    }

    FunctionDescriptor descriptor() {
        return descriptor;
    }

    /** Returns whether a driver without this function cannot be used. */
    boolean isNeeded() {
        return presence == Presence.EVERY_DRIVER;
    }
}
