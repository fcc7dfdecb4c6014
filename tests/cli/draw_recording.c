// SPDX-License-Identifier: MIT
// draw_recording: writes a recording from a drawing in text, for tests of the command line.
//
//   draw_recording OUT < DRAWING
//
// recording_text.h describes the drawing. These lines are accepted besides; each sets a value that
// a drawing cannot have:
//   !peak_time_ms N   !peak_error_bytes N   !runtime_ms N   !unknown_frees N   !start_unix_ms N
//   !unsampled_allocations N     !unsampled_bytes N     !max_weight N
//   !allocations N   !allocated_bytes N   !frees N   !freed_bytes N   !temporary N
//   !temporary_bytes N   !peak_bytes N   !peak_blocks N
//   !represented_allocations N   !represented_bytes N   !sampled_allocations N   !unsampled_frees N
//   !peak_standard_error_bytes N   !peak_at_least_bytes N   !sample_bytes N   !interval_bytes N
//   !events N   !unknown FLAGS   !format TEXT, the source's
//   !wait_status N    !state N              !program TEXT   !command_line TEXT !host TEXT
//   !loss NAME VALUE TEXT                   !note NAME VALUE TEXT
//   !suppressions RULES, a line feed being 03, as below
//   !advice MODULE-INDEX TEXT               !rss TIME_MS PROCESS-INDEX BYTES
//     and perhaps the 9 figures that follow in struct rec_rss_sample
//   !mark TIME_MS TEXT                      !flags PROCESS-INDEX FLAGS
//   !phase TIME_MS TEXT                     !started TIME_MS    !stopped TIME_MS
//   !hook PROCESSES MODULE FUNCTION ALLOCATOR REASON          "-": none
//   !allocator PROCESS-INDEX PATH          !runtime PROCESS-INDEX KEY
//   !process_peak PROCESS-INDEX BYTES
//   !lived PROCESS-INDEX PID PARENT-INDEX START_MS END_MS    the process, its threads and allocator
//   !joined THREAD-INDEX COUNT
//   !machine PID CPUS MEMORY_BYTES INTERVAL_MS                and the names of its kernel and libc
//   !built MODULE-INDEX BUILD-ID                              also the file with its names
//   !snapshot, !fragments, !survivor and !part, whose numbers are at the functions that read them
//   !unrecorded PID EXECS DESCENDANTS PROGRAM REASON TEXT
//   !merged FRAME-INDEX, which is the mark of stacks that were merged
// Names cannot hold the characters that end them: the bytes 02 and 03 mean a semicolon and a line
// feed.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/strbuf.h"
#include "recording/test_support/recording_text.h"
#include "recording/write/recording_writer.h"

static void check(enum err problem, const struct err_info *info)
{
    if (problem != ERR_OK) {
        (void)fprintf(stderr, "draw_recording: %s: %s\n", err_name(problem), info->text);
        exit(1);
    }
}

static rec_string intern(struct recording_builder *b, const char *text)
{
    struct err_info info = {.text = "string"};
    rec_string id = 0;
    check(recording_builder_string(b, text, &id), &info);
    return id;
}

static bool set_number(struct recording_builder *b, const char *key, int64_t value)
{
    const struct {
        const char *key;
        uint64_t *field;
    } fields[] = {
        {"peak_time_ms", &b->totals.peak_time_ms},
        {"peak_error_bytes", &b->totals.peak_error_bytes},
        {"peak_flight_bytes", &b->totals.peak_flight_bytes},
        {"peak_bytes", &b->totals.peak_bytes},
        {"peak_blocks", &b->totals.peak_blocks},
        {"allocations", &b->totals.allocations},
        {"allocated_bytes", &b->totals.allocated_bytes},
        {"frees", &b->totals.frees},
        {"freed_bytes", &b->totals.freed_bytes},
        {"temporary", &b->totals.temporary},
        {"temporary_bytes", &b->totals.temporary_bytes},
        {"unknown_frees", &b->totals.unknown_frees},
        {"unsampled_allocations", &b->totals.unsampled_allocations},
        {"unsampled_bytes", &b->totals.unsampled_bytes},
        {"represented_allocations", &b->totals.represented_allocations},
        {"represented_bytes", &b->totals.represented_bytes},
        {"max_weight", &b->totals.max_weight},
        {"peak_standard_error_bytes", &b->totals.peak_standard_error_bytes},
        {"events", &b->totals.events},
        {"unsampled_frees", &b->totals.unsampled_frees},
        {"sampled_allocations", &b->totals.sampled_allocations},
        {"peak_at_least_bytes", &b->totals.peak_at_least_bytes},
        {"sample_bytes", &b->totals.sample_bytes},
        {"interval_bytes", &b->totals.interval_bytes},
        {"runtime_ms", &b->meta.runtime_ms},
    };
    for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
        if (strcmp(key, fields[i].key) == 0) {
            *fields[i].field = (uint64_t)value;
            return true;
        }
    }
    if (strcmp(key, "start_unix_ms") == 0) {
        b->meta.start_unix_ns = (uint64_t)value * 1000000;
    } else if (strcmp(key, "wait_status") == 0) {
        b->meta.exit_status = (int32_t)value;
    } else if (strcmp(key, "state") == 0) {
        b->meta.state = (uint32_t)value;
    } else if (strcmp(key, "unknown") == 0) {
        b->meta.unknown = (uint32_t)value;
    } else {
        return false;
    }
    return true;
}

