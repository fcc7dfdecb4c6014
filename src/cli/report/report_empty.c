// SPDX-License-Identifier: MIT
// report_empty: the text report for a recording without allocations, with the reason. See
// report_lines.h.
#include <string.h>

#include "base/compiler.h"
#include "cli/report/report_lines.h"
#include "cli/text/screen_text.h"

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

static bool has_own_allocator(const struct profile *profile)
{
    const struct recording *recording = &profile->recording;
    for (size_t i = 0; i < recording->process_count; i++) {
        if ((recording->processes[i].flags & REC_PROCESS_OWN_ALLOCATOR) != 0) {
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

bool report_print_empty(const struct report *report, FILE *out)
{
    const struct profile *profile = report->profile;
    const struct recording *recording = &profile->recording;
    if (recording->row_count > 0 || recording->totals.allocations > 0 ||
        profile->damage[0] != '\0') {
        return false;
    }
    // The first entry that applies is printed.
    const struct {
        bool holds;
        const char *sentence;
    } reasons[] = {
        {is_imported(profile), "The file holds no allocations."},
        {was_never_started(profile),
         "No allocation was recorded: recording was never started ('cairn ctl "
         "FILE start' starts it)."},
        {has_own_allocator(profile), "No allocation was recorded: the program has its own malloc."},
        {recording->meta.state == REC_STATE_RUNNING, "No allocation has been recorded so far."},
        {has_nobody(profile),
         "No allocation was recorded: cairn's library was not loaded. Programs that are static or "
         "setuid, or whose environment lacks LD_PRELOAD, do not load it."},
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
