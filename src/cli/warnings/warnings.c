// SPDX-License-Identifier: MIT
// warnings: see the header. unseen_warnings.c has the warnings about what was not seen.
#include "cli/warnings/warnings.h"

#include "base/compiler.h"
#include "cli/text/screen_text.h"
#include "formats/import/input_file.h"
#include "host/os/file.h"
#include "host/os/progress.h"
#include "host/text/format.h"
#include "host/text/strbuf.h"
#include "profile/accuracy/merged_stacks.h"
#include "profile/accuracy/sampling.h"
#include "profile/time/marks.h"

static void write_losses(const struct profile *profile, const char *prefix, FILE *out)
{
    const struct recording *recording = &profile->recording;
    for (size_t i = 0; i < recording->counter_count; i++) {
        const struct rec_counter *counter = &recording->counters[i];
        if (counter->kind != REC_COUNTER_LOSS || counter->value == 0) {
            continue;
        }
        CLEANUP(strbuf_release) struct strbuf text = {0};
        screen_append(&text, profile_string(profile, counter->text));
        // Output errors are found when the stream is closed.
        (void)fprintf(out, "%sevents were lost: %s (%s)\n", prefix, strbuf_text(&text),
                      format_count(counter->value).text);
    }
}

static void write_stops(const struct profile *profile, const char *prefix, FILE *out)
{
    const uint64_t stopped_ms = marks_stopped_ms(&profile->recording);
    if (stopped_ms > 0) {
        (void)fprintf(
            out, "%srecording was stopped for %s of %s: allocations of that time are missing\n",
            prefix, screen_format_ms(stopped_ms).text,
            screen_format_ms(profile->recording.meta.runtime_ms).text);
    }
}

static void write_attached(const struct profile *profile, const char *prefix, FILE *out)
{
    const struct recording *recording = &profile->recording;
    size_t count = 0;
    uint32_t pid = 0;
    for (uint32_t i = 0; i < recording->process_count; i++) {
        if ((recording->processes[i].flags & REC_PROCESS_ATTACHED) != 0) {
            count++;
            pid = recording->processes[i].pid;
        }
    }
    if (count == 1) {
        (void)fprintf(out,
                      "%sprocess %u ran before it was recorded: blocks that it allocated earlier "
                      "are missing\n",
                      prefix, (unsigned)pid);
    } else if (count > 1) {
        (void)fprintf(out,
                      "%s%zu processes ran before they were recorded: blocks that they allocated "
                      "earlier are missing\n",
                      prefix, count);
    }
}

// Processes of the user's choice, or children of theirs, that are not in the recording.
static void write_omitted(const struct profile *profile, const char *prefix, FILE *out)
{
    const struct rec_counter *omitted = rec_counter_find(&profile->recording, "omitted_processes");
    if (omitted != NULL && omitted->value > 0) {
        CLEANUP(strbuf_release) struct strbuf text = {0};
        screen_append(&text, profile_string(profile, omitted->text));
        (void)fprintf(out, "%s%s\n", prefix, strbuf_text(&text));
    }
}

// The summary states how the program itself ended.
static void write_killed(const struct profile *profile, const char *prefix, FILE *out)
{
    enum {
        NAMED = 3
    };
    const struct recording *recording = &profile->recording;
    CLEANUP(strbuf_release) struct strbuf names = {0};
    size_t count = 0;
    uint64_t threads = 0;
    for (uint32_t i = 0; i < recording->process_count; i++) {
        const struct rec_process *process = &recording->processes[i];
        if ((process->flags & (REC_PROCESS_KILLED | REC_PROCESS_MAIN)) != REC_PROCESS_KILLED) {
            continue;
        }
        if (count++ < NAMED) {
            const char *name = path_file_name(profile_string(profile, process->executable));
            strbuf_printf(&names, "%s%u%s", count > 1 ? ", " : "", (unsigned)process->pid,
                          name[0] != '\0' ? " " : ""); // it may have ended before it had one
            screen_append(&names, name);
        }
        threads += process->killed_threads;
    }
    if (count > 0) {
        (void)fprintf(out,
                      "%s%s killed or ended without exit (%s%s): one call that had not returned "
                      "may be missing of ",
                      prefix, format_things(count, "process was", "processes were").text,
                      strbuf_text(&names), count > NAMED ? ", ..." : "");
        if (threads == 1) {
            (void)fprintf(out, "its thread\n");
        } else {
            (void)fprintf(out, "each of %s %s threads\n", count == 1 ? "its" : "their",
                          format_count(threads).text);
        }
    }
}

