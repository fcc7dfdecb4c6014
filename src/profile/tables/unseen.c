// SPDX-License-Identifier: MIT
// unseen: see the header.
#include "profile/tables/unseen.h"

#include <string.h>

#include "base/compiler.h"
#include "profile/tables/ledger.h"

#define MAPPED_BYTES_MIN  ((uint64_t)8 << 20)
#define MAPPED_TIMES_HEAP 8u

// The look at which the process was largest; NULL if there is none.
static const struct rec_look *largest_look(const struct recording *recording, uint32_t process)
{
    const struct rec_look *largest = NULL;
    for (size_t i = 0; i < recording->look_count; i++) {
        const struct rec_look *look = &recording->looks[i];
        if (look->process == process && (largest == NULL || look->rss_bytes > largest->rss_bytes)) {
            largest = look;
        }
    }
    return largest;
}

// The stack that mapped most of what was resident in any look at the process.
static uint32_t largest_mapper(const struct recording *recording, uint32_t process)
{
    uint32_t node = REC_NONE;
    uint64_t most = 0;
    for (size_t i = 0; i < recording->part_count; i++) {
        const struct rec_part *part = &recording->parts[i];
        if (part->kind == REC_PART_MAPPED && part->node != REC_NONE && part->rss_bytes > most &&
            recording->looks[part->look].process == process) {
            most = part->rss_bytes;
            node = part->node;
        }
    }
    return node;
}

static bool is_hidden(const struct unseen *memory)
{
    return memory->mapped_bytes >= MAPPED_BYTES_MIN &&
           memory->mapped_bytes / MAPPED_TIMES_HEAP >= memory->heap_bytes &&
           memory->mapped_bytes > memory->anonymous_bytes / 2;
}

enum err unseen_collect(const struct profile *profile, struct unseen_vec *out)
{
    const struct recording *recording = &profile->recording;
    for (uint32_t i = 0; i < recording->process_count; i++) {
        const uint32_t flags = recording->processes[i].flags;
        const struct rec_look *look = largest_look(recording, i);
        struct unseen found = {.kind = UNSEEN_MAPPED, .process = i, .node = REC_NONE};
        if (look != NULL) {
            found.heap_bytes = look->live_bytes + look->rounding_bytes + look->kept_bytes;
            found.mapped_bytes = look->mapped_bytes;
            found.anonymous_bytes =
                found.heap_bytes + look->mapped_bytes + look->stack_bytes + look->rest_bytes;
        }
        if ((flags & REC_PROCESS_OWN_ALLOCATOR) != 0) {
            found.kind = UNSEEN_MALLOC;
        } else if ((flags & REC_PROCESS_GO) != 0) {
            found.kind = UNSEEN_GO;
        } else if (!is_hidden(&found)) {
            continue;
        }
        found.node = largest_mapper(recording, i);
        TRY(unseen_vec_push(out, found));
    }
    return ERR_OK;
}

const char *unseen_key(enum unseen_kind kind)
{
    static const char *const keys[] = {
        [UNSEEN_MALLOC] = "malloc", [UNSEEN_GO] = "go", [UNSEEN_MAPPED] = "mapped"};
    return keys[kind];
}

static uint64_t unnamed_execs(const struct recording *recording)
{
    for (size_t i = 0; i < recording->counter_count; i++) {
        const struct rec_counter *counter = &recording->counters[i];
        if (strcmp(rec_string_get(recording, counter->name), "unnamed_execs") == 0) {
            return counter->value;
        }
    }
    return 0;
}

uint64_t unseen_execs(const struct recording *recording)
{
    uint64_t execs = unnamed_execs(recording);
    for (size_t i = 0; i < recording->unrecorded_count; i++) {
        execs += recording->unrecorded[i].execs;
    }
    return execs;
}

static void write_unrecorded(struct json_writer *w, const struct profile *profile)
{
    const struct recording *recording = &profile->recording;
    uint64_t descendants = 0;
    for (size_t i = 0; i < recording->unrecorded_count; i++) {
        descendants += recording->unrecorded[i].descendants;
    }
    json_key(w, "unrecorded");
    json_begin_object(w);
    json_key_u64(w, "execs", unseen_execs(recording));
    json_key_u64(w, "descendants_at_least", descendants);
    json_key(w, "programs");
    json_begin_array(w);
    for (size_t i = 0; i < recording->unrecorded_count; i++) {
        const struct rec_unrecorded *entry = &recording->unrecorded[i];
        json_begin_object(w);
        json_key_string(w, "program", profile_string(profile, entry->program));
        json_key_string(w, "reason", profile_string(profile, entry->reason));
        json_key_string(w, "text", profile_string(profile, entry->text));
        json_key_u64(w, "pid", entry->pid);
        json_key_u64(w, "execs", entry->execs);
        json_key_u64(w, "descendants_at_least", entry->descendants);
        json_end_object(w);
    }
    json_end_array(w);
    json_end_object(w);
}

static enum err
write_mapper(struct json_writer *w, const struct profile *profile, const struct unseen *unseen)
{
    CLEANUP(u32_vec_release) struct u32_vec locations = {0};
    CLEANUP(u32_vec_release) struct u32_vec inlined = {0};
    TRY(ledger_stack(profile, unseen->node, &locations, &inlined));
    json_key(w, "mapped_by");
    if (locations.len == 0) {
        json_null(w);
        return ERR_OK;
    }
    const uint32_t location = locations.items[0];
    json_begin_object(w);
    json_key_string(w, "function", profile_location_function(profile, location));
    json_key_string(w, "module", profile_location_module(profile, location));
    json_end_object(w);
    return ERR_OK;
}

enum err unseen_write_json(struct json_writer *w, const struct profile *profile)
{
    CLEANUP(unseen_vec_release) struct unseen_vec list = {0};
    TRY(unseen_collect(profile, &list));
    write_unrecorded(w, profile);
    json_key(w, "unseen");
    json_begin_array(w);
    for (size_t i = 0; i < list.len; i++) {
        const struct unseen *unseen = &list.items[i];
        const struct rec_process *process = &profile->recording.processes[unseen->process];
        json_begin_object(w);
        json_key_u64(w, "pid", process->pid);
        json_key_string(w, "executable", profile_string(profile, process->executable));
        json_key_string(w, "reason", unseen_key(unseen->kind));
        json_key_u64(w, "anonymous_bytes", unseen->anonymous_bytes);
        json_key_u64(w, "mapped_bytes", unseen->mapped_bytes);
        json_key_u64(w, "heap_bytes", unseen->heap_bytes);
        TRY(write_mapper(w, profile, unseen));
        json_end_object(w);
    }
    json_end_array(w);
    return ERR_OK;
}
