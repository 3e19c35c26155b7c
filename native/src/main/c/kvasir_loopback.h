/* What the loopback library offers beside NIXL's own names: its mark, and what tests need to see. */
#ifndef KVASIR_LOOPBACK_H
#define KVASIR_LOOPBACK_H

#include "nixl_capi_subset.h"

#define KVASIR_LOOPBACK_ABI 1
#define KVASIR_LOOPBACK_LAYOUT_WORDS 9

/* The mark: NIXL has no such function, so whoever finds it knows that no real transfer can happen. */
KVASIR_EXPORT int kvasir_loopback_abi(void);

/* Handles of every kind that were created and not yet destroyed, over all threads. */
KVASIR_EXPORT int64_t kvasir_loopback_live_handles(void);

/* Size of the agent configuration, then the offsets of its eight fields in order, as this compiler sees them. */
KVASIR_EXPORT void kvasir_loopback_agent_config_layout(uint64_t words[KVASIR_LOOPBACK_LAYOUT_WORDS]);

#endif
