// SPDX-License-Identifier: MIT
#include "recording/write/recording_rewrite.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "recording/format/chunk_index.h"
#include "recording/format/recording_file.h"
#include "recording/write/recording_writer.h"

static MUST_USE enum err
copy_chunks(const struct chunk_source *source, struct recording_writer *w, struct err_info *info)
{
    CLEANUP(chunk_index_release) struct chunk_index index = {0};
    CLEANUP(chunk_payload_release) struct chunk_payload payload = {0};
    TRY(chunk_index_build(source, false, &index, info));
    if (!index.has_footer) {
        return err_set(info, ERR_TRUNCATED, "'%s' has no end", source->path);
    }
    for (size_t i = 0; i < index.chunks.len; i++) {
        const struct chunk_place *place = &index.chunks.items[i];
        if (place->head.generation == 0) {
            TRY(chunk_payload_check(source, place, &payload, info));
            TRY(recording_writer_copy(w, source, place, info));
        }
    }
    return ERR_OK;
}

// Give `to` the mode of `from`, and its owner if permitted.
static void keep_mode_and_owner(int from, int to)
{
    struct stat status;
    if (fstat(from, &status) == 0) {
        (void)!fchown(to, status.st_uid, status.st_gid);
        (void)fchmod(to, status.st_mode & 0777);
    }
}

enum err recording_rewrite(const char *path,
                           const struct recording *recording,
                           uint32_t generation,
                           struct err_info *info)
{
    CLEANUP(fd_closep) int fd = -1;
    struct chunk_source source;
    struct file_header header;
    TRY(recording_file_open(path, &fd, &source, info));
    TRY(recording_file_check(&source, &header, info));
    CLEANUP(replacement_abandon) struct replacement file = {0};
    CLEANUP(recording_writer_release) struct recording_writer w = {0};
    const struct recording_write_options options = {.generation = generation};
    TRY(replacement_begin(&file, path, FILE_MODE_PRIVATE, info));
    keep_mode_and_owner(fd, fileno(file.stream));
    TRY(recording_writer_init(&w, fileno(file.stream), path, &options, info));
    TRY(copy_chunks(&source, &w, info));
    TRY(recording_writer_snapshot(&w, recording, info));
    TRY(recording_writer_finish(&w, info));
    return replacement_commit(&file, true, info);
}
