/* A test program is a list of functions; a failed check ends it. Every test must destroy what it made. */
#ifndef KVASIR_CHECK_H
#define KVASIR_CHECK_H

#include "kvasir_loopback.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK(condition)                                                              \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: failed: %s\n", __FILE__, __LINE__, #condition);   \
            exit(1);                                                                  \
        }                                                                             \
    } while (0)

#define IS(expected, call) CHECK((call) == (expected))
#define OK(call) IS(NIXL_CAPI_SUCCESS, call)
#define INVALID(call) IS(NIXL_CAPI_ERROR_INVALID_PARAM, call)
#define BACKEND_ERROR(call) IS(NIXL_CAPI_ERROR_BACKEND, call)
#define NOT_FOUND(call) IS(NIXL_CAPI_ERROR_NOT_FOUND, call)
#define IN_PROGRESS(call) IS(NIXL_CAPI_IN_PROG, call)

#define RUN_ALL(tests)                                              \
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {   \
        tests[i]();                                                 \
        kvasir_loopback_heal();                                     \
        CHECK(kvasir_loopback_live_handles() == 0);                 \
    }

#endif