static void write_sampling(const struct profile *profile, const char *prefix, FILE *out)
{
    const struct sampling sampling = sampling_of(&profile->recording);
    if (sampling.is_sampled) {
        CLEANUP(strbuf_release) struct strbuf text = {0};
        sampling_append(&sampling, &text);
        (void)fprintf(out, "%s%s\n", prefix, strbuf_text(&text));
    }
}

static void write_merged(const struct profile *profile, const char *prefix, FILE *out)
{
    struct merged_stacks merged;
    if (merged_stacks_of(&profile->recording, &merged) != ERR_OK || merged.times == 0) {
        return;
    }
    (void)fprintf(out,
                  "%scall stacks reached the memory limit (--max-memory): the rarest were merged, "
                  "%s (%s) of %s %s at [merged]; a single call stack lacks at most "
                  "%s of them, of %s\n",
                  prefix, format_things(merged.allocations, "allocation", "allocations").text,
                  format_percent(merged.allocations, profile->recording.totals.allocations).text,
                  format_bytes(merged.allocated_bytes).text,
                  merged.allocations == 1 ? "counts" : "count",
                  format_count(merged.most_missing_allocations).text,
                  format_bytes(merged.most_missing_bytes).text);
}

static void write_over_limit(const struct profile *profile, const char *prefix, FILE *out)
{
    const uint64_t bytes = rec_counter_value(&profile->recording, "over_memory_limit");
    if (bytes > 0) {
        (void)fprintf(out,
                      "%sthe memory limit (--max-memory) did not hold: to record so many threads, "
                      "cairn took up to %s more\n",
                      prefix, format_bytes(bytes).text);
    }
}

void warnings_write(const struct profile *profile, const char *prefix, FILE *out)
{
    if (profile->damage[0] != '\0') {
        (void)fprintf(out, "%s%s\n", prefix, profile->damage);
    }
    const struct rec_meta *meta = &profile->recording.meta;
    if (meta->state == REC_STATE_RUNNING) {
        (void)fprintf(out,
                      "%sthe program was still running when this was written, %s after its start\n",
                      prefix, screen_format_ms(meta->runtime_ms).text);
        if (meta->checkpoint_interval_ms > 0) {
            (void)fprintf(out, "%swhile it is recorded, the file is updated every %s\n", prefix,
                          screen_format_ms(meta->checkpoint_interval_ms).text);
        }
    }
    write_stops(profile, prefix, out);
    write_omitted(profile, prefix, out);
    write_attached(profile, prefix, out);
    write_killed(profile, prefix, out);
    write_sampling(profile, prefix, out);
    write_merged(profile, prefix, out);
    write_over_limit(profile, prefix, out);
    write_losses(profile, prefix, out);
    warnings_write_unseen(profile, prefix, out);
}

enum err warnings_open_profile(const char *path,
                               const struct name_sources *sources,
                               struct profile **out,
                               struct err_info *info)
{
    struct progress progress;
    progress_init(&progress, stderr);
    const enum err problem = input_open_profile(path, sources, &progress, out, info);
    progress_clear(&progress);
    TRY(problem);
    warnings_write(*out, "cairn: ", stderr);
    return ERR_OK;
}
