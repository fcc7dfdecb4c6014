// SPDX-License-Identifier: MIT
// export_pprof: profile.proto, gzipped, for Go's pprof and tools based on it.
//
// A sample has the costs of one stack on one thread. Its locations are the frames of the recording,
// each with a line for every function that was inlined there, innermost first. Addresses in a
// recording are offsets in their modules, so the exporter places the mappings one after the other
// in an invented address space; mapping, offset and build-id are true. Addresses are call
// addresses, one before the return addresses. Strings become valid UTF-8, which protobuf demands.
//
//   alloc_objects, alloc_space, inuse_objects, inuse_space    the last one is what pprof shows
//
// Unknown ones are omitted. A collector may limit the samples: then rows are added up in one sample
// with the invented frame [other], and a comment has their number. If the recording has merged
// threads, samples have none. The other comments are the command line, and the errors of the sums
// of these values if the recording was sampled; pprof prints them at the head of its reports.
//
// Numbers beyond INT64_MAX, which only a forged recording has, become INT64_MAX.

#include "base/clock.h"
#include "base/compiler.h"
#include "formats/codec/clean_text.h"
#include "formats/codec/packed_stream.h"
#include "formats/codec/pprof_fields.h"
#include "formats/codec/protobuf.h"
#include "formats/export/estimates_note.h"
#include "formats/export/exporter.h"
#include "host/containers/map_u64.h"
#include "host/containers/string_table.h"

enum {
    MAPPING_ALIGNMENT = 0x1000,
};

// High enough that no reader mistakes it for an executable linked for that address.
static const uint64_t first_mapping_at = UINT64_C(1) << 32;

enum {
    VALUE_COUNT = 4
};

// The values of a sample, in the order that pprof expects.
static const struct {
    const char *type;
    const char *unit;
    enum cost costs[2]; // by enum export_moment
} sample_values[VALUE_COUNT] = {
    {"alloc_objects", "count", {COST_ALLOCATIONS, COST_ALLOCATIONS}},
    {"alloc_space", "bytes", {COST_ALLOCATED_BYTES, COST_ALLOCATED_BYTES}},
    {"inuse_objects", "count", {COST_PEAK_BLOCKS, COST_LEAKED_ALLOCATIONS}},
    {"inuse_space", "bytes", {COST_PEAK_BYTES, COST_LEAKED_BYTES}},
};

struct pprof {
    const struct export_view *view; // borrowed
    struct packed_stream packed;    // owned
    struct string_table strings;    // owned
    struct u64_vec mapping_starts;  // owned; by module
    struct u64_vec mapping_ends;    // owned; by module
    struct u32_vec has_frame;       // owned; by frame, 1 if its location was written
    struct map_u64 functions;       // owned; (function, file) -> id in the profile
    struct costs sums;              // of all samples
    struct costs other;             // of rows without a sample of their own
    struct export_size size;
    struct strbuf message; // owned; scratch for a field of the profile
    struct strbuf part;    // owned; scratch for a field of that field
    struct strbuf text;    // owned; scratch for a cleaned name
};

static void pprof_release(struct pprof *p)
{
    packed_stream_release(&p->packed);
    string_table_release(&p->strings);
    u64_vec_release(&p->mapping_starts);
    u64_vec_release(&p->mapping_ends);
    u32_vec_release(&p->has_frame);
    map_u64_release(&p->functions);
    strbuf_release(&p->message);
    strbuf_release(&p->part);
    strbuf_release(&p->text);
}

static uint64_t signed_value(uint64_t value)
{
    return value < INT64_MAX ? value : INT64_MAX;
}

// Find or add the id of a text in the profile's string table.
static uint32_t text_id(struct pprof *p, const char *text)
{
    strbuf_clear(&p->text);
    clean_append(&p->text, text, (struct clean_rule){0});
    return string_table_add(&p->strings, strbuf_text(&p->text));
}

// Write p->message as a field of the profile, and clear it.
static void emit_message(struct pprof *p, enum profile_field field)
{
    CLEANUP(strbuf_release) struct strbuf framed = {0};
    protobuf_message(&framed, field, &p->message);
    packed_stream_write(&p->packed, strbuf_bytes(&framed));
}

