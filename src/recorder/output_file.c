// SPDX-License-Identifier: MIT
// output_file: see the header.
#include "recorder/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/file.h"
#include "host/strbuf.h"

enum err output_file_probe(const char *path, struct err_info *info)
{
    struct stat status;
    if (stat(path, &status) == 0 && !S_ISREG(status.st_mode)) {
        return err_set(info, ERR_INVALID, "cannot write the recording to '%s': it is %s", path,
                       S_ISDIR(status.st_mode) ? "a directory" : "no regular file");
    }
    TRY(file_make_parents(path, info));
    CLEANUP(strbuf_release) struct strbuf probe = {0};
    strbuf_printf(&probe, "%s.XXXXXX", path);
    TRY(strbuf_result(&probe));
    CLEANUP(fd_closep) int fd = mkostemp(probe.data, O_CLOEXEC);
    if (fd < 0) {
        return err_set_errno(info, errno, "cannot write the recording to '%s'", path);
    }
    (void)unlink(probe.data); // it was just created
    return ERR_OK;
}