static void set_counter(struct recording_builder *b, const char *rest, enum rec_counter_kind kind)
{
    char name[64];
    int text_at = 0;
    struct rec_counter counter = {.kind = kind};
    if (sscanf(rest, "%63s %" SCNu64 " %n", name, &counter.value, &text_at) != 2) {
        check(ERR_INVALID, &(struct err_info){.text = "counter"});
    }
    counter.name = intern(b, name);
    counter.text = intern(b, rest + text_at);
    check(counters_vec_push(&b->counters, counter), &(struct err_info){.text = "counter"});
}

static void set_sample(struct recording_builder *b, const char *rest)
{
    struct rec_rss_sample s = {0};
    const int count =
        sscanf(rest,
               "%" SCNu64 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
               &s.time_ms, &s.process, &s.rss_bytes, &s.anonymous_bytes, &s.file_bytes,
               &s.shmem_bytes, &s.swap_bytes, &s.minor_faults, &s.major_faults, &s.break_bytes,
               &s.data_bytes, &s.mapped_bytes);
    if (count != 3 && count != 12) {
        check(ERR_INVALID, &(struct err_info){.text = "sample"});
    }
    check(rss_samples_vec_push(&b->rss_samples, s), &(struct err_info){.text = "sample"});
}

// Parse "TIME_MS PROCESS FLAGS", then the bytes of each kind.
static void set_snapshot(struct recording_builder *b, const char *rest)
{
    struct rec_memory_snapshot l = {0};
    if (sscanf(rest,
               "%" SCNu64 " %" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64
               " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
               &l.time_ms, &l.process, &l.flags, &l.live_bytes, &l.rounding_bytes, &l.kept_bytes,
               &l.mapped_bytes, &l.stack_bytes, &l.file_bytes, &l.shared_bytes, &l.own_bytes,
               &l.rest_bytes) != 12) {
        check(ERR_INVALID, &(struct err_info){.text = "snapshot"});
    }
    l.rss_bytes = l.live_bytes + l.rounding_bytes + l.kept_bytes + l.mapped_bytes + l.stack_bytes +
                  l.file_bytes + l.shared_bytes + l.own_bytes + l.rest_bytes;
    l.requested_bytes = 2 * l.live_bytes;
    check(memory_snapshots_vec_push(&b->memory_snapshots, l),
          &(struct err_info){.text = "snapshot"});
}

// Parse "LOOK KIND NODE RSS VIRTUAL PATH"; NODE 0: unknown.
static void set_part(struct recording_builder *b, const char *rest)
{
    struct rec_part part = {.areas = 1};
    int path = 0;
    if (sscanf(rest, "%" SCNu32 " %" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %n",
               &part.snapshot, &part.kind, &part.node, &part.rss_bytes, &part.virtual_bytes,
               &path) != 5) {
        check(ERR_INVALID, &(struct err_info){.text = "part"});
    }
    part.node = part.node == 0 ? REC_NONE : part.node;
    part.path = intern(b, rest + path);
    check(parts_vec_push(&b->parts, part), &(struct err_info){.text = "part"});
}