static void emit_type(struct pprof *p, enum profile_field field, const char *type, const char *unit)
{
    protobuf_u64(&p->message, 1, text_id(p, type));
    protobuf_u64(&p->message, 2, text_id(p, unit));
    emit_message(p, field);
}

// Place the modules, each with room for the highest offset of its frames.
static MUST_USE enum err place_mappings(struct pprof *p)
{
    const struct recording *recording = &p->view->profile->recording;
    TRY(u64_vec_resize(&p->mapping_starts, recording->module_count));
    TRY(u64_vec_resize(&p->mapping_ends, recording->module_count));
    uint64_t *lengths = p->mapping_ends.items;
    for (size_t i = 0; i < recording->frame_count; i++) {
        const struct rec_frame *frame = &recording->frames[i];
        if (frame->module != REC_NONE && lengths[frame->module] < frame->offset) {
            lengths[frame->module] = frame->offset;
        }
    }
    uint64_t at = first_mapping_at;
    for (size_t i = 0; i < recording->module_count; i++) {
        p->mapping_starts.items[i] = at;
        at += lengths[i] / MAPPING_ALIGNMENT * MAPPING_ALIGNMENT + MAPPING_ALIGNMENT;
        p->mapping_ends.items[i] = at;
    }
    return ERR_OK;
}

static void emit_mapping(struct pprof *p, size_t index)
{
    const struct profile *profile = p->view->profile;
    const struct rec_module *module = &profile->recording.modules[index];
    protobuf_u64(&p->message, 1, index + 1);
    protobuf_u64(&p->message, 2, p->mapping_starts.items[index]);
    protobuf_u64(&p->message, 3, p->mapping_ends.items[index]);
    protobuf_u64(&p->message, 5, text_id(p, profile_string(profile, module->path)));
    protobuf_u64(&p->message, 6, text_id(p, profile_string(profile, module->build_id)));
    protobuf_u64(&p->message, 7, module->frames_with_function > 0);
    protobuf_u64(&p->message, 8, module->frames_with_line > 0);
    protobuf_u64(&p->message, 9, module->frames_with_line > 0);
    protobuf_u64(&p->message, 10, module->frames_with_line > 0);
    emit_message(p, PROFILE_MAPPING);
}

// Write the mappings. By convention the first one is the main program.
static void emit_mappings(struct pprof *p)
{
    const struct recording *recording = &p->view->profile->recording;
    for (uint32_t is_executable = 2; is_executable-- > 0;) {
        for (size_t i = 0; i < recording->module_count; i++) {
            if ((recording->modules[i].is_executable != 0) == (is_executable != 0)) {
                emit_mapping(p, i);
            }
        }
    }
}

// Find the id of the function at a location, or write the function and give it an id.
static MUST_USE enum err function_id(struct pprof *p, uint32_t location, uint32_t *out)
{
    const struct profile *profile = p->view->profile;
    const struct code_location *place = profile_location_get(profile, location);
    const size_t id = map_u64_count(&p->functions) + 1;
    TRY(map_u64_number(&p->functions, map_u64_pair(place->function, place->file), id, out));
    if (*out != id) {
        return ERR_OK;
    }
    CLEANUP(strbuf_release) struct strbuf shown = {0};
    const char *name = profile_location_function(profile, location);
    clean_append(&shown, name, (struct clean_rule){0});
    protobuf_u64(&p->message, 1, id);
    protobuf_u64(&p->message, 2, text_id(p, strbuf_text(&shown)));
    protobuf_u64(&p->message, 3, text_id(p, name));
    protobuf_u64(&p->message, 4, text_id(p, profile_location_file(profile, location)));
    emit_message(p, PROFILE_FUNCTION);
    return ERR_OK;
}

static uint64_t address_of(const struct pprof *p, const struct rec_frame *frame)
{
    uint64_t start = frame->module != REC_NONE ? p->mapping_starts.items[frame->module] : 0;
    bool is_return = (frame->flags & REC_FRAME_EXACT_PC) == 0 && frame->offset > 0;
    return start + frame->offset - is_return;
}

