// SPDX-License-Identifier: MIT
// import_pprof: heap profiles in pprof's proto form, from Go, tcmalloc and converters.
//
//   sample_type  the values of a sample, in order: alloc_objects, alloc_space, inuse_objects,
//                inuse_space, or objects and space for blocks in use; others are ignored
//   sample       location ids, innermost first, and values
//   location     an address in a mapping, and its functions, innermost first
//   string       all texts, which come last; references to them are numbers
//
// The messages have any order and refer to each other. So the importer reads the content once for
// each kind of message, the kinds that others refer to first. Values are already scaled up from
// samples; a note says so. Blocks in use when the profile was written count as live at the end.
// Addresses are call addresses, one before the return addresses. A truncated file lacks its texts,
// and without them it is useless.
#include <inttypes.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "formats/codec/pprof_fields.h"
#include "formats/codec/protobuf.h"
#include "formats/import/foreign_places.h"
#include "formats/import/import_formats.h"

enum {
    CONTENT_BASE_BYTES = 64 << 20,
    CONTENT_RATIO = 8, // bytes of content for a byte of the packed file
    STACK_MAX = 1 << 16,
    CHECK_INTERVAL = 1024, // messages between checks of the memory
};

enum role {
    ROLE_ALLOC_OBJECTS,
    ROLE_ALLOC_SPACE,
    ROLE_INUSE_OBJECTS,
    ROLE_INUSE_SPACE,
    ROLE_COUNT,
};

struct function {
    rec_string name;
    rec_string file;
};

DEFINE_VEC(function_vec, struct function);

struct pprof {
    struct import *import;         // borrowed
    struct strbuf content;         // owned
    struct u32_vec texts;          // owned; rec_string by number
    struct u64_vec types;          // owned; type of each value of a sample: a text
    struct mapped_file_vec files;  // owned
    struct function_vec functions; // owned
    struct map_u64 mapping_of;     // owned; id -> index in files
    struct map_u64 function_of;    // owned; id -> index in functions
    struct map_u64 frame_of;       // owned; id of a location -> frame
    struct map_u64 thread_of;      // owned; by the label's value
    struct u64_vec stack;          // owned; scratch: ids of locations
    uint32_t value_of[ROLE_COUNT]; // index among a sample's values, REC_NONE: absent
    uint64_t duration_ns;
    uint64_t period;
    size_t offset;      // offset of the current message
    size_t since_check; // messages since the last check
};

static void release_pprof(void *state)
{
    struct pprof *p = state;
    strbuf_release(&p->content);
    u32_vec_release(&p->texts);
    u64_vec_release(&p->types);
    mapped_file_vec_release(&p->files);
    function_vec_release(&p->functions);
    map_u64_release(&p->mapping_of);
    map_u64_release(&p->function_of);
    map_u64_release(&p->frame_of);
    map_u64_release(&p->thread_of);
    u64_vec_release(&p->stack);
}

static void require(struct pprof *p, bool is_sound, const char *why)
{
    if (!is_sound) {
        import_end(p->import, err_set(p->import->info, ERR_CORRUPT, "'%s', offset %zu: %s",
                                      p->import->in->path, p->offset, why));
    }
}

// The fields 1 to 7 of a message that are numbers, 0 if absent.
struct numbers {
    uint64_t of[8];
};

static struct numbers take_numbers(struct pprof *p, struct bytes message)
{
    struct numbers numbers = {0};
    struct cursor c = cursor_over(message);
    struct protobuf_field field;
    while (protobuf_next(&c, &field)) {
        if (!field.is_bytes && field.number < ARRAY_LEN(numbers.of)) {
            numbers.of[field.number] = field.value;
        }
    }
    require(p, !c.failed, "a message that makes no sense");
    return numbers;
}

static rec_string find_text(struct pprof *p, uint64_t number)
{
    require(p, number < p->texts.len || number == 0, "a text that is not in the file");
    return number < p->texts.len ? p->texts.items[number] : 0;
}