// Parse "LOOK EMPTY-PAGES SPARSE-PAGES SPARSE-BLOCKS SWAP", in bytes.
static void set_fragments(struct recording_builder *b, const char *rest)
{
    uint32_t look;
    struct rec_memory_snapshot f;
    if (sscanf(rest, "%" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64, &look,
               &f.empty_page_bytes, &f.sparse_page_bytes, &f.sparse_block_bytes,
               &f.swap_bytes) != 5) {
        check(ERR_INVALID, &(struct err_info){.text = "fragments"});
    }
    struct rec_memory_snapshot *snapshot = &b->memory_snapshots.items[look];
    snapshot->empty_page_bytes = f.empty_page_bytes;
    snapshot->sparse_page_bytes = f.sparse_page_bytes;
    snapshot->sparse_block_bytes = f.sparse_block_bytes;
    snapshot->swap_bytes = f.swap_bytes;
}

// Parse "LOOK NODE BLOCKS BLOCK-BYTES HELD-BYTES OLDEST-MS NEWEST-MS".
static void set_survivor(struct recording_builder *b, const char *rest)
{
    struct rec_survivor s = {0};
    if (sscanf(rest,
               "%" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64 " %" SCNu64,
               &s.snapshot, &s.node, &s.blocks, &s.block_bytes, &s.held_bytes, &s.oldest_ms,
               &s.newest_ms) != 7) {
        check(ERR_INVALID, &(struct err_info){.text = "survivor"});
    }
    check(survivors_vec_push(&b->survivors, s), &(struct err_info){.text = "survivor"});
}

// Parse "PID EXECS DESCENDANTS PROGRAM REASON TEXT".
static void set_unrecorded(struct recording_builder *b, const char *rest)
{
    struct rec_unrecorded u = {0};
    char program[64];
    char reason[64];
    int text = 0;
    if (sscanf(rest, "%" SCNu32 " %" SCNu64 " %" SCNu64 " %63s %63s %n", &u.pid, &u.execs,
               &u.descendants, program, reason, &text) != 5) {
        check(ERR_INVALID, &(struct err_info){.text = "unrecorded"});
    }
    u.program = intern(b, program);
    u.reason = intern(b, reason);
    u.text = intern(b, rest + text);
    check(unrecorded_vec_push(&b->unrecorded, u), &(struct err_info){.text = "unrecorded"});
}

static void set_process_peak(struct recording_builder *b, const char *rest)
{
    uint32_t process;
    uint64_t peak_bytes;
    if (sscanf(rest, "%" SCNu32 " %" SCNu64, &process, &peak_bytes) != 2 ||
        process >= b->processes.len) {
        check(ERR_INVALID, &(struct err_info){.text = "process_peak"});
        return;
    }
    b->processes.items[process].peak_bytes = peak_bytes;
}

static void set_flags(struct recording_builder *b, const char *rest)
{
    uint32_t process;
    uint32_t flags;
    if (sscanf(rest, "%" SCNu32 " %" SCNu32, &process, &flags) != 2) {
        check(ERR_INVALID, &(struct err_info){.text = "flags"});
    }
    b->processes.items[process].flags = flags;
}

// What the process and its threads have besides depends on its index, so that no two figures are
// equal.
static void set_life(struct recording_builder *b, const char *rest)
{
    uint32_t index;
    int32_t parent;
    struct rec_process life = {0};
    if (sscanf(rest, "%" SCNu32 " %" SCNu32 " %" SCNd32 " %" SCNu64 " %" SCNu64, &index, &life.pid,
               &parent, &life.start_ms, &life.end_ms) != 5 ||
        index >= b->processes.len || parent >= (int32_t)b->processes.len) {
        check(ERR_INVALID, &(struct err_info){.text = "lived"});
        return;
    }
    struct rec_process *process = &b->processes.items[index];
    process->pid = life.pid;
    process->parent = parent < 0 ? REC_NONE : (uint32_t)parent;
    process->parent_pid = parent < 0 ? 77 : b->processes.items[parent].pid;
    process->start_ms = life.start_ms;
    process->end_ms = life.end_ms;
    process->exit_status = (int32_t)(index + 1) << 8;
    process->peak_rss_bytes = (index + UINT64_C(3)) * 1000003;
    process->killed_threads = index + 2;
    process->epoch = parent >= 0 && process->parent_pid == life.pid ? 1 : 0;
    process->allocator = intern(b, index % 2 == 0 ? "/lib/libfast.so" : "/lib/libc.so.6");
    process->command_line = intern(b, index % 2 == 0 ? "run 'a b'" : "work --hard");
    for (uint32_t i = 0; i < b->threads.len; i++) {
        struct rec_thread *thread = &b->threads.items[i];
        if (thread->process == index) {
            thread->thread_id = life.pid + i;
            thread->start_ms = life.start_ms + i;
            thread->end_ms = life.end_ms - i - 1;
        }
    }
}

