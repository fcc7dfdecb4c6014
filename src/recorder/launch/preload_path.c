// SPDX-License-Identifier: MIT
// preload_path: see the header.
#include "recorder/launch/preload_path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "host/os/file.h"

enum err preload_path_find(const char *library, struct preload_path *out, struct err_info *info)
{
    if (strpbrk(library, " :") == NULL) {
        strbuf_append_text(&out->name, library);
    } else {
        out->fd = open(library, O_RDONLY | O_CLOEXEC);
        if (out->fd < 0) {
            return err_set_errno(info, errno, "cannot read cairn's own library '%s'", library);
        }
        strbuf_printf(&out->name, "/proc/%d/fd/%d", (int)getpid(), out->fd);
    }
    return strbuf_result(&out->name);
}

void preload_path_release(struct preload_path *path)
{
    strbuf_release(&path->name);
    fd_closep(&path->fd);
}
