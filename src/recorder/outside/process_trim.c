// SPDX-License-Identifier: MIT
#include "recorder/outside/process_trim.h"

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
    return ERR_OK;
}
