/* Notifications: an inbox per agent, drained into maps from sender to messages. */
#include "loopback_internal.h"

#include <stdlib.h>
#include <string.h>

struct messages {
    char *sender;
    struct bytes *items;
    size_t count;
};

struct nixl_capi_notif_map_s {
    enum tag tag;
    struct messages *senders;
    size_t count;
};

nixl_capi_status_t inbox_put(nixl_capi_agent_t sender, nixl_capi_agent_t receiver, const struct bytes *message) {
    if (faults_take_notification(receiver->name)) {
        world_count(sender, (struct counters){.dropped = 1});
        return NIXL_CAPI_SUCCESS;
    }
    struct letter *letter = calloc(1, sizeof *letter);
    if (letter == NULL) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    letter->sender = strdup(sender->name);
    if (letter->sender == NULL || !bytes_set(&letter->message, message->data, message->length)) {
        free(letter->sender);
        free(letter);
        return NIXL_CAPI_ERROR_BACKEND;
    }
    *receiver->inbox_end = letter;
    receiver->inbox_end = &letter->next;
    world_count(sender, (struct counters){.sent = 1});
    return NIXL_CAPI_SUCCESS;
}

/* Takes the first letter out of the inbox and frees all but its message, which it returns. */
static struct bytes inbox_take(nixl_capi_agent_t agent) {
    struct letter *letter = agent->inbox;
    agent->inbox = letter->next;
    if (agent->inbox == NULL) {
        agent->inbox_end = &agent->inbox;
    }
    const struct bytes message = letter->message;
    free(letter->sender);
    free(letter);
    return message;
}

void inbox_free(nixl_capi_agent_t agent) {
    while (agent->inbox != NULL) {
        struct bytes message = inbox_take(agent);
        bytes_free(&message);
    }
}

static struct messages *map_find(const struct nixl_capi_notif_map_s *map, const char *sender) {
    for (size_t i = 0; i < map->count; i++) {
        if (strcmp(map->senders[i].sender, sender) == 0) {
            return &map->senders[i];
        }
    }
    return NULL;
}

/* The sender's messages, added empty when there are none; NULL without memory. */
static struct messages *map_of(nixl_capi_notif_map_t map, const char *sender) {
    struct messages *found = map_find(map, sender);
    if (found != NULL) {
        return found;
    }
    struct messages *senders = realloc(map->senders, (map->count + 1) * sizeof *senders);
    if (senders == NULL) {
        return NULL;
    }
    map->senders = senders;
    struct messages *added = &senders[map->count];
    *added = (struct messages){.sender = strdup(sender)};
    if (added->sender == NULL) {
        return NULL;
    }
    map->count++;
    return added;
}

/* Moves the first letter of the inbox into the map; without memory it stays where it is. */
static bool map_take(nixl_capi_notif_map_t map, nixl_capi_agent_t agent) {
    struct messages *messages = map_of(map, agent->inbox->sender);
    if (messages == NULL) {
        return false;
    }
    struct bytes *items = realloc(messages->items, (messages->count + 1) * sizeof *items);
    if (items == NULL) {
        return false;
    }
    messages->items = items;
    items[messages->count++] = inbox_take(agent);
    return true;
}

nixl_capi_status_t nixl_capi_create_notif_map(nixl_capi_notif_map_t *map) {
    if (map == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    nixl_capi_notif_map_t made = handle_new(sizeof *made, NOTIFICATIONS);
    if (made == NULL) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    *map = made;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_notif_map_clear(nixl_capi_notif_map_t map) {
    if (!handle_is(map, NOTIFICATIONS)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    for (size_t i = 0; i < map->count; i++) {
        struct messages *messages = &map->senders[i];
        for (size_t j = 0; j < messages->count; j++) {
            bytes_free(&messages->items[j]);
        }
        free(messages->items);
        free(messages->sender);
    }
    free(map->senders);
    map->senders = NULL;
    map->count = 0;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_destroy_notif_map(nixl_capi_notif_map_t map) {
    const nixl_capi_status_t status = nixl_capi_notif_map_clear(map);
    if (status == NIXL_CAPI_SUCCESS) {
        handle_free(map);
    }
    return status;
}

nixl_capi_status_t nixl_capi_notif_map_size(nixl_capi_notif_map_t map, size_t *size) {
    if (!handle_is(map, NOTIFICATIONS) || size == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *size = map->count;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_notif_map_get_agent_at(nixl_capi_notif_map_t map, size_t index, const char **agent) {
    if (!handle_is(map, NOTIFICATIONS) || agent == NULL || index >= map->count) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *agent = map->senders[index].sender;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_notif_map_get_notifs_size(nixl_capi_notif_map_t map, const char *agent, size_t *size) {
    if (!handle_is(map, NOTIFICATIONS) || agent == NULL || size == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    const struct messages *messages = map_find(map, agent);
    if (messages == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *size = messages->count;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_notif_map_get_notif(
    nixl_capi_notif_map_t map, const char *agent, size_t index, const void **data, size_t *length) {
    if (!handle_is(map, NOTIFICATIONS) || agent == NULL || data == NULL || length == NULL) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    const struct messages *messages = map_find(map, agent);
    if (messages == NULL || index >= messages->count) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    *data = messages->items[index].data;
    *length = messages->items[index].length;
    return NIXL_CAPI_SUCCESS;
}

nixl_capi_status_t nixl_capi_get_notifs(
    nixl_capi_agent_t agent, nixl_capi_notif_map_t map, nixl_capi_opt_args_t args) {
    if (!handle_is(agent, AGENT) || !handle_is(map, NOTIFICATIONS) || !options_fit(args)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    world_lock();
    bool well = options_allow(args, agent);
    while (well && agent->inbox != NULL) {
        well = map_take(map, agent);
    }
    world_unlock();
    return well ? NIXL_CAPI_SUCCESS : NIXL_CAPI_ERROR_BACKEND;
}

static nixl_capi_status_t notify(
    nixl_capi_agent_t agent, const char *name, const struct bytes *message, nixl_capi_opt_args_t args) {
    if (!options_allow(args, agent)) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    nixl_capi_agent_t receiver = NULL;
    const nixl_capi_status_t reached = peer_reach(agent, name, &receiver);
    return reached == NIXL_CAPI_SUCCESS ? inbox_put(agent, receiver, message) : reached;
}

nixl_capi_status_t nixl_capi_gen_notif(
    nixl_capi_agent_t agent, const char *remote_agent, const void *data, size_t length, nixl_capi_opt_args_t args) {
    if (!handle_is(agent, AGENT) || remote_agent == NULL || (data == NULL && length > 0)
        || !options_fit(args)) {
        return NIXL_CAPI_ERROR_INVALID_PARAM;
    }
    struct bytes message = {0};
    if (!bytes_set(&message, data, length)) {
        return NIXL_CAPI_ERROR_BACKEND;
    }
    world_lock();
    const nixl_capi_status_t status = notify(agent, remote_agent, &message, args);
    world_unlock();
    bytes_free(&message);
    return status;
}
