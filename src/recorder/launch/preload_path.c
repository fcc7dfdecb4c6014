// SPDX-License-Identifier: MIT
#include "recorder/launch/preload_path.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "host/os/file.h"

enum err preload_path_find(const char *library, struct preload_path *out, struct err_info *info)
{
    if (strpbrk(library, " :$") == NULL) {
        strbuf_append_text(&out->name, library);
        return strbuf_result(&out->name);
    }
    const char *name = path_file_name(library);
    CLEANUP(strbuf_release) struct strbuf folder = {0};
    strbuf_append(&folder, library, (size_t)(name - library));
    TRY(strbuf_result(&folder));
    out->fd = open(folder.len > 0 ? strbuf_text(&folder) : ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (out->fd < 0) {
        return err_set_errno(info, errno, "cannot read cairn's own library '%s'", library);
    }
    strbuf_printf(&out->name, "/proc/%d/fd/%d/%s", (int)getpid(), out->fd, name);
    return strbuf_result(&out->name);
}

void preload_path_release(struct preload_path *path)
{
    strbuf_release(&path->name);
    fd_closep(&path->fd);
}