// One entry stands for so many threads.
static void set_joined(struct recording_builder *b, const char *rest)
{
    uint32_t thread;
    uint32_t count;
    if (sscanf(rest, "%" SCNu32 " %" SCNu32, &thread, &count) != 2 || thread >= b->threads.len) {
        check(ERR_INVALID, &(struct err_info){.text = "joined"});
        return;
    }
    b->threads.items[thread].flags = REC_THREAD_MERGED;
    b->threads.items[thread].merged_count = count;
}

static void set_machine(struct recording_builder *b, const char *rest)
{
    if (sscanf(rest, "%" SCNu32 " %" SCNu32 " %" SCNu64 " %" SCNu64, &b->meta.pid,
               &b->meta.cpu_count, &b->meta.memory_bytes, &b->meta.checkpoint_interval_ms) != 4) {
        check(ERR_INVALID, &(struct err_info){.text = "machine"});
    }
    b->meta.checkpoint_count = b->meta.cpu_count + 1;
    b->meta.tool_version = intern(b, "0.9.7");
    b->meta.kernel = intern(b, "Linux 6.1.2 x86_64");
    b->meta.libc = intern(b, "glibc 2.36");
}

static void set_built(struct recording_builder *b, const char *rest)
{
    char *build_id;
    const size_t index = strtoul(rest, &build_id, 10);
    if (index >= b->modules.len || *build_id != ' ') {
        check(ERR_INVALID, &(struct err_info){.text = "built"});
        return;
    }
    struct rec_module *module = &b->modules.items[index];
    module->build_id = intern(b, build_id + 1);
    module->symbol_source = intern(b, "/usr/lib/debug/names");
    module->is_executable = index == 0;
}

static void set_merged(struct recording_builder *b, const char *rest)
{
    struct rec_frame *frame = &b->frames.items[strtoul(rest, NULL, 10)];
    frame->flags |= REC_FRAME_CUT;
    frame->offset = REC_CUT_MERGED;
}

// Parse "TIME_MS TEXT".
static void add_mark(struct recording_builder *b, const char *rest, enum rec_mark_kind kind)
{
    char *text;
    struct rec_mark mark = {.time_ms = strtoull(rest, &text, 10), .kind = kind};
    mark.text = intern(b, text + (*text == ' '));
    check(marks_vec_push(&b->marks, mark), &(struct err_info){.text = "mark"});
}

static void set_mark(struct recording_builder *b, const char *rest)
{
    add_mark(b, rest, REC_MARK_USER);
}

static void set_started(struct recording_builder *b, const char *rest)
{
    add_mark(b, rest, REC_MARK_START);
}

static void set_stopped(struct recording_builder *b, const char *rest)
{
    add_mark(b, rest, REC_MARK_STOP);
}

static void set_phase(struct recording_builder *b, const char *rest)
{
    add_mark(b, rest, REC_MARK_PHASE);
}

static rec_string intern_word(struct recording_builder *b, const char *word)
{
    return intern(b, strcmp(word, "-") == 0 ? "" : word);
}

// Parse "PROCESSES MODULE FUNCTION ALLOCATOR REASON"; "-": none.
static void set_hook(struct recording_builder *b, const char *rest)
{
    char words[3][64];
    int reason = 0;
    struct rec_hook hook = {0};
    if (sscanf(rest, "%" SCNu32 " %63s %63s %63s %n", &hook.processes, words[0], words[1], words[2],
               &reason) != 4) {
        check(ERR_INVALID, &(struct err_info){.text = "hook"});
    }
    hook.module = intern_word(b, words[0]);
    hook.function = intern_word(b, words[1]);
    hook.allocator = intern_word(b, words[2]);
    hook.reason = intern_word(b, rest + reason);
    check(hooks_vec_push(&b->hooks, hook), &(struct err_info){.text = "hook"});
}

// Return the process of "INDEX TEXT", and the text.
static struct rec_process *
process_of(struct recording_builder *b, const char *rest, const char *key, char **text)
{
    const size_t index = strtoul(rest, text, 10);
    if (index >= b->processes.len || **text != ' ') {
        struct err_info info;
        check(err_set(&info, ERR_INVALID, "%s", key), &info);
        return NULL;
    }
    (*text)++;
    return &b->processes.items[index];
}

static void set_allocator(struct recording_builder *b, const char *rest)
{
    char *path;
    struct rec_process *process = process_of(b, rest, "allocator", &path);
    if (process != NULL) {
        process->allocator = intern(b, path);
    }
}

