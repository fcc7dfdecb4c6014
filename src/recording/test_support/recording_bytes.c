// SPDX-License-Identifier: MIT
// recording_bytes: see recording_bytes.h.
#include "recording/test_support/recording_bytes.h"

#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "host/os/file.h"
#include "recording/format/recording_file.h"

static MUST_USE enum err make_file(struct bytes bytes, int *out_fd, struct err_info *info)
{
    CLEANUP(fd_closep) int fd = memfd_create("recording", MFD_CLOEXEC);
    if (fd < 0) {
        return err_set_errno(info, errno, "cannot make a file in memory");
    }
    TRY(file_write_all(fd, bytes, "the file in memory", info));
    *out_fd = fd;
    fd = -1;
    return ERR_OK;
}

enum err recording_open(const char *path,
                        struct recording *out,
                        struct recording_open_result *result,
                        struct err_info *info)
{
    CLEANUP(fd_closep) int fd = -1;
    struct chunk_source source;
    TRY(recording_file_open(path, &fd, &source, info));
    return recording_open_fd(fd, path, NULL, out, result, info);
}

enum err recording_open_bytes(struct bytes file,
                              const char *name,
                              const struct recording_limits *limits,
                              struct recording *out,
                              struct recording_open_result *result,
                              struct err_info *info)
{
    CLEANUP(fd_closep) int fd = -1;
    TRY(make_file(file, &fd, info));
    return recording_open_fd(fd, name, limits, out, result, info);
}

enum err recording_append_chunk(struct recording_writer *w,
                                uint32_t type,
                                struct bytes payload,
                                struct err_info *info)
{
    CLEANUP(fd_closep) int fd = -1;
    CLEANUP(strbuf_release) struct strbuf chunk = {0};
    const struct chunk_place place = {
        .head = {.type = type,
                 .stored_bytes = payload.len,
                 .raw_bytes = payload.len,
                 .payload_hash = chunk_hash(payload.data, payload.len)}};
    uint8_t head[CHUNK_HEAD_BYTES];
    chunk_head_put(&place.head, head);
    strbuf_append(&chunk, head, sizeof(head));
    strbuf_append(&chunk, payload.data, payload.len);
    TRY(make_file(strbuf_bytes(&chunk), &fd, info));
    const struct chunk_source source = {
        .fd = fd, .bytes = chunk.len, .path = "the chunk in memory"};
    return recording_writer_copy(w, &source, &place, info);
}
