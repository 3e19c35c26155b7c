/*
 * The part of the CUDA driver API (cuda.h, CUDA 12.0 and later) that Kvasir binds, as lists: symbols as libcuda.so.1
 * exports them with the types of their arguments, results and constants with their values. Two uses:
 *
 *   alone           those of every driver become declarations, so that a library can stand in for the driver in tests
 *   after cuda.h    nothing is declared; native/src/test/c/cuda_conformance.c compares each entry with the published one
 *
 * Handles are opaque pointers, CUdevice is an int, CUdeviceptr a 64-bit number, every function returns a CUresult.
 */
#ifndef KVASIR_CUDA_SUBSET_H
#define KVASIR_CUDA_SUBSET_H

#include <stddef.h>
#include <stdint.h>

/* X(name, value): results that are told apart. */
#define KVASIR_CUDA_RESULTS(X)                        \
    X(CUDA_SUCCESS, 0)                                \
    X(CUDA_ERROR_INVALID_VALUE, 1)                    \
    X(CUDA_ERROR_OUT_OF_MEMORY, 2)                    \
    X(CUDA_ERROR_NOT_INITIALIZED, 3)                  \
    X(CUDA_ERROR_DEINITIALIZED, 4)                    \
    X(CUDA_ERROR_STUB_LIBRARY, 34)                    \
    X(CUDA_ERROR_NO_DEVICE, 100)                      \
    X(CUDA_ERROR_INVALID_DEVICE, 101)                 \
    X(CUDA_ERROR_INVALID_CONTEXT, 201)                \
    X(CUDA_ERROR_PEER_ACCESS_UNSUPPORTED, 217)        \
    X(CUDA_ERROR_OPERATING_SYSTEM, 304)               \
    X(CUDA_ERROR_INVALID_HANDLE, 400)                 \
    X(CUDA_ERROR_NOT_READY, 600)                      \
    X(CUDA_ERROR_ILLEGAL_ADDRESS, 700)                \
    X(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, 704)    \
    X(CUDA_ERROR_PEER_ACCESS_NOT_ENABLED, 705)        \
    X(CUDA_ERROR_CONTEXT_IS_DESTROYED, 709)           \
    X(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED, 712) \
    X(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED, 713)     \
    X(CUDA_ERROR_LAUNCH_FAILED, 719)                  \
    X(CUDA_ERROR_NOT_PERMITTED, 800)                  \
    X(CUDA_ERROR_NOT_SUPPORTED, 801)                  \
    X(CUDA_ERROR_SYSTEM_NOT_READY, 802)               \
    X(CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, 803)         \
    X(CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, 804) \
    X(CUDA_ERROR_UNKNOWN, 999)

/* X(name, value): enumerators and macros that are passed. */
#define KVASIR_CUDA_ATTRIBUTES(X)                        \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 75)  \
    X(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 76)
#define KVASIR_CUDA_POINTER_ATTRIBUTES(X)                \
    X(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 6)               \
    X(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 9)
#define KVASIR_CUDA_FLAGS(X)                             \
    X(CU_STREAM_NON_BLOCKING, 1)                         \
    X(CU_EVENT_DEFAULT, 0)                               \
    X(CU_EVENT_DISABLE_TIMING, 2)                        \
    X(CU_MEMHOSTREGISTER_PORTABLE, 1)                    \
    X(CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, 1)

/* X(type, bytes): structs that cross the boundary. */
#define KVASIR_CUDA_STRUCTS(X) \
    X(CUipcMemHandle, 64)      \
    X(CUuuid, 16)

