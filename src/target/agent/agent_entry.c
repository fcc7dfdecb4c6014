// SPDX-License-Identifier: MIT
// agent_entry: process_entry.h for the agent: the recorder says where the session is.
//
// Context: T, see process_entry.h.
#include <stddef.h>

#include "base/sys.h"
#include "session/layout.h"
#include "target/preload/process/process.h"
#include "target/preload/process/process_entry.h"
#include "target/unwind/unwind.h"
#include "thread_way.h"

bool process_entry_is_open(void)
{
    return atomic_load_explicit(&g_agent_page.enabled, memory_order_acquire) != 0;
}

bool process_entry_page(struct process_page **page)
{
    *page = (struct process_page *)g_agent_page.process_page;
    return *page != NULL;
}

bool process_entry_is_in(const struct session_mapping *mapping)
{
    return (uint64_t)mapping->header == g_agent_page.session;
}

// A child may be the first to call a hook.
bool process_entry_is_forked(bool was_in)
{
    (void)was_in;
    return (uint32_t)sys_getpid() != g_agent_page.pid;
}

enum err process_entry_find_session(struct session_mapping *mapping)
{
    struct session_header *header = (struct session_header *)g_agent_page.session;
    if (header == NULL || header->magic != SESSION_MAGIC || header->version != SESSION_VERSION) {
        return ERR_UNSUPPORTED;
    }
    unwind_flush(); // the code may have changed since an earlier attachment
    mapping->lane_count = SESSION_MAX_LANES;
    mapping->header = header;
    return ERR_OK;
}

uint32_t process_entry_flags(bool is_forked)
{
    return is_forked ? 0 : g_agent_page.process_flags;
}