static void set_runtime(struct recording_builder *b, const char *rest)
{
    char *runtime;
    struct rec_process *process = process_of(b, rest, "runtime", &runtime);
    if (process != NULL) {
        process->runtime = intern(b, runtime);
    }
}

// Apply one "!KEY REST" line after the drawing was read.
static void apply(struct recording_builder *b, char *line)
{
    static const struct {
        const char *key;
        void (*set)(struct recording_builder *b, const char *rest);
    } settings[] = {
        {"rss", set_sample},          {"mark", set_mark},
        {"started", set_started},     {"stopped", set_stopped},
        {"phase", set_phase},         {"hook", set_hook},
        {"allocator", set_allocator}, {"snapshot", set_snapshot},
        {"part", set_part},           {"fragments", set_fragments},
        {"survivor", set_survivor},   {"unrecorded", set_unrecorded},
        {"flags", set_flags},         {"process_peak", set_process_peak},
        {"lived", set_life},          {"machine", set_machine},
        {"joined", set_joined},       {"built", set_built},
        {"merged", set_merged},       {"runtime", set_runtime},
    };
    char *rest = strchr(line, ' ');
    if (rest == NULL) {
        check(ERR_INVALID, &(struct err_info){.text = "a ! line needs a value"});
        return;
    }
    *rest++ = '\0';
    for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
        if (strcmp(line, settings[i].key) == 0) {
            settings[i].set(b, rest);
            return;
        }
    }
    if (strcmp(line, "suppressions") == 0) {
        b->meta.suppressions = intern(b, rest);
    } else if (strcmp(line, "program") == 0) {
        b->meta.program = intern(b, rest);
    } else if (strcmp(line, "command_line") == 0) {
        b->meta.command_line = intern(b, rest);
    } else if (strcmp(line, "format") == 0) {
        b->meta.source_format = intern(b, rest);
    } else if (strcmp(line, "host") == 0) {
        b->meta.host = intern(b, rest);
    } else if (strcmp(line, "loss") == 0) {
        set_counter(b, rest, REC_COUNTER_LOSS);
    } else if (strcmp(line, "note") == 0) {
        set_counter(b, rest, REC_COUNTER_NOTE);
    } else if (strcmp(line, "advice") == 0) {
        char *text;
        size_t module = strtoul(rest, &text, 10);
        b->modules.items[module].symbol_advice = intern(b, text + 1);
    } else if (!set_number(b, line, strtoll(rest, NULL, 10))) {
        check(ERR_INVALID, &(struct err_info){.text = "unknown ! line"});
    }
}

static void put_separators(struct string_table *strings)
{
    for (size_t i = 0; i < strings->texts.len; i++) {
        char *byte = &strings->texts.items[i];
        *byte = *byte == 2 ? ';' : *byte == 3 ? '\n' : *byte;
    }
}

int main(int argc, char **argv)
{
    enum {
        DRAWING_MAX_BYTES = 64 << 20
    };
    struct err_info info = {0};
    CLEANUP(strbuf_release) struct strbuf input = {0};
    CLEANUP(strbuf_release) struct strbuf drawing = {0};
    CLEANUP(strbuf_release) struct strbuf settings = {0};
    if (argc != 2) {
        (void)fprintf(stderr, "usage: draw_recording OUT < DRAWING\n");
        return 2;
    }
    check(file_read_fd(0, "stdin", DRAWING_MAX_BYTES, &input, &info), &info);
    char *rest = input.data;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        strbuf_printf(line[0] == '!' ? &settings : &drawing, "%s\n", line);
    }

    CLEANUP(recording_builder_release) struct recording_builder b = {0};
    check(recording_builder_init(&b), &info);
    b.meta = (struct rec_meta){.state = REC_STATE_FINISHED, .exit_status = 0, .max_frames = 256};
    b.meta.source_format = intern(&b, "cairn");
    check(recording_builder_text(&b, strbuf_text(&drawing), &info), &info);
    rest = settings.data;
    for (char *line = strsep(&rest, "\n"); line != NULL; line = strsep(&rest, "\n")) {
        if (line[0] == '!') {
            apply(&b, line + 1);
        }
    }
    put_separators(&b.strings);
    CLEANUP(recording_release) struct recording recording = {0};
    check(recording_builder_finish(&b, &recording), &info);
    check(recording_write(&recording, argv[1], NULL, &info), &info);
    return 0;
}