// Write the location of a frame unless it is already written.
static MUST_USE enum err need_location(struct pprof *p, uint32_t index)
{
    const struct profile *profile = p->view->profile;
    if (p->has_frame.items[index] != 0) {
        return ERR_OK;
    }
    p->has_frame.items[index] = 1;
    CLEANUP(strbuf_release) struct strbuf lines = {0};
    struct code_chain chain = code_index_chain(&profile->code, index);
    for (size_t i = 0; i < chain.count; i++) {
        const struct code_location *place = profile_location_get(profile, chain.locations[i]);
        uint32_t function;
        TRY(function_id(p, chain.locations[i], &function));
        protobuf_u64(&p->part, 1, function);
        protobuf_u64(&p->part, 2, place->line);
        protobuf_message(&lines, 4, &p->part);
    }
    const struct rec_frame *frame = &profile->recording.frames[index];
    protobuf_u64(&p->message, 1, (uint64_t)index + 1);
    protobuf_u64(&p->message, 2, frame->module != REC_NONE ? (uint64_t)frame->module + 1 : 0);
    protobuf_u64(&p->message, 3, address_of(p, frame));
    strbuf_append(&p->message, strbuf_text(&lines), lines.len);
    emit_message(p, PROFILE_LOCATION);
    return ERR_OK;
}

static void add_label(struct pprof *p, const char *key, uint64_t text, uint64_t number)
{
    protobuf_u64(&p->part, 1, text_id(p, key));
    protobuf_u64(&p->part, 2, text);
    protobuf_u64(&p->part, 3, number);
    protobuf_message(&p->message, 3, &p->part);
}

static enum cost cost_of_value(const struct pprof *p, size_t value)
{
    return sample_values[value].costs[p->view->moment];
}

static bool has_value(const struct pprof *p, size_t value)
{
    return selection_knows(&p->view->selection, cost_of_value(p, value));
}

// Return the costs of a sample: blocks of ended processes are not in use now, and of allocations
// only the recent ones count if the view has changes.
static struct costs sample_costs(const struct pprof *p, size_t index)
{
    const uint32_t row = p->view->selection.rows.items[index];
    struct costs costs = selection_costs(&p->view->selection, index);
    if (p->view->is_now && !selection_row_exists(&p->view->selection, row)) {
        costs.values[COST_LEAKED_BYTES] = 0;
        costs.values[COST_LEAKED_ALLOCATIONS] = 0;
    }
    if (p->view->changes != NULL) {
        costs.values[COST_ALLOCATIONS] = p->view->changes->rows.items[row].allocations;
        costs.values[COST_ALLOCATED_BYTES] = p->view->changes->rows.items[row].allocated_bytes;
    }
    return costs;
}

static bool is_empty(const struct pprof *p, const struct costs *costs)
{
    for (size_t i = 0; i < VALUE_COUNT; i++) {
        if (costs_get(costs, cost_of_value(p, i)) != 0) {
            return false;
        }
    }
    return true;
}

// Add the values of a sample to the message.
static void add_values(struct pprof *p, const struct costs *costs)
{
    for (size_t i = 0; i < VALUE_COUNT; i++) {
        if (has_value(p, i)) {
            protobuf_varint(&p->part, signed_value(costs_get(costs, cost_of_value(p, i))));
        }
    }
    protobuf_message(&p->message, 2, &p->part);
}

static void add_labels(struct pprof *p, const struct rec_row *row)
{
    const struct recording *recording = &p->view->profile->recording;
    const struct rec_thread *thread = &recording->threads[row->thread];
    if (!recording->has_merged_threads) {
        add_label(p, "thread", text_id(p, profile_string(p->view->profile, thread->name)), 0);
        add_label(p, "thread_id", 0, thread->thread_id);
    }
    add_label(p, "pid", 0, recording->processes[thread->process].pid);
}

