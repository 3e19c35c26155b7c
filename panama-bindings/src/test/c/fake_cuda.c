/*
 * A stand-in for libcuda.so.1 by which the bindings are tested without a GPU: device memory is malloc, streams do their work
 * at once, two devices that reach each other. Handles are checked as the driver checks them, so a call with a freed address,
 * a foreign handle or no current context fails here too. fake_cuda_fail scripts the failure of one call.
 *
 * With -DFAKE_CUDA_LACKS_IPC one function is missing, as in a library of another time.
 */
#include "cuda_subset.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))
enum { DEVICES = 2, LIVE_MAX = 256, SCRIPT_MAX = 4, IPC_SEAL = 0x5a };

typedef enum { CONTEXT, MEMORY, OPENED, HOST, STREAM, EVENT, KINDS } kind_t;

typedef struct {
    kind_t kind;
    uint64_t handle;
    size_t length;
    int device;
    bool timing, recorded, sync;
} live_t;

struct CUctx_st {
    int device, references;
    bool peer[DEVICES];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static live_t live[LIVE_MAX];
static size_t live_count;
static uint64_t next_handle = 0x1000;
static struct CUctx_st contexts[DEVICES] = {{.device = 0}, {.device = 1}};
static bool initialised;
static int device_count = DEVICES;
static struct {
    char symbol[64];
    int after, code;
} script[SCRIPT_MAX];
static _Thread_local CUcontext stack[8];
static _Thread_local int depth; /* stack[depth] is current */

/* Lets the call of symbol after the next skip ones answer code, once. */
EXPORT void fake_cuda_fail(const char *symbol, int skip, int code) {
    for (int i = 0; i < SCRIPT_MAX; i++) {
        if (script[i].symbol[0] == '\0') {
            snprintf(script[i].symbol, sizeof script[i].symbol, "%s", symbol);
            script[i].after = skip;
            script[i].code = code;
            return;
        }
    }
    abort();
}

EXPORT void fake_cuda_devices(int count) { device_count = count; }

/* Forgets what is live, as the end of the process would. */
EXPORT void fake_cuda_reset(void) {
    live_count = 0;
    for (int i = 0; i < DEVICES; i++) {
        contexts[i] = (struct CUctx_st){.device = i};
    }
}

/* Live handles of one kind: 0 references to contexts, 1 memory, 2 opened, 3 host, 4 streams, 5 events. */
EXPORT int fake_cuda_live(int kind) {
    int count = 0;
    for (size_t i = 0; i < live_count; i++) {
        count += live[i].kind == (kind_t)kind;
    }
    return kind == CONTEXT ? contexts[0].references + contexts[1].references : count;
}

EXPORT int fake_cuda_synced(uint64_t address) {
    for (size_t i = 0; i < live_count; i++) {
        if (live[i].kind == MEMORY && live[i].handle == address) {
            return live[i].sync;
        }
    }
    return -1;
}

static int scripted(const char *symbol) {
    for (int i = 0; i < SCRIPT_MAX; i++) {
        if (strcmp(script[i].symbol, symbol) == 0 && script[i].after-- == 0) {
            script[i].symbol[0] = '\0';
            return script[i].code;
        }
    }
    return 0;
}

static live_t *find(kind_t kind, uint64_t handle) {
    for (size_t i = 0; i < live_count; i++) {
        if (live[i].kind == kind && live[i].handle == handle) {
            return &live[i];
        }
    }
    return NULL;
}

static live_t *add(kind_t kind, uint64_t handle, size_t length) {
    if (live_count == LIVE_MAX) {
        abort();
    }
    live[live_count] =
        (live_t){.kind = kind, .handle = handle, .length = length, .device = stack[depth]->device};
    return &live[live_count++];
}

static CUresult drop(kind_t kind, uint64_t handle, CUresult missing) {
    live_t *entry = find(kind, handle);
    if (entry == NULL) {
        return missing;
    }
    *entry = live[--live_count];
    return CUDA_SUCCESS;
}

/* The run of memory that holds the whole part. */
static live_t *holder(uint64_t address, size_t length) {
    for (size_t i = 0; i < live_count; i++) {
        if ((live[i].kind == MEMORY || live[i].kind == OPENED) && address >= live[i].handle
            && address - live[i].handle <= live[i].length && length <= live[i].length - (address - live[i].handle)) {
            return &live[i];
        }
    }
    return NULL;
}

/* One body of a driver function: scripted failures first, then the state that the driver asks for. */
#define BEGIN                                        \
    pthread_mutex_lock(&lock);                       \
    CUresult result = (CUresult)scripted(__func__);  \
    if (result == CUDA_SUCCESS && !initialised) {    \
        result = CUDA_ERROR_NOT_INITIALIZED;         \
    }
#define BEGIN_IN_CONTEXT                                                        \
    BEGIN                                                                       \
    if (result == CUDA_SUCCESS                                                  \
        && (stack[depth] == NULL || stack[depth]->references == 0)) {           \
        result = CUDA_ERROR_INVALID_CONTEXT;                                    \
    }
#define UNLESS(condition, error)                      \
    if (result == CUDA_SUCCESS && !(condition)) {     \
        result = (error);                             \
    }
#define DO if (result == CUDA_SUCCESS)
#define END                      \
    pthread_mutex_unlock(&lock); \
    return result;

EXPORT CUresult cuInit(unsigned int flags) {
    pthread_mutex_lock(&lock);
    CUresult result = flags == 0 ? (CUresult)scripted(__func__) : CUDA_ERROR_INVALID_VALUE;
    DO initialised = true;
    END
}

EXPORT CUresult cuDriverGetVersion(int *version) {
    BEGIN
    DO *version = 13020;
    END
}

static const char *name_of(CUresult error) {
    switch ((int)error) {
#define CASE(name, value) \
    case value:           \
        return #name;
        KVASIR_CUDA_RESULTS(CASE)
#undef CASE
    case 214:
        return "CUDA_ERROR_ECC_UNCORRECTABLE";
    default:
        return NULL;
    }
}

EXPORT CUresult cuGetErrorName(CUresult error, const char **name) {
    *name = name_of(error);
    return *name == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuGetErrorString(CUresult error, const char **text) {
    *text = name_of(error) == NULL ? NULL : "words of the driver";
    return *text == NULL ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

EXPORT CUresult cuGetProcAddress_v2(
    const char *symbol, void **function, int version, cuuint64_t flags, CUdriverProcAddressQueryResult *status) {
    (void)symbol, (void)function, (void)version, (void)flags, (void)status;
    return CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT CUresult cuDeviceGetCount(int *count) {
    BEGIN
    DO *count = device_count;
    END
}

static bool is_device(CUdevice device) { return device >= 7 && device < 7 + DEVICES; }

/* A device's handle is not its ordinal here, so that a mix-up shows. */
EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    BEGIN
    UNLESS(ordinal >= 0 && ordinal < device_count, CUDA_ERROR_INVALID_DEVICE)
    DO *device = 7 + ordinal;
    END
}

EXPORT CUresult cuDeviceGetName(char *name, int capacity, CUdevice device) {
    BEGIN
    UNLESS(is_device(device), CUDA_ERROR_INVALID_DEVICE)
    DO snprintf(name, (size_t)capacity, "Fake GPU %d", device - 7);
    END
}

EXPORT CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    BEGIN
    UNLESS(is_device(device), CUDA_ERROR_INVALID_DEVICE)
    DO *bytes = (size_t)6 << 30;
    END
}

EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute, CUdevice device) {
    BEGIN
    UNLESS(is_device(device), CUDA_ERROR_INVALID_DEVICE)
    DO *value = attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
    END
}

EXPORT CUresult cuDeviceGetPCIBusId(char *id, int capacity, CUdevice device) {
    BEGIN
    UNLESS(is_device(device), CUDA_ERROR_INVALID_DEVICE)
    DO snprintf(id, (size_t)capacity, "0000:%02x:00.0", 0x40 + device - 7);
    END
}

EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *uuid, CUdevice device) {
    BEGIN
    UNLESS(is_device(device), CUDA_ERROR_INVALID_DEVICE)
    for (int i = 0; result == CUDA_SUCCESS && i < 16; i++) {
        uuid->bytes[i] = (char)(i * 16 + device - 7);
    }
    END
}

EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer) {
    BEGIN
    UNLESS(is_device(device) && is_device(peer), CUDA_ERROR_INVALID_DEVICE)
    DO *can = device != peer;
    END
}

EXPORT CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    BEGIN
    UNLESS(is_device(device), CUDA_ERROR_INVALID_DEVICE)
    DO {
        *context = &contexts[device - 7];
        (*context)->references++;
    }
    END
}

EXPORT CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    BEGIN
    UNLESS(is_device(device) && contexts[device - 7].references > 0, CUDA_ERROR_INVALID_CONTEXT)
    DO contexts[device - 7].references--;
    END
}

EXPORT CUresult cuCtxSetCurrent(CUcontext context) {
    BEGIN
    DO stack[depth] = context;
    END
}

EXPORT CUresult cuCtxGetCurrent(CUcontext *context) {
    BEGIN
    DO *context = stack[depth];
    END
}

EXPORT CUresult cuCtxPushCurrent_v2(CUcontext context) {
    BEGIN
    UNLESS(context != NULL && context->references > 0, CUDA_ERROR_INVALID_CONTEXT)
    UNLESS(depth < 7, CUDA_ERROR_INVALID_VALUE)
    DO stack[++depth] = context;
    END
}

EXPORT CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    BEGIN_IN_CONTEXT
    DO {
        *context = stack[depth];
        stack[depth] = NULL;
        depth -= depth > 0;
    }
    END
}

