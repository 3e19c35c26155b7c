/*
 * What the parts of the loopback library share. One lock guards the world: the agents, what they have
 * registered and loaded, requests, inboxes, faults and counters; functions below that say "locked" are
 * called with it held. Lists, parameters and optional arguments belong to one thread, as with NIXL.
 */
#ifndef KVASIR_LOOPBACK_INTERNAL_H
#define KVASIR_LOOPBACK_INTERNAL_H

#include "kvasir_loopback.h"

#define LOOPBACK_PLUGIN "LOOPBACK"

/* The first member of every handle: tells its kind, so that a wrong one is refused and not misread. */
enum tag {
    AGENT = 0x4b564147,
    BACKEND,
    STRINGS,
    MEMORIES,
    PARAMS,
    ITERATOR,
    OPTIONS,
    XFER_LIST,
    REG_LIST,
    PREPARED,
    REQUEST,
    NOTIFICATIONS
};

/* Allocates a zeroed handle with its tag and counts it; NULL without memory. */
void *handle_new(size_t size, enum tag tag);
bool handle_is(const void *handle, enum tag tag);
void handle_free(void *handle);
/* Frees a handle that owns nothing else; INVALID_PARAM for one of another kind. */
nixl_capi_status_t handle_destroy(void *handle, enum tag tag);

/* Whether the plugin moves memory of this kind. */
bool memory_moves(nixl_capi_mem_type_t memory);

/* A growable array of descriptors: zeroed is empty. */
struct range {
    nixl_capi_mem_type_t memory;
    uintptr_t address;
    size_t length;
    uint64_t device;
};

struct ranges {
    struct range *items;
    size_t count;
    size_t capacity;
};

bool ranges_add(struct ranges *ranges, struct range range);
void ranges_remove(struct ranges *ranges, size_t index);
void ranges_free(struct ranges *ranges);
/* The first range that equals the given one, or count. */
size_t ranges_find(const struct ranges *ranges, struct range range);
/* The first range of the same memory that the given one lies in whole, or NULL; two that touch do not count as one. */
const struct range *ranges_around(const struct ranges *ranges, struct range range);
bool range_equals(struct range a, struct range b);

/* Lists of descriptors, for transfers and for registration. */
struct nixl_capi_xfer_dlist_s {
    enum tag tag;
    nixl_capi_mem_type_t memory;
    struct ranges ranges;
};

struct nixl_capi_reg_dlist_s {
    enum tag tag;
    nixl_capi_mem_type_t memory;
    struct ranges ranges;
};

/* Bytes with their length; data is NULL when there are none. */
struct bytes {
    void *data;
    size_t length;
};

/* Replaces the bytes by a copy; false without memory, and then nothing has changed. */
bool bytes_set(struct bytes *bytes, const void *data, size_t length);
void bytes_free(struct bytes *bytes);

struct nixl_capi_opt_args_s {
    enum tag tag;
    bool has_notification;
    bool skip_merge;
    struct bytes notification;
    size_t backend_count;
    uint64_t *backends; /* instances of the agents they belong to */
};

/* What an agent knows of another by its metadata. */
struct peer {
    struct peer *next;
    char *name;
    uint64_t instance;
    uint64_t generation; /* of this knowledge: forgetting the peer makes older lists and requests unusable */
    uint64_t epoch;      /* of the peer's connections when its connection was loaded */
    bool has_connection;
    struct ranges regions;
};

/* A notification on its way, in the inbox of its receiver. */
struct letter {
    struct letter *next;
    char *sender;
    struct bytes message;
};

struct counters {
    uint64_t posts;
    uint64_t bytes;
    uint64_t sent;
    uint64_t dropped;
};

struct nixl_capi_agent_s {
    enum tag tag;
    bool has_backend;
    char *name;
    nixl_capi_agent_config_t config;
    uint64_t instance; /* unique over agents, libraries and processes: a name may come back, this does not */
    uint64_t epoch;    /* goes up when all connections to this agent are cut */
    struct ranges regions;
    struct peer *peers;
    struct letter *inbox;
    struct letter **inbox_end;
    struct counters counters;
    nixl_capi_agent_t next;
};

struct nixl_capi_backend_s {
    enum tag tag;
    uint64_t instance;
};

void world_lock(void);
void world_unlock(void);
/* A number that was not handed out before. Locked. */
uint64_t world_number(void);
/* The living agent of this name, or NULL. Locked. */
nixl_capi_agent_t world_find(const char *name);
/* Adds what happened to the agent's counters and to those of all agents. Locked. */
void world_count(nixl_capi_agent_t agent, struct counters change);

/* Whether these are optional arguments at all: NULL is. */
bool options_fit(const struct nixl_capi_opt_args_s *options);
/* Whether the agent has a backend and the arguments allow it: they are NULL, name no backend or name this one. */
bool options_allow(const struct nixl_capi_opt_args_s *options, const struct nixl_capi_agent_s *agent);

/* Peers. Locked. */
struct peer *peer_find(const struct nixl_capi_agent_s *agent, const char *name);
void peers_free(nixl_capi_agent_t agent);
/*
 * Resolves the name of a transfer's or notification's receiver, which may be the agent itself. SUCCESS with the
 * receiver; NOT_FOUND when no connection to that name was loaded; BACKEND when it was cut or the receiver is gone.
 */
nixl_capi_status_t peer_reach(nixl_capi_agent_t agent, const char *name, nixl_capi_agent_t *receiver);

/* Notifications. Locked. */
nixl_capi_status_t inbox_put(nixl_capi_agent_t sender, nixl_capi_agent_t receiver, const struct bytes *message);
void inbox_free(nixl_capi_agent_t agent);

/* Faults. Locked. Those of a transfer are the ones of either end and of everybody. */
uint64_t faults_duration_us(const char *one_end, const char *other_end, uint64_t bytes);
bool faults_stuck(const char *one_end, const char *other_end);
/* Whether this release or return shall fail, or this notification be lost; uses up one of those that were asked for. */
bool faults_take_release(const char *agent);
bool faults_take_return(const char *agent);
bool faults_take_notification(const char *receiver);

#endif
