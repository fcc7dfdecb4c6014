// SPDX-License-Identifier: MIT
// agent_entry: process_entry.h for the agent: the recorder says where the session is.
//
// Context: T, see process_entry.h.
#include <stddef.h>

#include "base/page_alloc.h"
#include "base/sys.h"
#include "session/layout.h"
#include "target/preload/process/process.h"
#include "target/preload/process/process_entry.h"
#include "target/preload/python/python_stack.h"
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

// Our image, from the linker.
extern const char __ehdr_start[] __attribute__((visibility("hidden"))); // NOLINT
extern const char _end[] __attribute__((visibility("hidden")));         // NOLINT

// The recorder has mapped what the agent uses.
static void note_memory(void)
{
    page_alloc_note(__ehdr_start, (size_t)(_end - __ehdr_start));
    page_alloc_note(agent_attachment(), sizeof(struct agent_attachment));
    page_alloc_note((const void *)g_agent_page.process_page, AGENT_PROCESS_PAGE_BYTES);
}

enum err process_entry_find_session(struct session_mapping *mapping)
{
    struct session_header *header = (struct session_header *)g_agent_page.session;
    if (header == NULL) {
        return ERR_UNSUPPORTED;
    }
    note_memory();
    unwind_flush(); // the code may have changed since an earlier attachment
    TRY(session_take(header, mapping));
    if ((header->flags & SESSION_PYTHON) != 0) {
        python_stack_begin(header, g_agent_page.python.runtime, g_agent_page.python.version,
                           (uint32_t)g_agent_page.python.older);
    }
    return ERR_OK;
}

_Static_assert(sizeof(struct process_page) <= AGENT_PROCESS_PAGE_BYTES, "one page is wiped");

uint64_t *process_entry_mapped_words(void)
{
    return &g_agent_page.words;
}

const _Atomic uint32_t *process_entry_tiny_below(void)
{
    return &g_agent_page.tiny_below_bytes;
}

uint32_t process_entry_flags(bool is_forked)
{
    const uint32_t inherited =
        PROCESS_NOTES_EXIT | PROCESS_SETTINGS | UINT32_MAX << PROCESS_SETTINGS_SHIFT;
    return g_agent_page.process_flags & (is_forked ? inherited : UINT32_MAX);
}