static enum export_fate fate_of(const struct pprof *p, uint32_t row)
{
    const struct export_changes *changes = p->view->changes;
    return changes == NULL || changes->fates.len == 0 ? EXPORT_ALONE
                                                      : (enum export_fate)changes->fates.items[row];
}

// Write a row as a sample, or add it to the other ones.
static MUST_USE enum err emit_row(struct pprof *p, size_t index)
{
    const struct recording *recording = &p->view->profile->recording;
    const uint32_t number = p->view->selection.rows.items[index];
    const struct rec_row *row = &recording->rows[number];
    const struct costs costs = sample_costs(p, index);
    const enum export_fate fate = fate_of(p, number);
    if (fate == EXPORT_NOWHERE || (p->view->changes != NULL && is_empty(p, &costs))) {
        return ERR_OK; // most stacks of a long run
    }
    costs_add(&p->sums, &costs);
    if (fate == EXPORT_IN_OTHER) {
        costs_add(&p->other, &costs);
        p->size.other_count++;
        return ERR_OK;
    }
    uint32_t end = row->node; // the first frame that is not shown
    while (end != 0 && selection_chain(&p->view->selection, end).count > 0) {
        end = recording->nodes[end].parent;
    }
    for (uint32_t at = row->node; at != end; at = recording->nodes[at].parent) {
        TRY(need_location(p, recording->nodes[at].frame));
    }
    for (uint32_t at = row->node; at != end; at = recording->nodes[at].parent) {
        protobuf_varint(&p->part, (uint64_t)recording->nodes[at].frame + 1);
    }
    protobuf_message(&p->message, 1, &p->part);
    add_values(p, &costs);
    add_labels(p, row);
    p->size.sample_count++;
    emit_message(p, PROFILE_SAMPLE);
    return ERR_OK;
}

// Write the sample of all other rows, with the location and the function that it needs. Frames and
// functions have lower ids.
static void emit_other(struct pprof *p)
{
    static const char name[] = "[other]";
    const uint64_t location = (uint64_t)p->view->profile->recording.frame_count + 1;
    const uint64_t function = map_u64_count(&p->functions) + 1;
    if (p->size.other_count == 0) {
        return;
    }
    const uint32_t text = text_id(p, name);
    protobuf_u64(&p->message, 1, function);
    protobuf_u64(&p->message, 2, text);
    protobuf_u64(&p->message, 3, text);
    emit_message(p, PROFILE_FUNCTION);
    protobuf_u64(&p->part, 1, function);
    protobuf_u64(&p->message, 1, location);
    protobuf_message(&p->message, 4, &p->part);
    emit_message(p, PROFILE_LOCATION);
    protobuf_varint(&p->part, location);
    protobuf_message(&p->message, 1, &p->part);
    add_values(p, &p->other);
    p->size.sample_count++;
    emit_message(p, PROFILE_SAMPLE);
}

struct time_span {
    uint64_t start_ns; // since 1970
    uint64_t duration_ns;
};

// Return the time that the profile covers. Collectors take a profile with a duration for the
// difference of two states.
static struct time_span time_of(const struct export_view *view)
{
    const struct rec_meta *meta = &view->profile->recording.meta;
    const uint64_t runtime_ns =
        meta->runtime_ms < INT64_MAX / NS_PER_MS ? meta->runtime_ms * NS_PER_MS : INT64_MAX;
    const uint64_t start_ns = signed_value(meta->start_unix_ns);
    if (view->changes != NULL) {
        return (struct time_span){view->changes->from_unix_ns,
                                  view->changes->until_unix_ns - view->changes->from_unix_ns};
    }
    return view->is_now ? (struct time_span){signed_value(start_ns + runtime_ns), 0}
                        : (struct time_span){start_ns, runtime_ns};
}

static void add_comment(struct pprof *p, const char *text, struct strbuf *fields)
{
    protobuf_u64(fields, PROFILE_COMMENT, text_id(p, text));
}

