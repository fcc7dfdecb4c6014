// SPDX-License-Identifier: MIT
#include "recorder/output/event_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "host/os/file.h"
#include "recording/write/output_file.h"

enum {
    FLUSH_MS = 1000
};

// Remove the log of a killed recording, as the recording of that name will be replaced. Anything
// else of that name stays.
enum err event_log_probe(const char *name, struct err_info *info)
{
    struct stat status;
    if (lstat(name, &status) != 0) {
        return ERR_OK;
    }
    return S_ISREG(status.st_mode)
               ? output_file_check_old(name, info)
               : err_set(info, ERR_INVALID,
                         "'%s' is not a regular file and cannot become the event log", name);
}

enum err event_log_open(struct event_log *log, const char *path, mode_t mode, struct err_info *info)
{
    strbuf_printf(&log->path, "%s.events", path);
    if (strbuf_result(&log->path) != ERR_OK ||
        rec_event_vec_reserve(&log->group, GROUP_MAX_ENTRIES) != ERR_OK) {
        return ERR_NO_MEMORY;
    }
    const char *name = strbuf_text(&log->path);
    TRY(event_log_probe(name, info));
    (void)unlink(name); // there may be none
    log->fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, FILE_MODE_PRIVATE);
    if (log->fd < 0) {
        return err_set_errno(info, errno, "cannot write '%s'", name);
    }
    (void)fchmod(log->fd, mode != 0 ? mode : (mode_t)FILE_MODE_PRIVATE); // it becomes the recording
    file_give_to_caller(log->fd);
    log->has_failed =
        recording_writer_init(&log->writer, log->fd, name, NULL, &log->trouble) != ERR_OK;
    log->has_begun = !log->has_failed;
    return ERR_OK;
}

void event_log_close(struct event_log *log)
{
    if (log->fd >= 0) {
        (void)close(log->fd);
    }
    log->fd = -1;
    recording_writer_release(&log->writer);
    rec_event_vec_release(&log->group);
    strbuf_release(&log->path);
}

static void flush(struct event_log *log)
{
    if (log->group.len == 0) {
        return;
    }
    if (!log->has_failed &&
        recording_writer_group(&log->writer, &rec_event_table, log->group.items, log->written_count,
                               log->group.len, &log->trouble) == ERR_OK) {
        log->written_count += log->group.len;
    } else {
        log->has_failed = true; // later events would not fit the written ones
        log->omitted_count += log->group.len;
    }
    rec_event_vec_clear(&log->group);
}

bool event_log_tick(struct event_log *log, uint64_t now_ms)
{
    if (log->fd < 0 || now_ms < log->flush_ms) {
        return false;
    }
    log->flush_ms = now_ms + FLUSH_MS;
    flush(log);
    const bool is_news =
        log->has_failed && !log->is_reported; // a full group may have failed before
    log->is_reported = log->has_failed;
    return is_news;
}

void event_log_give_up(struct event_log *log)
{
    (void)unlink(strbuf_text(&log->path)); // else it stays, and is as good as before
    log->omitted_count += log->written_count + log->group.len;
    log->written_count = 0;
    event_log_close(log);
}

enum err event_log_finish(struct event_log *log,
                          const struct recording *recording,
                          const struct recording_write_options *options,
                          const char *path,
                          struct err_info *info)
{
    flush(log);
    if (!log->has_begun) {
        return err_set(info, ERR_IO, "%s", err_text(&log->trouble));
    }
    log->writer.options = *options;
    TRY(recording_writer_snapshot(&log->writer, recording, info));
    TRY(recording_writer_finish(&log->writer, info));
    if (rename(strbuf_text(&log->path), path) != 0) {
        return err_set_errno(info, errno, "cannot give '%s' the name '%s'", strbuf_text(&log->path),
                             path);
    }
    return ERR_OK;
}

static enum err observe(void *context, const struct observed_event *what)
{
    struct event_log *log = context;
    if (log->group.len == GROUP_MAX_ENTRIES) {
        flush(log);
    }
    return rec_event_vec_push(&log->group, what->event);
}

struct observer event_log_observer(struct event_log *log)
{
    return (struct observer){.context = log, .observe = observe};
}