static const char *text_of(const struct pprof *p, rec_string id)
{
    return string_table_get(&p->import->b->strings, id);
}

// --- the messages, each kind in the order of its first mention here -----------------------------

static void read_text(struct pprof *p, struct bytes message)
{
    import_need(p->import, u32_vec_push(&p->texts, import_string(p->import, message)));
}

static void read_type(struct pprof *p, struct bytes message)
{
    static const struct {
        const char *type;
        enum role role;
    } types[] = {
        {"alloc_objects", ROLE_ALLOC_OBJECTS}, {"alloc_space", ROLE_ALLOC_SPACE},
        {"inuse_objects", ROLE_INUSE_OBJECTS}, {"inuse_space", ROLE_INUSE_SPACE},
        {"objects", ROLE_INUSE_OBJECTS},       {"space", ROLE_INUSE_SPACE},
    };
    const struct numbers numbers = take_numbers(p, message);
    const rec_string type = find_text(p, numbers.of[1]);
    for (size_t i = 0; i < ARRAY_LEN(types); i++) {
        if (strcmp(text_of(p, type), types[i].type) == 0) {
            p->value_of[types[i].role] = (uint32_t)p->types.len;
        }
    }
    import_need(p->import, u64_vec_push(&p->types, type));
}

static void read_mapping(struct pprof *p, struct bytes message)
{
    const struct numbers numbers = take_numbers(p, message);
    const rec_string path = find_text(p, numbers.of[5]);
    const rec_string build_id = find_text(p, numbers.of[6]);
    const char *text = text_of(p, path);
    struct mapped_file range = {.start = numbers.of[2], .end = numbers.of[3]};
    import_need(p->import, map_u64_put(&p->mapping_of, numbers.of[1], (uint32_t)p->files.len));
    mapped_files_add(&p->files, p->import,
                     (struct bytes){.data = (const uint8_t *)text, .len = strlen(text)}, range,
                     numbers.of[4]);
    uint32_t module = p->files.items[p->files.len - 1].module;
    if (module == REC_NONE) {
        return;
    }
    struct rec_module *to = &p->import->b->modules.items[module];
    to->build_id = build_id;
    if (p->files.len == 1) { // the main program by convention
        p->import->b->meta.program = path;
        to->is_executable = 1;
    }
}

static void read_function(struct pprof *p, struct bytes message)
{
    const struct numbers numbers = take_numbers(p, message);
    const struct function function = {
        .name = find_text(p, numbers.of[2] != 0 ? numbers.of[2] : numbers.of[3]),
        .file = find_text(p, numbers.of[4])};
    import_need(p->import, map_u64_put(&p->function_of, numbers.of[1], (uint32_t)p->functions.len));
    import_need(p->import, function_vec_push(&p->functions, function));
}

// Add a function at a location.
static void
read_line(struct pprof *p, struct bytes message, struct rec_frame *frame, bool *has_name)
{
    struct symbols_vec *symbols = &p->import->b->symbols;
    const struct numbers numbers = take_numbers(p, message);
    const uint32_t *known = map_u64_find(&p->function_of, numbers.of[1]);
    require(p, known != NULL || numbers.of[1] == 0, "a function that is not in the file");
    if (known == NULL) {
        return;
    }
    import_need(p->import, symbols->len < REC_NONE ? ERR_OK : ERR_LIMIT);
    const struct function *function = &p->functions.items[*known];
    frame->symbol_count++;
    *has_name |= function->name != 0;
    const struct rec_symbol symbol = {.function = function->name,
                                      .file = function->file,
                                      .line =
                                          numbers.of[2] <= INT32_MAX ? (uint32_t)numbers.of[2] : 0};
    import_need(p->import, symbols_vec_push(symbols, symbol));
}