EXPORT CUresult cuCtxSynchronize(void) {
    BEGIN_IN_CONTEXT
    END
}

EXPORT CUresult cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
    BEGIN_IN_CONTEXT
    UNLESS(flags == 0 && peer != stack[depth], CUDA_ERROR_INVALID_VALUE)
    UNLESS(!stack[depth]->peer[peer->device], CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
    DO stack[depth]->peer[peer->device] = true;
    END
}

EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t length) {
    BEGIN_IN_CONTEXT
    UNLESS(length > 0, CUDA_ERROR_INVALID_VALUE)
    UNLESS(length <= (size_t)1 << 28, CUDA_ERROR_OUT_OF_MEMORY)
    DO {
        *address = (CUdeviceptr)(uintptr_t)malloc(length);
        memset((void *)(uintptr_t)*address, 0xee, length);
        add(MEMORY, *address, length);
    }
    END
}

EXPORT CUresult cuMemFree_v2(CUdeviceptr address) {
    BEGIN_IN_CONTEXT
    DO result = drop(MEMORY, address, CUDA_ERROR_INVALID_VALUE);
    DO free((void *)(uintptr_t)address);
    END
}

EXPORT CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
    BEGIN_IN_CONTEXT
    DO {
        *available = (size_t)5 << 30;
        *total = (size_t)6 << 30;
    }
    END
}

EXPORT CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *length, CUdeviceptr address) {
    BEGIN_IN_CONTEXT
    const live_t *entry = holder(address, 0);
    UNLESS(entry != NULL, CUDA_ERROR_INVALID_VALUE)
    DO {
        *base = entry->handle;
        *length = entry->length;
    }
    END
}

