// SPDX-License-Identifier: MIT
// importer: the common part of all imports. See importer.h.
#include "formats/import/importer.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hex.h"
#include "base/minmax.h"

enum {
    MEMORY_BASE_BYTES = 256 << 20,
    MEMORY_RATIO = 64, // bytes of tables for a byte of the packed file
};

void import_end(struct import *import, enum err err)
{
    import->outcome = err;
    longjmp(import->end, 1);
}

void import_refuse_line(struct import *import, enum err err, const char *why)
{
    import_end(import, err_set(import->info, err, "'%s', line %" PRIu64 ": %s", import->in->path,
                               import->in->line_number, why));
}

bool import_next_line(struct import *import, struct bytes *out)
{
    const enum err err = unpacked_line(import->in, out, import->info);
    import_need(import, err == ERR_NOT_FOUND ? ERR_OK : err);
    return err == ERR_OK && !import->in->is_line_cut;
}

rec_string import_string(struct import *import, struct bytes text)
{
    rec_string id;
    import_need(import, string_table_intern_prefix(&import->b->strings, text, &id));
    return id;
}

uint32_t import_module_of(struct import *import, rec_string path)
{
    uint32_t module;
    import_need(import, recording_builder_module_of(import->b, path, &module));
    return module;
}

uint32_t import_module(struct import *import, struct bytes path)
{
    return import_module_of(import, import_string(import, path));
}

uint32_t import_node(struct import *import, uint32_t parent, uint32_t frame)
{
    uint32_t node;
    import_need(import, recording_builder_node(import->b, parent, frame, &node));
    return node;
}

uint32_t import_row(struct import *import, uint32_t thread, uint32_t node)
{
    uint32_t row;
    import_need(import, recording_builder_row(import->b, thread, node, &row));
    return row;
}

uint32_t import_thread(struct import *import, uint32_t thread_id, const char *name)
{
    uint32_t thread;
    import_need(import, recording_builder_thread(import->b, 0, thread_id, name, &thread));
    return thread;
}

uint32_t import_frame(struct import *import, uint32_t module, uint64_t offset)
{
    uint32_t frame;
    import_need(import, recording_builder_frame(import->b, module, offset, NULL, 0, &frame));
    return frame;
}

bool import_take_text(struct bytes *text, const char *word)
{
    const size_t len = strlen(word);
    const bool is_there = text->len >= len && memcmp(text->data, word, len) == 0;
    if (is_there) {
        *text = (struct bytes){.data = text->data + len, .len = text->len - len};
    }
    return is_there;
}

bool import_take_number(struct bytes *text, unsigned base, uint64_t *out)
{
    const size_t most = base == 10 ? 18 : 16;
    uint64_t value = 0;
    size_t at = 0;
    for (; at < text->len; at++) {
        const int digit = hex_digit((char)text->data[at]);
        if (digit < 0 || (unsigned)digit >= base) {
            break;
        }
        if (at == most) {
            return false;
        }
        value = value * base + (unsigned)digit;
    }
    *text = (struct bytes){.data = text->data + at, .len = text->len - at};
    *out = value;
    return at > 0;
}

bool import_count(struct import *import, uint32_t row, const struct import_counts *counts)
{
    struct rec_row *to = &import->b->rows.items[row];
    struct rec_totals *totals = &import->b->totals; // bounds each row's sums, too
    const uint64_t blocks = max_u64(counts->all_blocks, counts->live_blocks);
    const uint64_t bytes = max_u64(counts->all_bytes, counts->live_bytes);
    if (__builtin_add_overflow(totals->allocations, blocks, &totals->allocations) ||
        __builtin_add_overflow(totals->allocated_bytes, bytes, &totals->allocated_bytes)) {
        return false;
    }
    to->allocations += blocks;
    to->allocated_bytes += bytes;
    to->frees += blocks - counts->live_blocks;
    to->freed_bytes += bytes - counts->live_bytes;
    return true;
}

void import_note(struct import *import, const char *name, uint64_t value, const char *text)
{
    struct rec_counter note = {.kind = REC_COUNTER_NOTE, .value = value};
    import_need(import, recording_builder_string(import->b, name, &note.name));
    import_need(import, recording_builder_string(import->b, text, &note.text));
    import_need(import, counters_vec_push(&import->b->counters, note));
}