// Read a location. Its lines may precede or follow its numbers.
static void read_location(struct pprof *p, struct bytes message)
{
    struct recording_builder *b = p->import->b;
    struct cursor c = cursor_over(message);
    struct protobuf_field field;
    const struct numbers numbers = take_numbers(p, message);
    struct rec_frame frame = {.module = REC_NONE, .symbol_first = (uint32_t)b->symbols.len};
    bool has_name = false;
    while (protobuf_next(&c, &field)) {
        if (field.number == 4 && field.is_bytes) {
            read_line(p, field.bytes, &frame, &has_name);
        }
    }
    // A tool without all symbols leaves lines without functions: cairn looks the names up.
    if (!has_name) {
        b->symbols.len = frame.symbol_first;
        frame.symbol_count = 0;
    }
    const uint32_t *mapping = map_u64_find(&p->mapping_of, numbers.of[2]);
    frame.offset = numbers.of[3] + 1; // a return address, as in a recording
    if (mapping != NULL) {
        const struct mapped_file *file = &p->files.items[*mapping];
        frame.module = file->module;
        frame.offset -= file->module != REC_NONE ? file->base : 0;
    }
    import_need(p->import, b->frames.len < REC_NONE ? ERR_OK : ERR_LIMIT);
    import_need(p->import, map_u64_put(&p->frame_of, numbers.of[1], (uint32_t)b->frames.len));
    import_need(p->import, frames_vec_push(&b->frames, frame));
}

// The content of a sample.
struct sample {
    uint64_t values[ROLE_COUNT];
    uint64_t thread_id;
    rec_string thread_name;
};

static void read_values(struct pprof *p,
                        const struct protobuf_field *field,
                        size_t *count,
                        struct sample *sample)
{
    struct protobuf_numbers numbers = protobuf_numbers_of(field);
    uint64_t value;
    for (; protobuf_next_number(&numbers, &value); (*count)++) {
        require(p, value <= INT64_MAX, "a value below 0, as in the difference of two profiles");
        for (size_t role = 0; role < ROLE_COUNT; role++) {
            if (p->value_of[role] == *count) {
                sample->values[role] = value;
            }
        }
    }
    require(p, !numbers.packed.failed, "values that make no sense");
}

static void read_stack(struct pprof *p, const struct protobuf_field *field)
{
    struct protobuf_numbers numbers = protobuf_numbers_of(field);
    uint64_t id;
    while (protobuf_next_number(&numbers, &id)) {
        require(p, p->stack.len < STACK_MAX, "a stack that is too deep");
        import_need(p->import, u64_vec_push(&p->stack, id));
    }
    require(p, !numbers.packed.failed, "a stack that makes no sense");
}

// Read a label. cairn's own exports name the thread of a sample.
static void read_label(struct pprof *p, struct bytes message, struct sample *sample)
{
    const struct numbers numbers = take_numbers(p, message);
    const rec_string key = find_text(p, numbers.of[1]);
    if (strcmp(text_of(p, key), "thread_id") == 0) {
        sample->thread_id = numbers.of[3];
    }
    if (strcmp(text_of(p, key), "thread") == 0) {
        sample->thread_name = find_text(p, numbers.of[2]);
    }
}

static uint32_t find_thread(struct pprof *p, const struct sample *sample)
{
    struct recording_builder *b = p->import->b;
    uint64_t key = sample->thread_id << 32 | sample->thread_name;
    uint32_t thread;
    if (!map_u64_get(&p->thread_of, key, &thread)) {
        const char *name = key != 0 ? text_of(p, sample->thread_name) : "all threads";
        thread = import_thread(p->import, (uint32_t)sample->thread_id, name);
        b->meta.unknown &= ~(uint32_t)(key != 0 ? REC_UNKNOWN_THREADS : 0);
        import_need(p->import, map_u64_put(&p->thread_of, key, thread));
    }
    return thread;
}

