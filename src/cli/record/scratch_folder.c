// SPDX-License-Identifier: MIT
// scratch_folder: see scratch_folder.h.
#include "cli/record/scratch_folder.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum err scratch_folder_make(struct scratch_folder *scratch, struct err_info *info)
{
    const char *parent = getenv("TMPDIR");
    parent = parent != NULL && parent[0] != '\0' ? parent : "/tmp";
    int len = snprintf(scratch->path, sizeof(scratch->path), "%s/cairn-check.XXXXXX", parent);
    bool fits = len > 0 && (size_t)len < sizeof(scratch->path);
    if (!fits || mkdtemp(scratch->path) == NULL) {
        scratch->path[0] = '\0';
        return err_set_errno(info, fits ? errno : ENAMETOOLONG,
                             "cannot create a temporary directory in '%.200s'", parent);
    }
    strbuf_printf(&scratch->recording, "%s/check.cairn", scratch->path);
    return strbuf_result(&scratch->recording);
}

void scratch_folder_remove(struct scratch_folder *scratch)
{
    if (scratch->recording.len > 0) {
        (void)unlink(strbuf_text(&scratch->recording)); // it may not exist
    }
    if (scratch->path[0] != '\0') {
        (void)rmdir(scratch->path); // a rest is small and harmless
    }
    strbuf_release(&scratch->recording);
}