EXPORT CUresult cuMemHostAlloc(void **memory, size_t length, unsigned int flags) {
    (void)memory, (void)length, (void)flags;
    return CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT CUresult cuMemFreeHost(void *memory) {
    (void)memory;
    return CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT CUresult cuMemHostRegister_v2(void *memory, size_t length, unsigned int flags) {
    BEGIN_IN_CONTEXT
    UNLESS(length > 0 && flags == CU_MEMHOSTREGISTER_PORTABLE, CUDA_ERROR_INVALID_VALUE)
    UNLESS(find(HOST, (uintptr_t)memory) == NULL, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED)
    DO add(HOST, (uintptr_t)memory, length);
    END
}

EXPORT CUresult cuMemHostUnregister(void *memory) {
    BEGIN_IN_CONTEXT
    DO result = drop(HOST, (uintptr_t)memory, CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED);
    END
}

EXPORT CUresult cuMemsetD8_v2(CUdeviceptr address, unsigned char value, size_t length) {
    BEGIN_IN_CONTEXT
    UNLESS(holder(address, length) != NULL, CUDA_ERROR_INVALID_VALUE)
    DO memset((void *)(uintptr_t)address, value, length);
    END
}

static bool is_stream(CUstream stream) { return find(STREAM, (uintptr_t)stream) != NULL; }

EXPORT CUresult cuMemsetD8Async(CUdeviceptr address, unsigned char value, size_t length, CUstream stream) {
    BEGIN_IN_CONTEXT
    UNLESS(is_stream(stream), CUDA_ERROR_INVALID_HANDLE)
    UNLESS(holder(address, length) != NULL, CUDA_ERROR_INVALID_VALUE)
    DO memset((void *)(uintptr_t)address, value, length);
    END
}

EXPORT CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t length, CUstream stream) {
    BEGIN_IN_CONTEXT
    UNLESS(is_stream(stream), CUDA_ERROR_INVALID_HANDLE)
    UNLESS(holder(to, length) != NULL, CUDA_ERROR_INVALID_VALUE)
    DO memcpy((void *)(uintptr_t)to, from, length);
    END
}

EXPORT CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t length, CUstream stream) {
    BEGIN_IN_CONTEXT
    UNLESS(is_stream(stream), CUDA_ERROR_INVALID_HANDLE)
    UNLESS(holder(from, length) != NULL, CUDA_ERROR_INVALID_VALUE)
    DO memcpy(to, (const void *)(uintptr_t)from, length);
    END
}

/* Within one device; the driver itself is less strict. */
EXPORT CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t length, CUstream stream) {
    BEGIN_IN_CONTEXT
    UNLESS(is_stream(stream), CUDA_ERROR_INVALID_HANDLE)
    const live_t *target = holder(to, length), *source = holder(from, length);
    UNLESS(target != NULL && source != NULL && target->device == source->device, CUDA_ERROR_INVALID_VALUE)
    DO memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, length);
    END
}

EXPORT CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, size_t length, CUstream stream) {
    (void)to, (void)from, (void)length, (void)stream;
    return CUDA_ERROR_NOT_SUPPORTED;
}

/* Each side must lie on the device of the context named for it. */
EXPORT CUresult cuMemcpyPeerAsync(
    CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context, size_t length, CUstream stream) {
    BEGIN_IN_CONTEXT
    UNLESS(is_stream(stream), CUDA_ERROR_INVALID_HANDLE)
    const live_t *target = holder(to, length), *source = holder(from, length);
    UNLESS(target != NULL && source != NULL, CUDA_ERROR_INVALID_VALUE)
    UNLESS(target->device == to_context->device && source->device == from_context->device, CUDA_ERROR_INVALID_CONTEXT)
    DO memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, length);
    END
}

EXPORT CUresult cuStreamCreate(CUstream *stream, unsigned int flags) {
    BEGIN_IN_CONTEXT
    UNLESS(flags == CU_STREAM_NON_BLOCKING, CUDA_ERROR_INVALID_VALUE)
    DO {
        *stream = (CUstream)(uintptr_t)(next_handle += 16);
        add(STREAM, (uintptr_t)*stream, 0);
    }
    END
}

EXPORT CUresult cuStreamDestroy_v2(CUstream stream) {
    BEGIN_IN_CONTEXT
    DO result = drop(STREAM, (uintptr_t)stream, CUDA_ERROR_INVALID_HANDLE);
    END
}

EXPORT CUresult cuStreamSynchronize(CUstream stream) {
    BEGIN_IN_CONTEXT
    UNLESS(is_stream(stream), CUDA_ERROR_INVALID_HANDLE)
    END
}

EXPORT CUresult cuStreamQuery(CUstream stream) {
    BEGIN_IN_CONTEXT
    UNLESS(is_stream(stream), CUDA_ERROR_INVALID_HANDLE)
    END
}

EXPORT CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags) {
    BEGIN_IN_CONTEXT
    UNLESS(is_stream(stream) && find(EVENT, (uintptr_t)event) != NULL, CUDA_ERROR_INVALID_HANDLE)
    UNLESS(flags == 0, CUDA_ERROR_INVALID_VALUE)
    END
}

EXPORT CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void *data) {
    (void)stream, (void)function, (void)data;
    return CUDA_ERROR_NOT_SUPPORTED;
}

