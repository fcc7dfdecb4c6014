// SPDX-License-Identifier: MIT
#include "recording/write/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/os/file.h"
#include "host/os/litter.h"
#include "host/os/new_file.h"
#include "host/text/strbuf.h"
#include "recording/format/recording_file.h"

static MUST_USE enum err check_old(const char *path, struct err_info *info)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        return ERR_OK; // no file
    }
    if (!S_ISREG(status.st_mode)) {
        return err_set(info, ERR_INVALID, "cannot write the recording to '%s': it is %s", path,
                       S_ISDIR(status.st_mode) ? "a directory" : "no regular file");
    }
    CLEANUP(fd_closep) int fd = -1;
    struct chunk_source source;
    TRY(recording_file_open(path, &fd, &source, info));
    uint8_t head[FILE_HEADER_BYTES];
    size_t len = source.bytes < sizeof(head) ? (size_t)source.bytes : sizeof(head);
    TRY(chunk_source_read(&source, 0, head, len, info));
    if (len > 0 && !file_header_begins(head, len)) {
        return err_set(info, ERR_INVALID,
                       "'%s' exists and is not a recording; remove it or choose another file",
                       path);
    }
    return ERR_OK;
}

enum err output_file_probe(const char *path, struct err_info *info)
{
    CLEANUP(text_freep) char *target = NULL;
    TRY(file_find_target(path, &target, info));
    TRY(check_old(target, info));
    TRY(file_make_parents(path, info));
    litter_remove(target);
    CLEANUP(strbuf_release) struct strbuf probe = {0};
    strbuf_printf(&probe, "%s.XXXXXX", target);
    TRY(strbuf_result(&probe));
    CLEANUP(fd_closep) int fd = mkostemp(probe.data, O_CLOEXEC);
    if (fd < 0) {
        return err_set_errno(info, errno, "cannot write the recording to '%s'", path);
    }
    (void)unlink(probe.data); // created by the probe
    return ERR_OK;
}
