// SPDX-License-Identifier: MIT
#include "server/state/baseline_upload.h"

#include <string.h>

#include "base/compiler.h"
#include "host/text/number.h"
#include "host/text/strbuf.h"

enum {
    STATUS_UNREADABLE = 422,
};

bool baseline_upload_may_come(const char *length)
{
    uint64_t bytes;
    return length != NULL && number_parse(length, BASELINE_UPLOAD_MAX_BYTES, &bytes);
}

void baseline_upload_add(struct baseline_upload *upload, struct bytes data)
{
    if (upload->outcome != ERR_OK) {
        return;
    }
    if (upload->file == NULL) {
        upload->file = tmpfile();
    }
    upload->bytes += data.len;
    if (upload->bytes > BASELINE_UPLOAD_MAX_BYTES) {
        upload->outcome = ERR_LIMIT;
    } else if (upload->file == NULL || fwrite(data.data, 1, data.len, upload->file) != data.len) {
        upload->outcome = ERR_IO;
    }
}

// Replace the opened path in an error by `name`: the client does not know that path.
static void rename_in(struct err_info *info, const char *path, const char *name)
{
    char *place = strstr(info->text, path);
    if (place == NULL) {
        return;
    }
    CLEANUP(strbuf_release) struct strbuf text = {0};
    strbuf_append(&text, info->text, (size_t)(place - info->text));
    strbuf_append_text(&text, name);
    strbuf_append_text(&text, place + strlen(path));
    (void)snprintf(info->text, sizeof(info->text), "%s", strbuf_text(&text)); // may truncate
}

enum err baseline_upload_place(struct baseline_upload *upload,
                               char out_path[BASELINE_UPLOAD_PATH_BYTES],
                               struct err_info *info)
{
    if (upload->outcome == ERR_LIMIT) {
        return err_set(info, ERR_LIMIT, "the upload is larger than 1 GiB");
    }
    if (upload->outcome != ERR_OK || (upload->file != NULL && fflush(upload->file) != 0)) {
        return err_set(info, ERR_IO, "cannot write the upload to a temporary file");
    }
    if (upload->file == NULL) {
        return err_set(info, ERR_INVALID, "nothing was sent");
    }
    (void)snprintf(out_path, BASELINE_UPLOAD_PATH_BYTES, "/proc/self/fd/%d",
                   fileno(upload->file)); // fits
    return ERR_OK;
}

static MUST_USE enum err serve_baseline(struct baseline_upload *upload,
                                        struct served *served,
                                        const char *name,
                                        struct err_info *info)
{
    char path[BASELINE_UPLOAD_PATH_BYTES];
    TRY(baseline_upload_place(upload, path, info));
    enum err problem = served_set_baseline(served, path, name, info);
    if (problem != ERR_OK) {
        rename_in(info, path, name);
    }
    return problem;
}

enum err baseline_upload_serve(struct baseline_upload *upload,
                               struct served *served,
                               const char *name,
                               struct problem *problem)
{
    enum err outcome = serve_baseline(upload, served, name, &problem->info);
    bool is_ours = outcome == ERR_IO || outcome == ERR_NO_MEMORY;
    if (outcome != ERR_OK && !is_ours) {
        problem->status = STATUS_UNREADABLE;
    }
    return outcome;
}

void baseline_upload_release(struct baseline_upload *upload)
{
    if (upload->file != NULL) {
        (void)fclose(upload->file); // a temporary file: write errors do not matter
    }
    *upload = (struct baseline_upload){0};
}