/* X(symbol, argument types...): in every driver since CUDA 12.0; those without arguments apart. */
#define KVASIR_CUDA_FUNCTIONS(X)                                                                            \
    X(cuInit, unsigned int)                                                                                 \
    X(cuDriverGetVersion, int *)                                                                            \
    X(cuGetErrorName, CUresult, const char **)                                                              \
    X(cuGetErrorString, CUresult, const char **)                                                            \
    X(cuGetProcAddress_v2, const char *, void **, int, cuuint64_t, CUdriverProcAddressQueryResult *)        \
    X(cuDeviceGetCount, int *)                                                                              \
    X(cuDeviceGet, CUdevice *, int)                                                                         \
    X(cuDeviceGetName, char *, int, CUdevice)                                                               \
    X(cuDeviceTotalMem_v2, size_t *, CUdevice)                                                              \
    X(cuDeviceGetAttribute, int *, CUdevice_attribute, CUdevice)                                            \
    X(cuDeviceGetPCIBusId, char *, int, CUdevice)                                                           \
    X(cuDeviceGetUuid_v2, CUuuid *, CUdevice)                                                               \
    X(cuDeviceCanAccessPeer, int *, CUdevice, CUdevice)                                                     \
    X(cuDevicePrimaryCtxRetain, CUcontext *, CUdevice)                                                      \
    X(cuDevicePrimaryCtxRelease_v2, CUdevice)                                                               \
    X(cuCtxSetCurrent, CUcontext)                                                                           \
    X(cuCtxGetCurrent, CUcontext *)                                                                         \
    X(cuCtxPushCurrent_v2, CUcontext)                                                                       \
    X(cuCtxPopCurrent_v2, CUcontext *)                                                                      \
    X(cuCtxEnablePeerAccess, CUcontext, unsigned int)                                                       \
    X(cuMemAlloc_v2, CUdeviceptr *, size_t)                                                                 \
    X(cuMemFree_v2, CUdeviceptr)                                                                            \
    X(cuMemGetInfo_v2, size_t *, size_t *)                                                                  \
    X(cuMemGetAddressRange_v2, CUdeviceptr *, size_t *, CUdeviceptr)                                        \
    X(cuMemHostAlloc, void **, size_t, unsigned int)                                                        \
    X(cuMemFreeHost, void *)                                                                                \
    X(cuMemHostRegister_v2, void *, size_t, unsigned int)                                                   \
    X(cuMemHostUnregister, void *)                                                                          \
    X(cuMemsetD8_v2, CUdeviceptr, unsigned char, size_t)                                                    \
    X(cuMemsetD8Async, CUdeviceptr, unsigned char, size_t, CUstream)                                        \
    X(cuMemcpyHtoDAsync_v2, CUdeviceptr, const void *, size_t, CUstream)                                    \
    X(cuMemcpyDtoHAsync_v2, void *, CUdeviceptr, size_t, CUstream)                                          \
    X(cuMemcpyDtoDAsync_v2, CUdeviceptr, CUdeviceptr, size_t, CUstream)                                     \
    X(cuMemcpyAsync, CUdeviceptr, CUdeviceptr, size_t, CUstream)                                            \
    X(cuMemcpyPeerAsync, CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream)                  \
    X(cuStreamCreate, CUstream *, unsigned int)                                                             \
    X(cuStreamDestroy_v2, CUstream)                                                                         \
    X(cuStreamSynchronize, CUstream)                                                                        \
    X(cuStreamQuery, CUstream)                                                                              \
    X(cuStreamWaitEvent, CUstream, CUevent, unsigned int)                                                   \
    X(cuLaunchHostFunc, CUstream, CUhostFn, void *)                                                         \
    X(cuEventCreate, CUevent *, unsigned int)                                                               \
    X(cuEventRecord, CUevent, CUstream)                                                                     \
    X(cuEventQuery, CUevent)                                                                                \
    X(cuEventSynchronize, CUevent)                                                                          \
    X(cuEventElapsedTime, float *, CUevent, CUevent)                                                        \
    X(cuEventDestroy_v2, CUevent)                                                                           \
    X(cuPointerGetAttribute, void *, CUpointer_attribute, CUdeviceptr)                                      \
    X(cuPointerSetAttribute, const void *, CUpointer_attribute, CUdeviceptr)                                \
    X(cuIpcGetMemHandle, CUipcMemHandle *, CUdeviceptr)                                                     \
    X(cuIpcOpenMemHandle_v2, CUdeviceptr *, CUipcMemHandle, unsigned int)                                   \
    X(cuIpcCloseMemHandle, CUdeviceptr)
#define KVASIR_CUDA_FUNCTIONS_WITHOUT_ARGUMENTS(X) X(cuCtxSynchronize)

/* Only in newer drivers: since 12.8, since 12.8 and declared up to 12.x, since 13.0. */
#define KVASIR_CUDA_FUNCTIONS_12_8(X) X(cuEventElapsedTime_v2, float *, CUevent, CUevent)
#define KVASIR_CUDA_FUNCTIONS_12_8_ONLY(X)                                                                  \
    X(cuMemcpyBatchAsync, CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *,   \
      size_t, size_t *, CUstream)
#define KVASIR_CUDA_FUNCTIONS_13_0(X)                                                                       \
    X(cuMemcpyBatchAsync_v2, CUdeviceptr *, CUdeviceptr *, size_t *, size_t, CUmemcpyAttributes *, size_t *, \
      size_t, CUstream)

#ifndef CUDA_VERSION

typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef uint64_t cuuint64_t;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef void (*CUhostFn)(void *);

#define KVASIR_CUDA_ENUMERATOR(name, value) name = (value),
typedef enum { KVASIR_CUDA_RESULTS(KVASIR_CUDA_ENUMERATOR) } CUresult;
typedef enum { KVASIR_CUDA_ATTRIBUTES(KVASIR_CUDA_ENUMERATOR) } CUdevice_attribute;
typedef enum { KVASIR_CUDA_POINTER_ATTRIBUTES(KVASIR_CUDA_ENUMERATOR) } CUpointer_attribute;
enum { KVASIR_CUDA_FLAGS(KVASIR_CUDA_ENUMERATOR) };
#undef KVASIR_CUDA_ENUMERATOR
typedef enum { CU_GET_PROC_ADDRESS_SUCCESS = 0 } CUdriverProcAddressQueryResult;

/* Bytes that only the driver reads; passed by value when memory is opened. */
typedef struct {
    char reserved[64];
} CUipcMemHandle;

typedef struct {
    char bytes[16];
} CUuuid;

#define KVASIR_CUDA_DECLARATION(symbol, ...) CUresult symbol(__VA_ARGS__);
#define KVASIR_CUDA_DECLARATION_WITHOUT(symbol) CUresult symbol(void);
KVASIR_CUDA_FUNCTIONS(KVASIR_CUDA_DECLARATION)
KVASIR_CUDA_FUNCTIONS_WITHOUT_ARGUMENTS(KVASIR_CUDA_DECLARATION_WITHOUT)
#undef KVASIR_CUDA_DECLARATION
#undef KVASIR_CUDA_DECLARATION_WITHOUT

#endif
#endif
