// SPDX-License-Identifier: MIT
#include "recording/format/recording_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "host/os/file.h"

enum {
    SNIFF_BYTES = 16,
};

static const char compressed[] =
    "is a compressed file, not a recording; if it contains one, unpack it first";
static const char changed[] =
    "was a recording, but has been changed as if it were text (by a transfer or an editor)";

// Beginnings of other files. A wrong guess affects nothing but the message.
static const struct {
    const char *bytes;
    const char *kind; // the end of a sentence about the file
} foreign_starts[] = {
    {"\x1f\x8b", compressed},         // gzip
    {"\x28\xb5\x2f\xfd", compressed}, // zstd
    {"\177ELF", "is a program or a library, not a recording"},
    {"\013cairn", changed},         // the magic number without its top bit,
    {"\213cairn", changed},         // with its line end changed,
    {"\302\213cairn", changed},     // as UTF-8,
    {"\357\277\275cairn", changed}, // as UTF-8 by a converter that does not know the byte
};

static enum err refuse_foreign(const struct chunk_source *source, struct err_info *info)
{
    char head[SNIFF_BYTES];
    const char *kind = "is not a recording";
    const size_t len = source->bytes < sizeof(head) ? (size_t)source->bytes : sizeof(head);
    TRY(chunk_source_read(source, 0, head, len, info));
    for (size_t i = 0; i < ARRAY_LEN(foreign_starts); i++) {
        const size_t start_len = strlen(foreign_starts[i].bytes);
        if (len >= start_len && memcmp(head, foreign_starts[i].bytes, start_len) == 0) {
            kind = foreign_starts[i].kind;
        }
    }
    return err_set(info, ERR_INVALID, "'%s' %s", source->path, kind);
}

enum err recording_file_check(const struct chunk_source *source,
                              struct file_header *out,
                              struct err_info *info)
{
    uint8_t bytes[FILE_HEADER_BYTES];
    struct file_header header = {0};
    if (source->bytes == 0) {
        return err_set(info, ERR_TRUNCATED, "'%s' is empty", source->path);
    }
    size_t len = source->bytes < sizeof(bytes) ? (size_t)source->bytes : sizeof(bytes);
    TRY(chunk_source_read(source, 0, bytes, len, info));
    if (!file_header_begins(bytes, len)) {
        return refuse_foreign(source, info);
    }
    if (len < sizeof(bytes)) {
        return err_set(info, ERR_TRUNCATED, "'%s' ends within its header", source->path);
    }
    (void)file_header_get(bytes, &header); // succeeds: checked above
    bool is_newer = header.major > RECORDING_VERSION_MAJOR || (header.flags & FLAGS_REQUIRED) != 0;
    if (is_newer && !header.is_damaged) { // the version of a damaged header is meaningless
        return err_set(info, ERR_UNSUPPORTED,
                       "'%s' was made by a newer version: its format is %u.%u, this version reads "
                       "up to %d",
                       source->path, header.major, header.minor, RECORDING_VERSION_MAJOR);
    }
    *out = header;
    return ERR_OK;
}

enum err recording_file_source(int fd,
                               const char *name,
                               struct chunk_source *out_source,
                               struct err_info *info)
{
    struct stat status;
    if (fstat(fd, &status) != 0) {
        return err_set_errno(info, errno, "cannot read '%s'", name);
    }
    if (S_ISDIR(status.st_mode)) {
        return err_set(info, ERR_INVALID, "'%s' is a directory", name);
    }
    if (!S_ISREG(status.st_mode)) {
        return err_set(info, ERR_INVALID, "'%s' is not a regular file", name);
    }
    *out_source = (struct chunk_source){.fd = fd, .bytes = (uint64_t)status.st_size, .path = name};
    return ERR_OK;
}

enum err recording_file_open(const char *path,
                             int *out_fd,
                             struct chunk_source *out_source,
                             struct err_info *info)
{
    // O_NONBLOCK: a named pipe is refused without waiting for a writer.
    CLEANUP(fd_closep) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0) {
        return err_set_errno(info, errno, "cannot open '%s'", path);
    }
    TRY(recording_file_source(fd, path, out_source, info));
    *out_fd = fd;
    fd = -1;
    return ERR_OK;
}
