// SPDX-License-Identifier: MIT
// report_empty: the text report for a recording without allocations, with the reason. See
// report_lines.h.
#include <string.h>

#include "base/compiler.h"
#include "cli/report/report_lines.h"
#include "cli/text/screen_text.h"
#include "host/os/file.h"
#include "profile/tables/unseen.h"

static bool is_imported(const struct profile *profile)
{
    const char *format = profile_string(profile, profile->recording.meta.source_format);
    return format[0] != '\0' && strcmp(format, "cairn") != 0;
}

// Return whether recording was paused from the beginning, or was to begin after the end of the run.
static bool was_never_started(const struct profile *profile)
{
    const struct recording *recording = &profile->recording;
    bool was_stopped = false;
    for (size_t i = 0; i < recording->mark_count; i++) {
        const struct rec_mark *mark = &recording->marks[i];
        was_stopped = was_stopped || (mark->kind == REC_MARK_STOP && mark->time_ms == 0);
        if (mark->kind == REC_MARK_START) {
            return false;
        }
    }
    return was_stopped;
}

static bool has_flag(const struct profile *profile, enum rec_process_flags flag)
{
    const struct recording *recording = &profile->recording;
    for (size_t i = 0; i < recording->process_count; i++) {
        if ((recording->processes[i].flags & flag) != 0) {
            return true;
        }
    }
    return false;
}

// Return whether no process loaded our library. A process that loads it reports its allocator.
static bool has_nobody(const struct profile *profile)
{
    const struct recording *recording = &profile->recording;
    for (size_t i = 0; i < recording->process_count; i++) {
        if (recording->processes[i].allocator != 0) {
            return false;
        }
    }
    return true;
}

// Append the sentence on the first process with a runtime whose objects cairn does not see.
static MUST_USE enum err find_runtime(const struct profile *profile, struct strbuf *out)
{
    CLEANUP(unseen_vec_release) struct unseen_vec list = {0};
    TRY(unseen_collect(profile, &list));
    for (size_t i = 0; i < list.len; i++) {
        const struct unseen *unseen = &list.items[i];
        const char *path =
            profile_string(profile, profile->recording.processes[unseen->process].executable);
        if (unseen->kind == UNSEEN_RUNTIME) {
            strbuf_append_text(out, "No allocation was recorded: ");
            screen_append(out, path_file_name(path));
            strbuf_append_text(out, " ");
            unseen_explain(unseen, out);
            strbuf_append_text(out, ".");
            break;
        }
    }
    return strbuf_result(out);
}

// Return whether the program may have got memory in a way that cairn does not see: functions that
// it could not hook, an allocator without names, lost events, or a heap that it mapped itself.
static bool may_be_blind(const struct profile *profile)
{
    static const char *const blind[] = {"hidden_allocators", "unread_parts"};
    const struct recording *recording = &profile->recording;
    CLEANUP(unseen_vec_release) struct unseen_vec list = {0};
    for (size_t i = 0; i < recording->counter_count; i++) {
        if (recording->counters[i].kind == REC_COUNTER_LOSS && recording->counters[i].value > 0) {
            return true;
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(blind); i++) {
        if (rec_counter_value(recording, blind[i]) > 0) {
            return true;
        }
    }
    return unseen_collect(profile, &list) != ERR_OK || list.len > 0;
}

bool report_print_empty(const struct report *report, FILE *out)
{
    const struct profile *profile = report->profile;
    const struct recording *recording = &profile->recording;
    if (recording->row_count > 0 || recording->totals.allocations > 0 ||
        profile->damage[0] != '\0') {
        return false;
    }
    CLEANUP(strbuf_release) struct strbuf runtime = {0};
    const bool has_runtime = find_runtime(profile, &runtime) == ERR_OK && runtime.len > 0;
    // The first entry that applies is printed.
    const struct {
        bool holds;
        const char *sentence;
    } reasons[] = {
        {is_imported(profile), "The file holds no allocations."},
        {was_never_started(profile),
         "No allocation was recorded: recording was never started ('cairn ctl "
         "FILE start' starts it)."},
        {has_flag(profile, REC_PROCESS_OWN_ALLOCATOR),
         "No allocation was recorded: the program has its own malloc."},
        {has_runtime, strbuf_text(&runtime)},
        {recording->meta.state == REC_STATE_RUNNING, "No allocation has been recorded so far."},
        {has_nobody(profile),
         "No allocation was recorded: cairn's library was not loaded. Programs that are static or "
         "setuid, or whose environment lacks LD_PRELOAD, do not load it."},
        {may_be_blind(profile),
         "No allocation was recorded: the program called none of the functions that cairn hooked."},
        {has_flag(profile, REC_PROCESS_ATTACHED),
         "No allocation was recorded: the program called no allocation "
         "function while it was recorded."},
        {true, "No allocation was recorded: the program called no allocation function."},
    };
    size_t i = 0;
    while (!reasons[i].holds) {
        i++;
    }
    (void)fputc('\n', out);
    screen_print_wrapped(out, reasons[i].sentence, 2, report_width(report));
    return true;
}