// Add the comment on what is in [other], if anything is.
static void add_other_note(struct pprof *p, struct strbuf *fields)
{
    CLEANUP(strbuf_release) struct strbuf note = {0};
    if (p->size.other_count == 0) {
        return;
    }
    strbuf_printf(&note,
                  "the collector's limits: %zu call stacks with little are added up as [other]",
                  p->size.other_count);
    add_comment(p, strbuf_text(&note), fields);
}

// Add the comment that the figures are estimates, if they are.
static void add_estimates(struct pprof *p, struct strbuf *fields)
{
    CLEANUP(strbuf_release) struct strbuf note = {0};
    struct estimated_total totals[VALUE_COUNT];
    for (size_t i = 0; i < VALUE_COUNT; i++) {
        totals[i] = (struct estimated_total){sample_values[i].type, cost_of_value(p, i)};
    }
    estimates_note_append(p->view, &p->sums, totals, VALUE_COUNT, "", "", &note);
    if (note.len > 0) {
        add_comment(p, strbuf_text(&note), fields);
    }
}

// Write the fields of the profile that are not messages.
static void write_scalars(struct pprof *p)
{
    const struct profile *profile = p->view->profile;
    const struct rec_meta *meta = &profile->recording.meta;
    const bool shows_use = has_value(p, VALUE_COUNT - 1) && p->view->cost != COST_ALLOCATED_BYTES;
    CLEANUP(strbuf_release) struct strbuf fields = {0};
    const struct time_span time = time_of(p->view);
    protobuf_u64(&fields, PROFILE_TIME_NS, time.start_ns);
    protobuf_u64(&fields, PROFILE_DURATION_NS, time.duration_ns);
    // Without sampling every byte was counted. Samples are already scaled, as Go does it.
    const uint64_t period_bytes = profile->recording.totals.sample_bytes;
    protobuf_u64(&fields, PROFILE_PERIOD, period_bytes != 0 ? period_bytes : 1);
    add_comment(p, profile_string(profile, meta->command_line), &fields);
    add_estimates(p, &fields);
    add_other_note(p, &fields);
    protobuf_u64(&fields, PROFILE_DEFAULT_TYPE,
                 text_id(p, shows_use ? "inuse_space" : "alloc_space"));
    packed_stream_write(&p->packed, strbuf_bytes(&fields));
}

static void write_strings(struct pprof *p)
{
    CLEANUP(strbuf_release) struct strbuf field = {0};
    for (uint32_t id = 0; id < string_table_count(&p->strings); id++) {
        struct bytes text = string_table_get_bytes(&p->strings, id);
        strbuf_clear(&field);
        protobuf_bytes(&field, PROFILE_STRING, text.data, text.len);
        packed_stream_write(&p->packed, strbuf_bytes(&field));
    }
}

static enum err write_pprof(const struct export_view *view, FILE *out)
{
    CLEANUP(pprof_release) struct pprof p = {.view = view};
    TRY(packed_stream_init(&p.packed, PACKING_GZIP, out));
    TRY(u32_vec_resize(&p.has_frame, view->profile->recording.frame_count));
    TRY(place_mappings(&p));
    for (size_t i = 0; i < VALUE_COUNT; i++) {
        if (has_value(&p, i)) {
            emit_type(&p, PROFILE_SAMPLE_TYPE, sample_values[i].type, sample_values[i].unit);
        }
    }
    emit_type(&p, PROFILE_PERIOD_TYPE, "space", "bytes");
    emit_mappings(&p);
    for (size_t i = 0; i < view->selection.rows.len; i++) {
        TRY(emit_row(&p, i));
    }
    emit_other(&p);
    write_scalars(&p);
    write_strings(&p);
    TRY(packed_stream_finish(&p.packed));
    p.size.unpacked_bytes = p.packed.z.total_in;
    if (view->size != NULL) {
        *view->size = p.size;
    }
    return ERR_OK;
}

const struct exporter exporter_pprof = {
    .name = "pprof",
    .file_suffix = ".pb.gz",
    .help = "for Go's pprof: objects and bytes, allocated and in use",
    .is_binary = true,
    .is_flat = true,
    .uses = EXPORT_USES_MOMENT,
    .write = write_pprof,
};
