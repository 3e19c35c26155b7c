/*
 * Compares native/include/cuda_subset.h with the published cuda.h and prints what the compiler made of it, for the test of
 * the Java bindings. With -DKVASIR_CUDA_PUBLISHED the program compiles only if every value, size and function type is the
 * published one; without, it prints the subset as it is. Needs gcc or clang; links with nothing of CUDA.
 *
 *   version NUMBER           CUDA_VERSION of cuda.h, 0 without
 *   result NAME VALUE        constant NAME VALUE        struct NAME BYTES
 *   function SYMBOL KINDS    result, then arguments: b, i, l integer of 8, 32, 64 bits; p pointer; s<n> struct of n bytes
 */
#ifdef KVASIR_CUDA_PUBLISHED
#include <cuda.h>
#endif

#include "cuda_subset.h"

#include <stdio.h>

enum { POINTER_CLASS = 5, STRUCT_CLASS = 12 }; /* of __builtin_classify_type */

static void print_kind(int type_class, size_t size) {
    if (type_class == POINTER_CLASS) {
        putchar('p');
    } else if (type_class == STRUCT_CLASS) {
        printf("s%zu", size);
    } else {
        putchar(size == 1 ? 'b' : size == 4 ? 'i' : size == 8 ? 'l' : '?');
    }
}

#define KIND(type) print_kind(__builtin_classify_type((type){0}), sizeof(type));

#define KINDS_1(a) KIND(a)
#define KINDS_2(a, ...) KIND(a) KINDS_1(__VA_ARGS__)
#define KINDS_3(a, ...) KIND(a) KINDS_2(__VA_ARGS__)
#define KINDS_4(a, ...) KIND(a) KINDS_3(__VA_ARGS__)
#define KINDS_5(a, ...) KIND(a) KINDS_4(__VA_ARGS__)
#define KINDS_6(a, ...) KIND(a) KINDS_5(__VA_ARGS__)
#define KINDS_7(a, ...) KIND(a) KINDS_6(__VA_ARGS__)
#define KINDS_8(a, ...) KIND(a) KINDS_7(__VA_ARGS__)
#define KINDS_9(a, ...) KIND(a) KINDS_8(__VA_ARGS__)
#define PICK(_1, _2, _3, _4, _5, _6, _7, _8, _9, chosen, ...) chosen
#define KINDS(...)                                                                                            \
    PICK(__VA_ARGS__, KINDS_9, KINDS_8, KINDS_7, KINDS_6, KINDS_5, KINDS_4, KINDS_3, KINDS_2, KINDS_1, 0)     \
    (__VA_ARGS__)

#define PRINT_RESULT(name, value) printf("result " #name " %d\n", (int)name);
#define PRINT_CONSTANT(name, value) printf("constant " #name " %d\n", (int)name);
#define PRINT_STRUCT(type, bytes) printf("struct " #type " %zu\n", sizeof(type));
#define PRINT_FUNCTION(symbol, ...) \
    fputs("function " #symbol " ", stdout); \
    KIND(CUresult)                  \
    KINDS(__VA_ARGS__)              \
    putchar('\n');
#define PRINT_FUNCTION_WITHOUT(symbol)      \
    fputs("function " #symbol " ", stdout); \
    KIND(CUresult)                          \
    putchar('\n');

/* A type that differs selects the default, which is no match; nothing here is called or linked. */
#define SAME_VALUE(name, value) _Static_assert((name) == (value), #name " is not " #value);
#define SAME_SIZE(type, bytes)                                            \
    _Static_assert(sizeof(type) == (bytes), #type " is not " #bytes " bytes"); \
    _Static_assert(_Alignof(type) == 1, #type " has an alignment of its own");
#define SAME_TYPE(symbol, ...) \
    _Static_assert(_Generic(&symbol, CUresult(*)(__VA_ARGS__): 1, default: 0), #symbol " has another type");
#define SAME_TYPE_WITHOUT(symbol) SAME_TYPE(symbol, void)

KVASIR_CUDA_RESULTS(SAME_VALUE)
KVASIR_CUDA_ATTRIBUTES(SAME_VALUE)
KVASIR_CUDA_POINTER_ATTRIBUTES(SAME_VALUE)
KVASIR_CUDA_FLAGS(SAME_VALUE)
KVASIR_CUDA_STRUCTS(SAME_SIZE)
KVASIR_CUDA_FUNCTIONS(SAME_TYPE)
KVASIR_CUDA_FUNCTIONS_WITHOUT_ARGUMENTS(SAME_TYPE_WITHOUT)
#ifdef CUDA_VERSION
_Static_assert(sizeof(CUdevice) == 4 && sizeof(CUdeviceptr) == 8 && sizeof(CUcontext) == 8, "not a 64-bit machine");
#if CUDA_VERSION >= 12080
KVASIR_CUDA_FUNCTIONS_12_8(SAME_TYPE)
#endif
#if CUDA_VERSION >= 12080 && CUDA_VERSION < 13000
KVASIR_CUDA_FUNCTIONS_12_8_ONLY(SAME_TYPE)
#endif
#if CUDA_VERSION >= 13000
KVASIR_CUDA_FUNCTIONS_13_0(SAME_TYPE)
#endif
#endif

int main(void) {
#ifdef CUDA_VERSION
    printf("version %d\n", CUDA_VERSION);
#else
    puts("version 0");
#endif
    KVASIR_CUDA_RESULTS(PRINT_RESULT)
    KVASIR_CUDA_ATTRIBUTES(PRINT_CONSTANT)
    KVASIR_CUDA_POINTER_ATTRIBUTES(PRINT_CONSTANT)
    KVASIR_CUDA_FLAGS(PRINT_CONSTANT)
    KVASIR_CUDA_STRUCTS(PRINT_STRUCT)
    KVASIR_CUDA_FUNCTIONS(PRINT_FUNCTION)
    KVASIR_CUDA_FUNCTIONS_WITHOUT_ARGUMENTS(PRINT_FUNCTION_WITHOUT)
#ifdef CUDA_VERSION
#if CUDA_VERSION >= 12080
    KVASIR_CUDA_FUNCTIONS_12_8(PRINT_FUNCTION)
#endif
#if CUDA_VERSION >= 12080 && CUDA_VERSION < 13000
    KVASIR_CUDA_FUNCTIONS_12_8_ONLY(PRINT_FUNCTION)
#endif
#if CUDA_VERSION >= 13000
    KVASIR_CUDA_FUNCTIONS_13_0(PRINT_FUNCTION)
#endif
#endif
    return 0;
}
