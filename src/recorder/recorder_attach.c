// SPDX-License-Identifier: MIT
// recorder_attach: the recorder's part of attaching to a process. See recorder_state.h.
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "aggregate/aggregator_process.h"
#include "recorder/recorder_state.h"

enum err recorder_attach_open(struct recorder_state *s, struct err_info *info)
{
    s->is_attached = true;
    TRY(attach_open(&s->attach, s->options->attach_pid, s->options->allocator_names, info));
    const char *hidden = strbuf_text(&s->attach.hidden);
    for (size_t len; *hidden != '\0'; hidden += len + (hidden[len] == '\n')) {
        len = strcspn(hidden, "\n");
        recorder_log(s, "warning: %.*s", (int)len, hidden);
    }
    strbuf_append_text(&s->preflight.executable, strbuf_text(&s->attach.executable));
    return strbuf_result(&s->preflight.executable) == ERR_OK
               ? ERR_OK
               : err_set(info, ERR_NO_MEMORY, "no memory for the recorder");
}

// Add the process before it joins, because a child may be the first to do so.
static enum err begin_process(struct recorder_state *s)
{
    struct string_table *strings = &s->aggregator.strings;
    struct rec_process record = {.pid = (uint32_t)s->program.pid,
                                 .flags = REC_PROCESS_MAIN | REC_PROCESS_ATTACHED,
                                 .exit_status = -1};
    TRY(command_line_intern(strings, strbuf_bytes(&s->attach.command_line), &record.command_line));
    TRY(string_table_intern_text(strings, strbuf_text(&s->attach.executable), &record.executable));
    TRY(string_table_intern_text(strings, strbuf_text(&s->attach.allocator), &record.allocator));
    return aggregator_process_begin(&s->aggregator, &record, &s->drain.attached);
}

enum err recorder_attach_begin(struct recorder_state *s, struct err_info *info)
{
    s->program.pid = s->options->attach_pid;
    s->program.pidfd = (int)syscall(SYS_pidfd_open, s->program.pid, 0);
    if (s->program.pidfd < 0) {
        return err_set(info, ERR_NOT_FOUND, "process %d has ended", (int)s->program.pid);
    }
    if (begin_process(s) != ERR_OK) {
        return err_set(info, ERR_NO_MEMORY, "no memory for the recorder");
    }
    return attach_begin(&s->attach, s->session.memfd, info);
}

void recorder_attach_end(struct recorder_state *s)
{
    struct err_info trouble = {0};
    if (attach_end(&s->attach, &trouble) != ERR_OK) {
        recorder_log(s, "%s", trouble.text);
    }
}
