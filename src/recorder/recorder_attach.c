// SPDX-License-Identifier: MIT
// recorder_attach: the recorder's part of attaching to a process. See recorder_state.h.
#include <sys/syscall.h>
#include <unistd.h>

#include "aggregate/aggregator_process.h"
#include "recorder/recorder_state.h"

enum err recorder_attach_open(struct recorder_state *s, struct err_info *info)
{
    s->is_attached = true;
    TRY(attach_open(&s->attach, s->options->attach_pid, s->options->allocator_names, info));
    strbuf_append_text(&s->preflight.executable, strbuf_text(&s->attach.executable));
    return strbuf_result(&s->preflight.executable) == ERR_OK
               ? ERR_OK
               : err_set(info, ERR_NO_MEMORY, "no memory for the recorder");
}

static enum err keep_texts(struct recorder_state *s)
{
    struct string_table *strings = &s->aggregator.strings;
    struct drain_texts *texts = &s->drain.main_texts;
    CLEANUP(strbuf_release) struct strbuf line = {0};
    command_line_quote(&line, (struct bytes){(const uint8_t *)strbuf_text(&s->attach.command_line),
                                             s->attach.command_line.len});
    TRY(strbuf_result(&line));
    TRY(string_table_intern_text(strings, strbuf_text(&line), &texts->command_line));
    TRY(string_table_intern_text(strings, strbuf_text(&s->attach.executable), &texts->executable));
    return string_table_intern_text(strings, strbuf_text(&s->attach.allocator), &texts->allocator);
}

enum err recorder_attach_begin(struct recorder_state *s, struct err_info *info)
{
    s->program.pid = s->options->attach_pid;
    s->program.pidfd = (int)syscall(SYS_pidfd_open, s->program.pid, 0);
    if (s->program.pidfd < 0) {
        return err_set(info, ERR_NOT_FOUND, "process %d has ended", (int)s->program.pid);
    }
    if (keep_texts(s) != ERR_OK) {
        return err_set(info, ERR_NO_MEMORY, "no memory for the recorder");
    }
    return attach_begin(&s->attach, info);
}

void recorder_attach_end(struct recorder_state *s)
{
    struct err_info trouble = {0};
    if (s->is_attached && attach_end(&s->attach, &trouble) != ERR_OK) {
        recorder_log(s, "%s", trouble.text);
    }
}
