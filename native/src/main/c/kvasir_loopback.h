/*
 * What the loopback library offers beside NIXL's own names: its mark, faults to be asked for, counters, and
 * its layouts as the C compiler sees them. All functions may be called from any thread at any time.
 */
#ifndef KVASIR_LOOPBACK_H
#define KVASIR_LOOPBACK_H

#include "nixl_capi_subset.h"

#define KVASIR_LOOPBACK_ABI 3

/* The mark: NIXL has no such function, so where it is found no real transfer can happen. */
KVASIR_EXPORT int kvasir_loopback_abi(void);

/* Handles of every kind that were created and not yet destroyed, over all threads. */
KVASIR_EXPORT int64_t kvasir_loopback_live_handles(void);

/*
 * Faults. Each is set by the name of an agent, which need not exist yet, or with NULL for every agent, and
 * holds until it is set anew, used up or healed. Faults of a transfer hold for those that the agent posts
 * and for those that peers post to it. Results: SUCCESS, or BACKEND when there is no memory to note it.
 */

/*
 * A request posted from now on is done no sooner than delay_us + its bytes / bytes_per_us microseconds after
 * its post, with a bandwidth of 0 for any; the longest of several that hold counts. Its bytes are copied by
 * the first poll after that and not before. 0, 0 ends the fault: then the post copies all and returns SUCCESS.
 */
KVASIR_EXPORT nixl_capi_status_t kvasir_loopback_delay(const char *agent, uint64_t delay_us, uint64_t bytes_per_us);

/* While stuck, posted requests stay IN_PROG, those posted earlier too; afterwards they go on. */
KVASIR_EXPORT nixl_capi_status_t kvasir_loopback_stick(const char *agent, bool stuck);

/*
 * Cuts every connection that other agents have to this one, as when its process dies: posts, polls of running
 * requests and notifications to it are BACKEND, until the other loads its metadata (the full one, or that of
 * an empty list) again. Making requests and lists still works, as with NIXL. Destroying an agent does the
 * same; a new agent of that name is another one, whose metadata is refused until the old is invalidated.
 * NOT_FOUND when there is no such agent, INVALID_PARAM for NULL.
 */
KVASIR_EXPORT nixl_capi_status_t kvasir_loopback_disconnect(const char *agent);

/* The agent's next count releases of requests are BACKEND and change nothing: a running request goes on. */
KVASIR_EXPORT nixl_capi_status_t kvasir_loopback_fail_releases(const char *agent, uint64_t count);

/*
 * The agent's next count deregistrations and releases of lists are BACKEND, as is the end of a released request
 * where everybody's fail: memory stays registered, a list and a request are given up all the same.
 */
KVASIR_EXPORT nixl_capi_status_t kvasir_loopback_fail_returns(const char *agent, uint64_t count);

/* The next count notifications to this agent vanish, while their sender gets SUCCESS. */
KVASIR_EXPORT nixl_capi_status_t kvasir_loopback_lose_notifications(const char *agent, uint64_t count);

/* Ends all faults but cut connections. */
KVASIR_EXPORT void kvasir_loopback_heal(void);

/* Places of the counters. What was sent, dropped, posted and copied is counted at the agent that posts or sends. */
enum {
    KVASIR_LOOPBACK_POSTS = 0, /* posts that were tried, the failed ones too */
    KVASIR_LOOPBACK_BYTES = 1, /* copied */
    KVASIR_LOOPBACK_NOTIFICATIONS_SENT = 2,
    KVASIR_LOOPBACK_NOTIFICATIONS_DROPPED = 3,
    KVASIR_LOOPBACK_REGISTERED_BYTES = 4, /* now; memory registered twice counts twice */
    KVASIR_LOOPBACK_LIVE_HANDLES = 5,     /* now; of all agents, whichever is asked for */
    KVASIR_LOOPBACK_COUNTERS = 6
};

/*
 * The counters of one living agent, or with NULL of all agents since the library was loaded, those gone too.
 * NOT_FOUND when there is no such agent.
 */
KVASIR_EXPORT nixl_capi_status_t kvasir_loopback_counters(
    const char *agent, uint64_t words[KVASIR_LOOPBACK_COUNTERS]);

/* Layouts: the size of a struct, then the offsets of its fields in order. */
#define KVASIR_LOOPBACK_LAYOUT_WORDS 9
#define KVASIR_LOOPBACK_TELEMETRY_WORDS 6

KVASIR_EXPORT void kvasir_loopback_agent_config_layout(uint64_t words[KVASIR_LOOPBACK_LAYOUT_WORDS]);
KVASIR_EXPORT void kvasir_loopback_telemetry_layout(uint64_t words[KVASIR_LOOPBACK_TELEMETRY_WORDS]);

/*
 * The values of all enums: name and value of the constant at this index. False, and nothing written, past the
 * last one. Names are NIXL's own and live as long as the library.
 */
KVASIR_EXPORT bool kvasir_loopback_constant(size_t index, const char **name, int64_t *value);

#endif