EXPORT CUresult cuEventCreate(CUevent *event, unsigned int flags) {
    BEGIN_IN_CONTEXT
    DO {
        *event = (CUevent)(uintptr_t)(next_handle += 16);
        add(EVENT, (uintptr_t)*event, 0)->timing = flags != CU_EVENT_DISABLE_TIMING;
    }
    END
}

EXPORT CUresult cuEventRecord(CUevent event, CUstream stream) {
    BEGIN_IN_CONTEXT
    live_t *entry = find(EVENT, (uintptr_t)event);
    const live_t *queue = find(STREAM, (uintptr_t)stream);
    UNLESS(entry != NULL && queue != NULL && entry->device == queue->device, CUDA_ERROR_INVALID_HANDLE)
    DO entry->recorded = true;
    END
}

EXPORT CUresult cuEventQuery(CUevent event) {
    BEGIN_IN_CONTEXT
    UNLESS(find(EVENT, (uintptr_t)event) != NULL, CUDA_ERROR_INVALID_HANDLE)
    END
}

EXPORT CUresult cuEventSynchronize(CUevent event) {
    BEGIN_IN_CONTEXT
    UNLESS(find(EVENT, (uintptr_t)event) != NULL, CUDA_ERROR_INVALID_HANDLE)
    END
}

EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end) {
    BEGIN_IN_CONTEXT
    const live_t *first = find(EVENT, (uintptr_t)start), *last = find(EVENT, (uintptr_t)end);
    UNLESS(first != NULL && last != NULL, CUDA_ERROR_INVALID_HANDLE)
    UNLESS(first->timing && first->recorded && last->timing && last->recorded, CUDA_ERROR_INVALID_HANDLE)
    DO *milliseconds = (float)((intptr_t)end - (intptr_t)start) / 4; /* the sign tells the order of the arguments */
    END
}

EXPORT CUresult cuEventDestroy_v2(CUevent event) {
    BEGIN_IN_CONTEXT
    DO result = drop(EVENT, (uintptr_t)event, CUDA_ERROR_INVALID_HANDLE);
    END
}

EXPORT CUresult cuPointerGetAttribute(void *value, CUpointer_attribute attribute, CUdeviceptr address) {
    BEGIN
    const live_t *entry = holder(address, 0);
    UNLESS(entry != NULL && attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CUDA_ERROR_INVALID_VALUE)
    DO *(int *)value = entry->device;
    END
}

EXPORT CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute, CUdeviceptr address) {
    BEGIN
    live_t *entry = find(MEMORY, address);
    UNLESS(entry != NULL && attribute == CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, CUDA_ERROR_INVALID_VALUE)
    DO entry->sync = *(const unsigned int *)value == 1;
    END
}

/* A handle is the address, then its length, then a seal to the last byte. */
EXPORT CUresult cuIpcGetMemHandle(CUipcMemHandle *handle, CUdeviceptr address) {
    BEGIN_IN_CONTEXT
    const live_t *entry = find(MEMORY, address);
    UNLESS(entry != NULL, CUDA_ERROR_INVALID_VALUE)
    DO {
        memset(handle->reserved, IPC_SEAL, sizeof handle->reserved);
        memcpy(handle->reserved, &entry->handle, 8);
        memcpy(handle->reserved + 8, &entry->length, 8);
    }
    END
}

#ifndef FAKE_CUDA_LACKS_IPC
EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *address, CUipcMemHandle handle, unsigned int flags) {
    BEGIN_IN_CONTEXT
    UNLESS(flags == CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS, CUDA_ERROR_INVALID_VALUE)
    for (size_t i = 16; i < sizeof handle.reserved; i++) {
        UNLESS(handle.reserved[i] == IPC_SEAL, CUDA_ERROR_INVALID_HANDLE)
    }
    uint64_t exported;
    size_t length;
    memcpy(&exported, handle.reserved, 8);
    memcpy(&length, handle.reserved + 8, 8);
    UNLESS(find(MEMORY, exported) != NULL, CUDA_ERROR_INVALID_HANDLE)
    DO {
        *address = exported;
        add(OPENED, exported, length);
    }
    END
}
#endif

EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr address) {
    BEGIN_IN_CONTEXT
    DO result = drop(OPENED, address, CUDA_ERROR_INVALID_VALUE);
    END
}