static void add_sample(struct pprof *p, const struct sample *sample)
{
    uint32_t node = 0;
    for (size_t i = p->stack.len; i > 0; i--) {
        const uint32_t *frame = map_u64_find(&p->frame_of, p->stack.items[i - 1]);
        require(p, frame != NULL, "a location that is not in the file");
        node = import_node(p->import, node, *frame);
    }
    const uint32_t row = import_row(p->import, find_thread(p, sample), node);
    const struct import_counts counts = {.live_blocks = sample->values[ROLE_INUSE_OBJECTS],
                                         .live_bytes = sample->values[ROLE_INUSE_SPACE],
                                         .all_blocks = sample->values[ROLE_ALLOC_OBJECTS],
                                         .all_bytes = sample->values[ROLE_ALLOC_SPACE]};
    require(p, import_count(p->import, row, &counts), "the sums are more than possible");
}

static void read_sample(struct pprof *p, struct bytes message)
{
    struct cursor c = cursor_over(message);
    struct protobuf_field field;
    struct sample sample = {0};
    size_t count = 0;
    u64_vec_clear(&p->stack);
    while (protobuf_next(&c, &field)) {
        if (field.number == 1) {
            read_stack(p, &field);
        } else if (field.number == 2) {
            read_values(p, &field, &count, &sample);
        } else if (field.number == 3 && field.is_bytes) {
            read_label(p, field.bytes, &sample);
        }
    }
    require(p, !c.failed && count == p->types.len,
            "a sample with a different number of values than types");
    add_sample(p, &sample);
}

static void check_memory(struct pprof *p)
{
    enum {
        MAP_SLOT_BYTES = sizeof(uint64_t) + sizeof(uint32_t),
    };
    const struct map_u64 *maps[] = {&p->mapping_of, &p->function_of, &p->frame_of, &p->thread_of};
    uint64_t used_bytes = p->content.len + p->texts.cap * sizeof(uint32_t) +
                          p->functions.cap * sizeof(struct function) +
                          p->files.cap * sizeof(struct mapped_file);
    for (size_t i = 0; i < ARRAY_LEN(maps); i++) {
        used_bytes += maps[i]->slot_count * MAP_SLOT_BYTES;
    }
    p->since_check = 0;
    import_check_memory(p->import, used_bytes);
}

typedef void read_message(struct pprof *p, struct bytes message);

static void read_messages(struct pprof *p, enum profile_field wanted, read_message *read)
{
    struct cursor c = cursor_over(strbuf_bytes(&p->content));
    struct protobuf_field field;
    for (;;) {
        p->offset = cursor_offset(&c);
        if (!protobuf_next(&c, &field)) {
            break;
        }
        if (field.number == PROFILE_DURATION_NS) {
            p->duration_ns = field.value;
        } else if (field.number == PROFILE_PERIOD) {
            p->period = field.value;
        }
        if (field.number == wanted && field.is_bytes) {
            read(p, field.bytes);
            if (++p->since_check >= CHECK_INTERVAL) {
                check_memory(p);
            }
        }
    }
    require(p, !c.failed && !p->import->in->is_cut, "the file is truncated or damaged here");
}

// Set the figures that the file's kinds of values leave unknown.
static void check_types(struct pprof *p)
{
    struct rec_meta *meta = &p->import->b->meta;
    const uint32_t *at = p->value_of;
    bool has_inuse = at[ROLE_INUSE_SPACE] != REC_NONE;
    bool has_alloc = at[ROLE_ALLOC_SPACE] != REC_NONE && at[ROLE_ALLOC_OBJECTS] != REC_NONE;
    if (!has_inuse && !has_alloc) {
        const char *first =
            p->types.len > 0 ? text_of(p, (rec_string)p->types.items[0]) : "nothing";
        import_end(p->import, err_set(p->import->info, ERR_UNSUPPORTED,
                                      "'%s', offset 0: a profile of %.60s, not of the heap",
                                      p->import->in->path, first));
    }
    meta->unknown |= has_alloc ? 0 : REC_UNKNOWN_ALLOCATIONS;
    meta->unknown |= has_inuse ? 0 : REC_UNKNOWN_LEAKED;
    meta->unknown |= at[ROLE_INUSE_OBJECTS] != REC_NONE || !has_inuse ? 0 : REC_UNKNOWN_BLOCKS;
}

