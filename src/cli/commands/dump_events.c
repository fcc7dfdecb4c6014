// SPDX-License-Identifier: MIT
// dump_events: see the header. Prints one event per line; in JSON, one object per line. Context: H.
//
// The log names rows and threads by number; the profile of the same file resolves them. The log of
// a killed run has no profile, so only the numbers are printed.
#include "cli/commands/dump_events.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/compiler.h"
#include "cli/options/command.h"
#include "cli/text/screen_text.h"
#include "formats/import/input_file.h"
#include "host/text/json_writer.h"
#include "profile/accuracy/sampling.h"
#include "profile/model/profile.h"
#include "recording/read/event_reader.h"

static const char *const kinds[] = {
    [REC_EVENT_ALLOCATION] = "allocation",   [REC_EVENT_FREE] = "free",
    [REC_EVENT_FREE_LATEST] = "free_latest", [REC_EVENT_TEMPORARY] = "temporary",
    [REC_EVENT_UNKNOWN_FREE] = "unknown",    [REC_EVENT_PROCESS_END] = "process_end",
};

// Names and sampling of the events. `profile` may be NULL.
struct event_place {
    uint32_t pid;
    uint32_t thread_id;
    uint32_t node;
    const char *function;
};

static struct event_place place_of(const struct profile *profile, const struct rec_event *event)
{
    struct event_place place = {.node = REC_NONE, .function = ""};
    if (profile == NULL) {
        return place;
    }
    const struct recording *recording = &profile->recording;
    if (event->process < recording->process_count) {
        place.pid = recording->processes[event->process].pid;
    }
    if (event->thread < recording->thread_count) {
        place.thread_id = recording->threads[event->thread].thread_id;
    }
    if (event->row < recording->row_count) {
        place.node = recording->rows[event->row].node;
        const uint32_t location = profile_call_site(profile, place.node).location;
        place.function = location != REC_NONE ? profile_location_function(profile, location) : "";
    }
    return place;
}

static const char *kind_name(uint32_t kind)
{
    return kind < ARRAY_LEN(kinds) && kinds[kind] != NULL ? kinds[kind] : "?";
}

static void print_text(const struct profile *profile, const struct rec_event *event)
{
    const struct event_place place = place_of(profile, event);
    CLEANUP(strbuf_release) struct strbuf function = {0};
    screen_append(&function, place.function);
    if (event->others != 0) {
        strbuf_printf(&function, "  [one of %" PRIu64 "]", (uint64_t)event->others + 1);
    }
    (void)printf("%10" PRIu64 "  %-11s  %7" PRIu32 "  %7" PRIu32 "  %#14" PRIx64 "  %10" PRIu64
                 "  %s\n",
                 event->time_ms, kind_name(event->kind), place.pid, place.thread_id, event->address,
                 event->size_bytes, strbuf_text(&function)); // errors are found at the end
}

static MUST_USE enum err print_json(const struct profile *profile, const struct rec_event *event)
{
    const struct event_place place = place_of(profile, event);
    struct json_writer w;
    json_to_stream(&w, stdout, JSON_COMPACT);
    json_key_u64(&w, "time_ms", event->time_ms);
    json_key_string(&w, "kind", kind_name(event->kind));
    json_key_u64(&w, "process", event->process);
    json_key_u64(&w, "pid", place.pid);
    json_key_known_u64(&w, "thread", event->thread, event->thread != REC_NONE);
    json_key_u64(&w, "thread_id", place.thread_id);
    json_key_u64(&w, "address", event->address);
    json_key_u64(&w, "size_bytes", event->size_bytes);
    json_key_u64(&w, "weight", (uint64_t)event->others + 1);
    json_key_known_u64(&w, "row", event->row, event->row != REC_NONE);
    json_key_known_u64(&w, "stack", place.node, place.node != REC_NONE);
    json_key_string(&w, "function", place.function);
    TRY(json_finish(&w));
    (void)putchar('\n'); // an error of the stream is found at the end
    return ERR_OK;
}

static void
print_group(const struct profile *profile, const struct rec_event_vec *events, bool use_json)
{
    for (size_t i = 0; i < events->len && ferror(stdout) == 0; i++) {
        if (!use_json) {
            print_text(profile, &events->items[i]);
        } else if (print_json(profile, &events->items[i]) != ERR_OK) {
            return; // the stream has the error
        }
    }
}

// Explain the weight of events of a sampled recording. The sentence goes to stderr because stdout
// is for programs.
static void tell_sampling(const struct profile *profile)
{
    if (profile == NULL || !sampling_of(&profile->recording).is_sampled) {
        return;
    }
    const struct sampling sampling = sampling_of(&profile->recording);
    CLEANUP(strbuf_release) struct strbuf text = {0};
    sampling_append(&sampling, &text);
    (void)fprintf(stderr,
                  "cairn: %s; an allocation counts as many times as its weight, and frees of "
                  "unsampled blocks have no block\n",
                  strbuf_text(&text));
}

enum err dump_events(const char *path, bool use_json, struct err_info *info)
{
    struct err_info no_profile = {0};
    CLEANUP(event_reader_close) struct event_reader reader = EVENT_READER_INIT;
    CLEANUP(profile_closep) struct profile *profile = NULL;
    CLEANUP(rec_event_vec_release) struct rec_event_vec events = {0};
    TRY(event_reader_open(path, &reader, info));
    (void)!input_open_profile(path, NULL, NULL, &profile, &no_profile); // else print numbers only
    enum err problem = event_reader_next(&reader, &events, info);
    if (problem == ERR_OK && events.len == 0) {
        return err_set(info, ERR_NOT_FOUND,
                       "'%s' has no event log; record with 'cairn record --events'", path);
    }
    tell_sampling(profile);
    if (!use_json) {
        (void)printf("%10s  %-11s  %7s  %7s  %14s  %10s  %s\n", "ms", "event", "process", "thread",
                     "address", "bytes", "from");
    }
    while (problem == ERR_OK && events.len > 0 && ferror(stdout) == 0) {
        print_group(profile, &events, use_json);
        problem = event_reader_next(&reader, &events, info);
    }
    (void)fflush(stdout); // before the problem; errors are found at the end
    return problem;
}
