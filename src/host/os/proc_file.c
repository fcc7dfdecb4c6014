// SPDX-License-Identifier: MIT
// proc_file: see proc_file.h.
#include "host/os/proc_file.h"

#include <stdio.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/proc_text.h"

#define STAT_BYTES_MAX 4096u

bool proc_file_read(pid_t pid, const char *name, size_t max_bytes, struct strbuf *out)
{
    char path[64];
    const int length = snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
    return length < (int)sizeof(path) && file_read(path, max_bytes, out, NULL) == ERR_OK &&
           strbuf_result(out) == ERR_OK;
}

uint64_t proc_file_start(pid_t pid)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    return proc_file_read(pid, "stat", STAT_BYTES_MAX, &text) ? proc_text_start(strbuf_text(&text))
                                                              : 0;
}

uint64_t proc_file_own_start(void)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    return file_read("/proc/self/stat", STAT_BYTES_MAX, &text, NULL) == ERR_OK
               ? proc_text_start(strbuf_text(&text))
               : 0;
}
