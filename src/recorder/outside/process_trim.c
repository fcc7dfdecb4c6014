// SPDX-License-Identifier: MIT
#include "recorder/outside/process_trim.h"

#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/memory/page_size.h"
#include "host/os/proc_file.h"
#include "host/text/proc_text.h"

enum {
    LIMIT_MS = 120000, // of a release
    STATM_BYTES_MAX = 4096,
};

static uint64_t resident_bytes(int pid)
{
    CLEANUP(strbuf_release) struct strbuf statm = {0};
    return proc_file_read(pid, "statm", STATM_BYTES_MAX, &statm)
               ? proc_text_pages(strbuf_text(&statm)).resident * page_bytes()
               : 0;
}

// Add what other allocators than glibc have said. One that did not leaves the sum unknown.
static void add_promises(struct process_trim *o)
{
    uint64_t bytes = 0;
    bool is_any = false;
    bool is_all = true;
    for (size_t i = 0; i < o->trim.count; i++) {
        const struct trim_call *call = o->trim.calls + i;
        is_any = is_any || call->is_promised;
        is_all = is_all && (call->is_promised || strcmp(call->allocator, "glibc") == 0);
        bytes += call->promised_bytes;
    }
    const bool is_known = is_all && (o->promised.is_known || (is_any && o->promised.is_unused));
    o->promised = (struct release_estimate){.bytes = is_known ? o->promised.bytes + bytes : 0,
                                            .is_known = is_known};
}

enum err
process_trim_run(int pid, uint64_t patience_ms, struct process_trim *out, struct err_info *info)
{
    *out = (struct process_trim){0};
    if (release_estimate_read(pid, &out->promised) != ERR_OK) {
        out->promised.is_known = false; // what can be done is done without it
    }
    out->before_bytes = resident_bytes(pid);
    TRY(trim_run(pid, (uint32_t)min_u64(patience_ms, UINT32_MAX), LIMIT_MS, &out->trim, info));
    out->after_bytes = resident_bytes(pid);
    add_promises(out);
    return ERR_OK;
}