void import_note_sampling(struct import *import, uint64_t period_bytes)
{
    import_note(import, "sampling_period_bytes", period_bytes,
                "all figures are estimates from samples, one in so many bytes");
}

static uint64_t builder_bytes(const struct recording_builder *b)
{
    enum {
        STRING_SLOT_BYTES = sizeof(uint32_t),
        MAP_SLOT_BYTES = sizeof(uint64_t) + sizeof(uint32_t),
    };
    uint64_t sum =
        b->strings.texts.cap + b->strings.entries.cap * sizeof(struct string_entry) +
        b->strings.slot_count * STRING_SLOT_BYTES +
        (b->module_of.slot_count + b->node_of.slot_count + b->row_of.slot_count) * MAP_SLOT_BYTES;
#define X(type, name, count) sum += b->name.cap * sizeof(struct type);
    REC_TABLES(X)
#undef X
    return sum;
}

void import_check_memory(struct import *import, uint64_t used_bytes)
{
    if (used_bytes + builder_bytes(import->b) > import->max_bytes) {
        import_end(import,
                   err_set(import->info, ERR_LIMIT,
                           "'%s', line %" PRIu64 ": up to here the file asks for more than the "
                           "%" PRIu64 " MiB of memory that one of its size may",
                           import->in->path, import->in->line_number, import->max_bytes >> 20));
    }
}

// Count the frames of each module in its entry.
static void count_frames(struct recording_builder *b)
{
    for (size_t i = 0; i < b->frames.len; i++) {
        const struct rec_frame *frame = &b->frames.items[i];
        if (frame->module == REC_NONE) {
            continue;
        }
        struct rec_module *module = &b->modules.items[frame->module];
        module->frames++;
        if (frame->symbol_count > 0) {
            const struct rec_symbol *first = &b->symbols.items[frame->symbol_first];
            module->frames_with_function += first[frame->symbol_count - 1].function != 0;
            module->frames_with_line += first->line != 0;
        }
    }
}

static void
read_all(const struct importer *importer, struct import *import, void *state, struct recording *out)
{
    struct recording_builder *b = import->b;
    uint32_t process;
    import_need(import, recording_builder_init(b));
    b->meta.exit_status = -1;
    b->meta.state = REC_STATE_FINISHED;
    b->meta.unknown = importer->unknown;
    import_need(import, recording_builder_string(b, importer->name, &b->meta.source_format));
    import_need(import, recording_builder_process(b, 0, "", &process));
    b->processes.items[process].flags = REC_PROCESS_MAIN;
    importer->read(import, state);
    struct rec_process *main_process = &b->processes.items[process];
    main_process->executable = b->meta.program;
    main_process->command_line = b->meta.command_line;
    main_process->pid = b->meta.pid;
    count_frames(b);
    import_need(import, recording_builder_finish(b, out));
}

// Read all, or up to what ends the import. This function has no variables that could be lost then.
static void read_to_end(const struct importer *importer,
                        struct import *import,
                        void *state,
                        struct recording *out)
{
    if (setjmp(import->end) == 0) {
        read_all(importer, import, state, out);
    }
}

enum err importer_read(const struct importer *importer,
                       struct unpacked *in,
                       struct recording *out,
                       char *damage,
                       struct err_info *info)
{
    CLEANUP(recording_builder_release) struct recording_builder b = {0};
    uint64_t ratio_bytes = in->file_bytes < (UINT64_C(1) << 50) ? in->file_bytes * MEMORY_RATIO : 0;
    struct err_info said = {0};
    struct import import = {
        .in = in, .b = &b, .info = &said, .max_bytes = MEMORY_BASE_BYTES + ratio_bytes};
    void *state = calloc(1, importer->state_bytes);
    in->phrase = importer->phrase;
    if (state != NULL) {
        read_to_end(importer, &import, state, out);
        importer->release(state);
        free(state);
    }
    enum err err = state != NULL ? import.outcome : ERR_NO_MEMORY;
    if (err != ERR_OK && said.text[0] == '\0') { // only tables and strings fail without a sentence
        err =
            err_set(&said, err, "%s '%s'",
                    err == ERR_NO_MEMORY ? "not enough memory for" : "too much data in", in->path);
    }
    if (err == ERR_OK) {
        (void)snprintf(damage, IMPORT_DAMAGE_BYTES, "%s", import.damage); // fits
    } else if (info != NULL) {
        *info = said;
    }
    return err;
}
