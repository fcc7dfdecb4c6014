// SPDX-License-Identifier: MIT
#include "formats/import/input_file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "formats/import/import_formats.h"
#include "host/os/file.h"
#include "profile/names/asked_wrappers.h"
#include "recording/format/recording_file.h"

// The open file while its content is examined.
struct input {
    int fd;                          // owned
    struct chunk_source source;      // of fd
    struct unpacked in;              // of fd
    const struct importer *importer; // NULL: none recognizes it
    bool is_recording;               // it begins as one
};

static void input_close(struct input *input)
{
    unpacked_release(&input->in);
    fd_closep(&input->fd);
}

// Open standard input as a seekable file: itself if it is one, else a nameless copy, which vanishes
// when its descriptor is closed.
static MUST_USE enum err
open_standard_input(int *out_fd, struct chunk_source *source, struct err_info *info)
{
    static const char name[] = "standard input";
    enum {
        STEP_BYTES = 1 << 14
    };
    struct stat status;
    if (fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode)) {
        *out_fd = dup(STDIN_FILENO);
        return *out_fd >= 0 ? recording_file_source(*out_fd, name, source, info)
                            : err_set_errno(info, errno, "cannot read %s", name);
    }
    CLEANUP(stream_closep) FILE *copy = tmpfile();
    if (copy == NULL) {
        return err_set_errno(info, errno, "cannot create a temporary file for %s", name);
    }
    char buffer[STEP_BYTES];
    ssize_t got;
    while ((got = read(STDIN_FILENO, buffer, sizeof(buffer))) > 0 || (got < 0 && errno == EINTR)) {
        struct bytes part = {.data = (const uint8_t *)buffer, .len = got > 0 ? (size_t)got : 0};
        TRY(file_write_all(fileno(copy), part, "a copy of standard input", info));
    }
    if (got < 0) {
        return err_set_errno(info, errno, "cannot read %s", name);
    }
    *out_fd = dup(fileno(copy));
    return *out_fd >= 0 ? recording_file_source(*out_fd, name, source, info)
                        : err_set_errno(info, errno, "cannot read %s", name);
}

static MUST_USE enum err input_open(struct input *input, const char *path, struct err_info *info)
{
    uint8_t start[FILE_HEADER_BYTES];
    struct bytes head;
    struct chunk_source *source = &input->source;
    TRY(strcmp(path, "-") == 0 ? open_standard_input(&input->fd, source, info)
                               : recording_file_open(path, &input->fd, source, info));
    size_t len = source->bytes < sizeof(start) ? (size_t)source->bytes : sizeof(start);
    TRY(chunk_source_read(source, 0, start, len, info));
    input->is_recording = file_header_begins(start, len);
    if (input->is_recording) {
        return ERR_OK;
    }
    TRY(unpacked_open_fd(&input->in, input->fd, source->bytes, path, info));
    TRY(unpacked_peek(&input->in, IMPORT_HEAD_BYTES, &head, info));
    if (head.len == 0 && input->in.is_cut) {
        return err_set(info, ERR_TRUNCATED,
                       "'%s' is a compressed file, truncated before its first data", path);
    }
    input->importer = importer_find(head);
    return ERR_OK;
}

enum err input_find_importer(const char *path, const struct importer **out, struct err_info *info)
{
    CLEANUP(input_close) struct input input = {.fd = -1};
    TRY(input_open(&input, path, info));
    *out = input.importer;
    return ERR_OK;
}

bool input_is_profile(const char *path)
{
    CLEANUP(input_close) struct input input = {.fd = -1};
    return input_open(&input, path, NULL) == ERR_OK &&
           (input.importer != NULL || input.is_recording);
}

static MUST_USE enum err read_recording(const char *path,
                                        const struct recording_limits *limits,
                                        struct recording *out,
                                        struct recording_open_result *result,
                                        const struct importer **out_importer,
                                        struct err_info *info)
{
    CLEANUP(input_close) struct input input = {.fd = -1};
    TRY(input_open(&input, path, info));
    if (out_importer != NULL) {
        *out_importer = input.importer;
    }
    if (input.importer == NULL) {
        return recording_open_fd(input.fd, path, limits, out, result, info);
    }
    char damage[IMPORT_DAMAGE_BYTES];
    input.in.progress = limits->progress;
    TRY(importer_read(input.importer, &input.in, out, damage, info));
    *result = (struct recording_open_result){.condition = damage[0] != '\0' ? RECORDING_TRUNCATED
                                                                            : RECORDING_COMPLETE,
                                             .file_bytes = input.source.bytes};
    (void)snprintf(result->missing, sizeof(result->missing), "%s", damage); // fits
    return ERR_OK;
}

enum err input_open_recording(const char *path,
                              struct progress *progress,
                              struct recording *out,
                              struct recording_open_result *result,
                              const struct importer **out_importer,
                              struct err_info *info)
{
    struct recording_limits limits = recording_default_limits;
    limits.progress = progress;
    return read_recording(path, &limits, out, result, out_importer, info);
}

static MUST_USE enum err read_profile(const char *path,
                                      const struct name_sources *sources,
                                      const struct recording_limits *limits,
                                      struct profile **out,
                                      struct err_info *info)
{
    CLEANUP(recording_release) struct recording recording = {0};
    struct recording_open_result result = {0};
    TRY(read_recording(path, limits, &recording, &result, NULL, info));
    CLEANUP(profile_closep) struct profile *profile = NULL;
    TRY(profile_take_recording(&recording, &result, sources, limits->progress, &profile, info));
    TRY(asked_wrappers_apply(profile, sources, info));
    *out = TAKE(profile);
    return ERR_OK;
}

enum err input_open_profile(const char *path,
                            const struct name_sources *sources,
                            struct progress *progress,
                            struct profile **out,
                            struct err_info *info)
{
    struct recording_limits limits = recording_default_limits;
    limits.progress = progress;
    return read_profile(path, sources, &limits, out, info);
}

enum err input_open_lean_profile(const char *path,
                                 const struct name_sources *sources,
                                 uint64_t rows_max,
                                 struct profile **out,
                                 struct err_info *info)
{
    struct recording_limits limits = recording_default_limits;
    limits.lean_rows = rows_max;
    return read_profile(path, sources, &limits, out, info);
}
