// SPDX-License-Identifier: MIT
// export_dhat_adhoc: the program's own events (cairn_event) as DHAT's JSON, version 2, in its
// ad-hoc mode, for Valgrind's dh_view.html.
//
// A program point is a name and a stack. "units" are the weights, "events" are counted, and there
// are no lifetimes. The name is the innermost frame. The file covers the whole run, because filters
// concern the heap only.
// Context: H.
#include "base/clock.h"
#include "base/compiler.h"
#include "formats/codec/dhat_frames.h"
#include "formats/export/export_formats.h"
#include "host/text/json_writer.h"
#include "profile/tables/adhoc.h"

enum {
    DHAT_FILE_VERSION = 2,
};

static MUST_USE enum err
write_points(struct json_writer *w, const struct adhoc_list *list, struct dhat_frames *frames)
{
    json_key_array(w, "pps");
    for (size_t i = 0; i < list->events.len; i++) {
        const struct adhoc_event *event = &list->events.items[i];
        json_begin_object(w);
        json_key_u64(w, "tb", event->weight);
        json_key_u64(w, "tbk", event->events);
        json_key_array(w, "fs");
        for (size_t at = event->first; at < event->first + event->count; at++) {
            TRY(dhat_frames_refer(frames, list->locations.items[at], w));
        }
        json_end_array(w);
        json_end_object(w);
    }
    json_end_array(w);
    return ERR_OK;
}

static enum err write_dhat_adhoc(const struct export_view *view, FILE *out)
{
    const struct profile *profile = view->profile;
    const struct rec_meta *meta = &profile->recording.meta;
    CLEANUP(adhoc_release) struct adhoc_list list = {0};
    CLEANUP(dhat_frames_release) struct dhat_frames frames = {0};
    TRY(adhoc_collect(profile, ADHOC_BY_STACK, &list));
    TRY(dhat_frames_init(&frames, profile));
    struct json_writer w;
    json_to_stream(&w, out, JSON_COMPACT);
    json_key_u64(&w, "dhatFileVersion", DHAT_FILE_VERSION);
    json_key_string(&w, "mode", "ad-hoc");
    json_key_string(&w, "verb", "Occurred");
    json_key_bool(&w, "bklt", false);
    json_key_bool(&w, "bkacc", false);
    json_key_string(&w, "bu", "unit");
    json_key_string(&w, "bsu", "units");
    json_key_string(&w, "bksu", "events");
    json_key_string(&w, "tu", "\xc2\xb5s");
    json_key_string(&w, "Mtu", "s");
    json_key_string(&w, "cmd", profile_string(profile, meta->command_line));
    json_key_u64(&w, "pid", meta->pid);
    json_key_u64(&w, "te", meta->runtime_ms * US_PER_MS);
    TRY(write_points(&w, &list, &frames));
    TRY(dhat_frames_write(&frames, &w));
    return json_finish(&w);
}

const struct exporter exporter_dhat_adhoc = {
    .name = "dhat-adhoc",
    .file_suffix = ".dhat-adhoc.json",
    .help = "JSON for dh_view.html: the program's own events (cairn_event)",
    .uses = EXPORT_USES_EVENTS,
    .write = write_dhat_adhoc,
};
