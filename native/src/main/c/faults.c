/* Faults that tests ask for, kept by agent name so that they can be set before the agent exists. */
#include "loopback_internal.h"

#include <stdlib.h>
#include <string.h>

struct fault {
    struct fault *next;
    char *agent;
    uint64_t delay_us;
    uint64_t bytes_per_us;
    bool stuck;
    uint64_t failing_releases;
    uint64_t failing_returns;
    uint64_t lost_notifications;
};

static struct fault everybody;

static struct fault *fault_find(const char *agent) {
    if (agent == NULL) {
        return &everybody;
    }
    struct fault *fault = everybody.next;
    while (fault != NULL && strcmp(fault->agent, agent) != 0) {
        fault = fault->next;
    }
    return fault;
}

/* The agent's faults, added when there are none yet; NULL without memory. */
static struct fault *fault_of(const char *agent) {
    struct fault *fault = fault_find(agent);
    if (fault == NULL) {
        fault = calloc(1, sizeof *fault);
        if (fault == NULL) {
            return NULL;
        }
        fault->agent = strdup(agent);
        if (fault->agent == NULL) {
            free(fault);
            return NULL;
        }
        fault->next = everybody.next;
        everybody.next = fault;
    }
    return fault;
}

nixl_capi_status_t kvasir_loopback_delay(const char *agent, uint64_t delay_us, uint64_t bytes_per_us) {
    world_lock();
    struct fault *fault = fault_of(agent);
    if (fault != NULL) {
        fault->delay_us = delay_us;
        fault->bytes_per_us = bytes_per_us;
    }
    world_unlock();
    return fault == NULL ? NIXL_CAPI_ERROR_BACKEND : NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t kvasir_loopback_stick(const char *agent, bool stuck) {
    world_lock();
    struct fault *fault = fault_of(agent);
    if (fault != NULL) {
        fault->stuck = stuck;
    }
    world_unlock();
    return fault == NULL ? NIXL_CAPI_ERROR_BACKEND : NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t kvasir_loopback_fail_releases(const char *agent, uint64_t count) {
    world_lock();
    struct fault *fault = fault_of(agent);
    if (fault != NULL) {
        fault->failing_releases = count;
    }
    world_unlock();
    return fault == NULL ? NIXL_CAPI_ERROR_BACKEND : NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t kvasir_loopback_fail_returns(const char *agent, uint64_t count) {
    world_lock();
    struct fault *fault = fault_of(agent);
    if (fault != NULL) {
        fault->failing_returns = count;
    }
    world_unlock();
    return fault == NULL ? NIXL_CAPI_ERROR_BACKEND : NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t kvasir_loopback_lose_notifications(const char *agent, uint64_t count) {
    world_lock();
    struct fault *fault = fault_of(agent);
    if (fault != NULL) {
        fault->lost_notifications = count;
    }
    world_unlock();
    return fault == NULL ? NIXL_CAPI_ERROR_BACKEND : NIXL_CAPI_SUCCESS;
}

void kvasir_loopback_heal(void) {
    world_lock();
    while (everybody.next != NULL) {
        struct fault *fault = everybody.next;
        everybody.next = fault->next;
        free(fault->agent);
        free(fault);
    }
    everybody = (struct fault){0};
    world_unlock();
}

/* The faults of a transfer: everybody's and those of its ends; NULL where there are none. */
struct faults {
    const struct fault *of[3];
};

static struct faults faults_between(const char *one_end, const char *other_end) {
    return (struct faults){{&everybody, fault_find(one_end), fault_find(other_end)}};
}

uint64_t faults_duration_us(const char *one_end, const char *other_end, uint64_t bytes) {
    const struct faults faults = faults_between(one_end, other_end);
    uint64_t longest = 0;
    for (size_t i = 0; i < 3; i++) {
        const struct fault *fault = faults.of[i];
        if (fault != NULL) {
            const uint64_t copying = fault->bytes_per_us == 0 ? 0 : bytes / fault->bytes_per_us;
            const uint64_t duration =
                copying > UINT64_MAX - fault->delay_us ? UINT64_MAX : fault->delay_us + copying;
            longest = duration > longest ? duration : longest;
        }
    }
    return longest;
}

bool faults_stuck(const char *one_end, const char *other_end) {
    const struct faults faults = faults_between(one_end, other_end);
    bool stuck = false;
    for (size_t i = 0; i < 3; i++) {
        stuck = stuck || (faults.of[i] != NULL && faults.of[i]->stuck);
    }
    return stuck;
}

static bool take(uint64_t *left) {
    if (*left == 0) {
        return false;
    }
    *left -= 1;
    return true;
}

bool faults_take_release(const char *agent) {
    struct fault *fault = fault_find(agent);
    return (fault != NULL && take(&fault->failing_releases)) || take(&everybody.failing_releases);
}

bool faults_take_return(const char *agent) {
    struct fault *fault = fault_find(agent);
    return (fault != NULL && take(&fault->failing_returns)) || take(&everybody.failing_returns);
}

bool faults_take_notification(const char *receiver) {
    struct fault *fault = fault_find(receiver);
    return (fault != NULL && take(&fault->lost_notifications)) || take(&everybody.lost_notifications);
}