static void finish_recording(struct pprof *p)
{
    struct recording_builder *b = p->import->b;
    recording_builder_sum(b);
    if (p->duration_ns > 0 && p->duration_ns <= INT64_MAX) {
        b->meta.runtime_ms = p->duration_ns / NS_PER_MS;
        b->meta.unknown &= ~(uint32_t)REC_UNKNOWN_TIME;
    }
    if (p->period > 1) {
        import_note_sampling(p->import, p->period);
    }
}

static void read_pprof(struct import *import, void *state)
{
    struct pprof *p = state;
    static const struct {
        enum profile_field field;
        read_message *read;
    } steps[] = {
        {PROFILE_STRING, read_text},       {PROFILE_SAMPLE_TYPE, read_type},
        {PROFILE_MAPPING, read_mapping},   {PROFILE_FUNCTION, read_function},
        {PROFILE_LOCATION, read_location}, {PROFILE_SAMPLE, read_sample},
    };
    *p = (struct pprof){.import = import, .value_of = {REC_NONE, REC_NONE, REC_NONE, REC_NONE}};
    uint64_t limit_bytes = CONTENT_BASE_BYTES + import->in->file_bytes * CONTENT_RATIO;
    import_need(import, unpacked_all(import->in, limit_bytes, &p->content, import->info));
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        read_messages(p, steps[i].field, steps[i].read);
        check_memory(p);
        if (steps[i].field == PROFILE_SAMPLE_TYPE) {
            check_types(p);
        }
    }
    finish_recording(p);
}

// Return whether a field is two numbers: the texts of a type and of its unit.
static bool is_type(const struct protobuf_field *field)
{
    bool is_first = field->number == PROFILE_SAMPLE_TYPE || field->number == PROFILE_PERIOD_TYPE;
    if (!is_first || !field->is_bytes) {
        return false;
    }
    struct cursor c = cursor_over(field->bytes);
    struct protobuf_field number;
    size_t count = 0;
    for (; protobuf_next(&c, &number); count++) {
        if (number.is_bytes || number.number > 2) {
            return false;
        }
    }
    return !c.failed && count > 0;
}

// Recognize a profile. It has no magic number: it begins with a type of its values or of its
// period, and the rest of the head consists of fields of a profile.
static bool recognizes_pprof(struct bytes head)
{
    static const uint32_t messages = 1 << PROFILE_SAMPLE_TYPE | 1 << PROFILE_SAMPLE |
                                     1 << PROFILE_MAPPING | 1 << PROFILE_LOCATION |
                                     1 << PROFILE_FUNCTION | 1 << PROFILE_STRING |
                                     1 << PROFILE_PERIOD_TYPE;
    struct cursor c = cursor_over(head);
    struct protobuf_field field;
    size_t count = 0;
    for (; protobuf_next(&c, &field); count++) {
        bool is_profile = field.number <= PROFILE_FIELD_MAX &&
                          (field.number == PROFILE_COMMENT || // packed or not
                           field.is_bytes == ((messages >> field.number & 1) != 0));
        if (!is_profile || (count == 0 && !is_type(&field))) {
            return false;
        }
    }
    return count > 0;
}

const struct importer importer_pprof = {
    .name = "pprof",
    .phrase = "reading the profile",
    .unknown = REC_UNKNOWN_TEMPORARY | REC_UNKNOWN_PEAK | REC_UNKNOWN_OWN_PEAK | REC_UNKNOWN_TIME |
               REC_UNKNOWN_LIFETIMES | REC_UNKNOWN_THREADS | REC_UNKNOWN_NAMES,
    .recognizes = recognizes_pprof,
    .state_bytes = sizeof(struct pprof),
    .release = release_pprof,
    .read = read_pprof,
};
