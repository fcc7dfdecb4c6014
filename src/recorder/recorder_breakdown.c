// SPDX-License-Identifier: MIT
#include "recorder/recorder_breakdown.h"

#include <string.h>

#include "aggregate/aggregator_process.h"
#include "aggregate/books/listed_walk.h"
#include "base/clock.h"
#include "base/minmax.h"
#include "host/containers/map_u64.h"
#include "host/memory/page_size.h"
#include "host/os/file.h"
#include "recorder/ingest/drain_books.h"
#include "recorder/session/book_reader.h"

enum {
    // about the size of glibc's struct pthread, which ends a thread's stack
    DESCRIPTOR_BYTES = 2304,
    WAITING_DIVISOR = 25, // waiting costs this part of what working does
    CATCH_UP_MS = 20,     // for what threads had sent when a map was read
    BOOK_TURNS = 40,      // of a millisecond or more, for what they had counted
    JUDGED_MS = 10,       // of looks whether the heap is the same
};

struct expense expense_begin(const struct recorder_state *s)
{
    return (struct expense){.began_ns = clock_monotonic_ns(),
                            .processor_ns = clock_thread_cpu_ns(),
                            .served_ns = s->served_ns};
}

uint64_t expense_ns(const struct recorder_state *s, const struct expense *expense)
{
    const uint64_t own_ns = clock_thread_cpu_ns() - expense->processor_ns;
    const uint64_t served_ns = s->served_ns - expense->served_ns;
    const uint64_t waited_ns = (clock_monotonic_ns() - expense->began_ns) / WAITING_DIVISOR;
    return max_u64(excess_u64(own_ns, served_ns) + expense->aside_ns, waited_ns);
}

static enum err list_ended(const struct recorder_state *s, struct map_u64 *out)
{
    for (size_t i = 0; i < s->attached.len; i++) {
        const struct attached_process *process = s->attached.items + i;
        if (process->has_ended) {
            TRY(map_u64_put(out, (uint64_t)process->attach->inject.target.pid, 1));
        }
    }
    return ERR_OK;
}

// Add those that have not joined yet. A process that was attached to and has ended is not awaited,
// although it did not join.
static enum err add_awaited(const struct recorder_state *s, struct living_process_vec *out)
{
    CLEANUP(map_u64_release) struct map_u64 ended = {0};
    TRY(s->drain.awaited.len > 0 ? list_ended(s, &ended) : ERR_OK);
    for (size_t i = 0; i < s->drain.awaited.len; i++) {
        struct aggregator_process *process = s->drain.awaited.items[i].process;
        if (!process->is_unread && map_u64_find(&ended, process->record.pid) == NULL) {
            TRY(living_process_vec_push(out,
                                        (struct living_process){.process = process,
                                                                .pid = (pid_t)process->record.pid,
                                                                .slot = SESSION_MAX_PROCESSES}));
        }
    }
    return ERR_OK;
}

enum err recorder_living(const struct recorder_state *s, struct living_process_vec *out)
{
    for (uint32_t slot = 0; slot < s->drain.slot_count; slot++) {
        const struct drain_process *process = s->drain.processes + slot;
        if (process->aggregator != NULL && !process->is_dead && !process->aggregator->is_unread) {
            TRY(living_process_vec_push(out, (struct living_process){.process = process->aggregator,
                                                                     .pid = process->pid,
                                                                     .slot = slot}));
        }
    }
    return add_awaited(s, out);
}

bool recorder_find_again(const struct recorder_state *s, struct living_process *living)
{
    for (uint32_t slot = 0; slot < s->drain.slot_count; slot++) {
        const struct drain_process *process = s->drain.processes + slot;
        if (process->aggregator == living->process) {
            living->slot = slot;
            return !process->is_dead;
        }
    }
    return living->slot == SESSION_MAX_PROCESSES && !living->process->is_ended;
}

// Collect the memory that the preload library has noted as its own. The program may have
// overwritten the notes: ranges are only compared with the kernel's.
static enum err
own_ranges(const struct recorder_state *s, uint32_t slot, struct address_range_vec *out)
{
    if (slot == SESSION_MAX_PROCESSES) {
        return ERR_OK; // it has not joined
    }
    const struct process_notes *notes = session_notes(s->session.memory, slot);
    for (uint32_t i = 0; i < PAGE_NOTES_MAX; i++) {
        const uint64_t note = atomic_load_explicit(&notes->ranges[i], memory_order_relaxed);
        const uint64_t start = (note >> PAGE_NOTE_GRAINS_BITS) * PAGE_GRAIN;
        const uint64_t grains = note & (((uint64_t)1 << PAGE_NOTE_GRAINS_BITS) - 1);
        if (note != 0) {
            TRY(address_range_vec_push(
                out, (struct address_range){.start = start,
                                            .end = page_end(start + grains * PAGE_GRAIN)}));
        }
    }
    return ERR_OK;
}

// Collect the ends of the stacks of threads with lanes. A thread's descriptor is at the top of its
// stack; that of the first thread is elsewhere.
static enum err stack_tops(const struct recorder_state *s, uint32_t slot, struct u64_vec *out)
{
    const struct drain *drain = &s->drain;
    for (uint32_t i = 0; i < drain->active_count; i++) {
        const struct drain_lane *lane = drain->lanes[drain->active[i]];
        const uint32_t thread_id = lane->reader.thread.thread_id;
        const bool is_first =
            thread_id != 0 && thread_id == drain->processes[lane->process].inner_pid;
        if (lane->process == slot && !is_first) {
            const uint64_t self = lane->reader.consumer.lane->self_address;
            TRY(u64_vec_push(out, page_end(self + DESCRIPTOR_BYTES)));
        }
    }
    return ERR_OK;
}

// The process whose snapshot is taken.
struct subject {
    struct recorder_state *s;
    struct living_process living;
    struct map_reading reading;
    struct address_range_vec own;
    uint64_t listed_changes; // blocks that changed while they were listed
    uint64_t live_bytes;     // when its map was read
    uint64_t mapped_bytes;
    struct block_words_places *places; // owned; where its blocks have been
    uint64_t late_bytes;               // of its shared pages, as shared_claim has it
};

static void subject_release(struct subject *subject)
{
    map_reading_release(&subject->reading);
    address_range_vec_release(&subject->own);
    block_words_places_free(subject->places);
}

static bool is_still_there(struct subject *subject)
{
    return recorder_find_again(subject->s, &subject->living);
}

// Others shall not wait for a process with a long map or many blocks. Return as rss_process.pause.
static uint64_t drain_meanwhile(void *context)
{
    struct subject *subject = context;
    const struct drain *drain = &subject->s->drain;
    const uint64_t begun_ns = clock_thread_cpu_ns();
    const uint64_t before = drain_changes_of(drain, subject->living.slot);
    (void)!recorder_drain(subject->s); // a failure is seen at the next one
    subject->s->served_ns += clock_thread_cpu_ns() - begun_ns;
    return is_still_there(subject) ? drain_changes_of(drain, subject->living.slot) - before
                                   : LISTED_WALK_GONE;
}

// Note what the threads have sent by now, and what they have counted and not sent.
static void note_backlog(struct recorder_state *s)
{
    for (uint32_t i = 0; i < s->drain.active_count; i++) {
        struct drain_lane *lane = s->drain.lanes[s->drain.active[i]];
        struct lane_header *header = lane->reader.consumer.lane;
        // Relaxed: only compared; the program may write anything there.
        lane->snapshot_pos = atomic_load_explicit(&header->write_pos, memory_order_relaxed);
        lane->book_ms = book_reader_unsent_since(header);
    }
}

// Return whether events of before still wait in a lane. A program that writes nonsense there has
// its snapshots unjudged.
static bool waits_in_ring(const struct drain_lane *lane)
{
    return lane->reader.consumer.read_pos < lane->snapshot_pos;
}

// Return the same for the book of its thread.
static bool waits_in_book(const struct drain_lane *lane)
{
    return lane->book_ms != UINT64_MAX &&
           book_reader_unsent_since(lane->reader.consumer.lane) == lane->book_ms;
}

static bool has_backlog(const struct recorder_state *s, bool (*waits)(const struct drain_lane *))
{
    for (uint32_t i = 0; i < s->drain.active_count; i++) {
        const struct drain_lane *lane = s->drain.lanes[s->drain.active[i]];
        if (!lane->is_corrupt && waits(lane)) {
            return true;
        }
    }
    return false;
}

// Count what the threads had sent by now.
static void catch_up(struct subject *subject)
{
    struct recorder_state *s = subject->s;
    const uint64_t end_ms = clock_monotonic_ms() + CATCH_UP_MS;
    note_backlog(s);
    while (has_backlog(s, waits_in_ring) && s->clock.is_running && clock_monotonic_ms() < end_ms) {
        (void)drain_meanwhile(subject);
    }
}

// Count what threads have in their books, before a map is read. The book of a thread that sleeps
// would be taken during the split, and look like so many changes of the heap. On a busy machine the
// recorder can be so late that a thread has done all its work since the last pass.
static void await_books(struct recorder_state *s)
{
    note_backlog(s);
    for (uint32_t turn = 0; turn < BOOK_TURNS && has_backlog(s, waits_in_book) &&
                            s->clock.is_running && !s->is_stopped;
         turn++) {
        const uint64_t begun_ns = clock_thread_cpu_ns();
        (void)!recorder_drain(s); // a failure is seen at the next one
        s->served_ns += clock_thread_cpu_ns() - begun_ns;
        clock_sleep_ns(NS_PER_MS);
    }
}

// After a step: note a process that did not let itself be read. Return whether it was read, and is
// still there.
static bool was_read(struct subject *subject, enum err err)
{
    recorder_note_unread(subject->s, subject->living.process, subject->living.pid, err);
    return err == ERR_OK && is_still_there(subject);
}

// Read the map of a process, and count what it had done by then.
static bool read_map(struct subject *subject)
{
    if (!is_still_there(subject) ||
        !was_read(subject, recorder_read_map(subject->s, &subject->reading))) {
        return false;
    }
    catch_up(subject);
    subject->live_bytes = subject->living.process->live_bytes;
    subject->mapped_bytes = subject->living.process->mapped_bytes;
    subject->late_bytes = proc_sampler_late_bytes(subject->living.pid, subject->living.process);
    return is_still_there(subject);
}

// Read what the snapshot needs of a process besides its map and its pages. What an allocator says
// of its heap matters only if the recorder does not know all blocks.
static enum err read_outside(struct subject *subject, bool *out_was_read)
{
    const uint32_t flags = subject->living.process->record.flags;
    TRY(stack_tops(subject->s, subject->living.slot, &subject->reading.tops));
    subject->reading.reads_heap = (flags & REC_PROCESS_ATTACHED) != 0;
    const enum err err = recorder_read_outside(subject->s, &subject->reading);
    *out_was_read = was_read(subject, err);
    return *out_was_read ? own_ranges(subject->s, subject->living.slot, &subject->own) : ERR_OK;
}

static bool read_pages(void *context, struct page_wants *wants)
{
    struct subject *subject = context;
    struct map_reading *reading = &subject->reading;
    if (reading->pagemap < 0) {
        return false;
    }
    const uint64_t passes = subject->s->drain.passes;
    const enum err err =
        recorder_read_pages(subject->s, &reading->pagemap, wants, &reading->processor_ns);
    recorder_note_unread(subject->s, subject->living.process, subject->living.pid, err);
    return subject->s->drain.passes != passes;
}

static bool had_blocks(void *context, struct address_range range)
{
    struct subject *subject = context;
    return drain_books_had_blocks(&subject->s->drain, subject->living.process, range.start,
                                  range.end, &subject->places);
}

// As drain_meanwhile, while blocks are listed.
static bool listing_goes_on(void *context)
{
    struct subject *subject = context;
    const uint64_t changed = drain_meanwhile(subject);
    const bool is_there = changed != LISTED_WALK_GONE;
    subject->listed_changes += is_there ? changed : 0;
    return is_there;
}

static bool is_libc(const char *path)
{
    static const char *const names[] = {"libc.so", "libc-2.", "ld-musl-"};
    for (size_t i = 0; path[0] == '/' && i < ARRAY_LEN(names); i++) {
        if (strncmp(path_file_name(path), names[i], strlen(names[i])) == 0) {
            return true;
        }
    }
    return false;
}

// Find the module of a process's libc: as its hooks name it, as the object that serves malloc, or
// by the map.
static enum err find_libc(const struct subject *subject, rec_string *out)
{
    const struct aggregator_process *process = subject->living.process;
    struct string_table *strings = &subject->s->aggregator.strings;
    const struct memory_areas *map = &subject->reading.map;
    const char *path = string_table_get(strings, process->record.allocator);
    *out = process->libc;
    if (process->libc != 0) {
        return ERR_OK;
    }
    for (size_t i = 0; !is_libc(path) && i < map->areas.len; i++) {
        path = memory_area_path(map, map->areas.items + i);
    }
    return is_libc(path) ? string_table_intern_text(strings, path, out) : ERR_OK;
}

// Split the map. A process that ends meanwhile has no snapshot.
static enum err split(struct subject *subject, uint32_t flags, struct memory_moment *moment)
{
    rec_string libc;
    TRY(find_libc(subject, &libc));
    struct recorder_state *s = subject->s;
    struct aggregator_process *process = subject->living.process;
    const size_t parts = moment->tables.parts.len;
    const size_t survivors = moment->tables.survivors.len;
    const size_t claims = moment->tables.claims.len;
    TRY(drain_books_list_blocks(&s->drain, process, listing_goes_on, subject, &s->listed_blocks));
    if (!is_still_there(subject)) {
        return ERR_OK;
    }
    const struct rss_process what = {
        .aggregator = &s->aggregator,
        .process = process,
        .listed = &s->listed_blocks,
        .listed_changes = subject->listed_changes,
        .late_bytes = subject->late_bytes,
        .own = &subject->own,
        .stack_tops = &subject->reading.tops,
        .stack_pointers = &subject->reading.pointers,
        .foreign = &subject->reading.foreign,
        .is_heap_known = run_control_is_whole(&s->control) &&
                         (process->record.flags & (REC_PROCESS_FORKED | REC_PROCESS_OWN_ALLOCATOR |
                                                   REC_PROCESS_ATTACHED)) == 0,
        .libc = libc,
        .hooks = &s->hooked,
        .read_pages = read_pages,
        .had_blocks = had_blocks,
        .pause = drain_meanwhile,
        .context = subject,
    };
    struct rec_memory_snapshot snapshot = {
        .time_ms = moment->time_ms, .process = process->index, .flags = flags};
    TRY(rss_split(&what, &subject->reading.map, (uint32_t)moment->memory_snapshots.len,
                  &s->aggregator.strings, &snapshot, &moment->tables));
    if (!is_still_there(subject)) {
        moment->tables.parts.len = parts;
        moment->tables.survivors.len = survivors;
        moment->tables.claims.len = claims;
        return ERR_OK;
    }
    process->snapshot_live_bytes = subject->live_bytes;
    process->snapshot_mapped_bytes = subject->mapped_bytes;
    return rec_memory_snapshot_vec_push(&moment->memory_snapshots, snapshot);
}

// Take a snapshot of one process. An unreadable process is omitted.
static enum err take_snapshot_of(struct recorder_state *s,
                                 const struct living_process *living,
                                 uint32_t flags,
                                 struct memory_moment *moment,
                                 uint64_t *processor_ns)
{
    CLEANUP(subject_release)
    struct subject subject = {
        .s = s, .living = *living, .reading = {.pid = living->pid, .pagemap = -1}};
    bool is_read = read_map(&subject);
    enum err err = is_read ? read_outside(&subject, &is_read) : ERR_OK;
    err = err == ERR_OK && is_read ? split(&subject, flags, moment) : err;
    *processor_ns += subject.reading.processor_ns;
    return err;
}

// Make pages that several processes share count once, and correct the samples by that.
static void settle(struct recorder_state *s, struct memory_moment *moment)
{
    struct rec_memory_snapshot *snapshots = moment->memory_snapshots.items;
    const bool is_late = shared_pages_are_late(&moment->tables.claims);
    shared_pages_settle(&moment->tables.claims, moment->tables.parts.items, snapshots);
    for (size_t i = 0; i < moment->memory_snapshots.len; i++) {
        moment->rss_bytes += rec_snapshot_counted_rss(snapshots + i);
        proc_sampler_correct(&s->sampler, snapshots + i, is_late);
    }
}

// Doubt the latest snapshots if the heap is another one now: it may have been so then. Return
// whether they are doubted.
static bool compare(struct recorder_state *s)
{
    const struct memory_moment *last = &s->memory_snapshots.last;
    uint64_t live_bytes = 0;
    uint64_t mapped_bytes = 0;
    bool is_any_left = false;
    for (size_t i = 0; i < last->memory_snapshots.len; i++) {
        const uint32_t index = last->memory_snapshots.items[i].process;
        const struct aggregator_process *process = s->aggregator.processes.items[index];
        if (!process->is_ended) {
            live_bytes += distance_u64(process->live_bytes, process->snapshot_live_bytes);
            mapped_bytes += distance_u64(process->mapped_bytes, process->snapshot_mapped_bytes);
            is_any_left = true;
        }
    }
    // It may have grown and shrunk since then.
    const uint64_t peak_bytes = s->aggregator.totals.peak_bytes;
    if (peak_bytes > s->snapshot_peak_bytes && is_any_left) {
        live_bytes = max_u64(live_bytes, excess_u64(peak_bytes, s->snapshot_live_bytes));
    }
    const uint64_t much_bytes = last->rss_bytes / SNAPSHOT_GROWTH_DIVISOR;
    if (live_bytes > much_bytes || mapped_bytes > much_bytes) {
        memory_snapshots_doubt(&s->memory_snapshots, live_bytes > much_bytes);
        return true;
    }
    return false;
}

// By what is known when the ticks of the threads are over, so that what they had done by then is
// counted. It is counted some milliseconds later if the whole recorder was stopped, its clock
// included. While events wait in the lanes, the heap of that moment is not known, however late it
// is: a change that is found after that may be of then.
void recorder_breakdown_judge(struct recorder_state *s, uint64_t now_ms)
{
    if (s->unjudged_ms != 0 && (has_backlog(s, waits_in_ring) || has_backlog(s, waits_in_book))) {
        s->unjudged_ms = max_u64(s->unjudged_ms, now_ms);
    }
    const uint64_t known_ms = s->unjudged_ms + s->tick_ms + 1;
    if (s->unjudged_ms != 0 && now_ms > known_ms && (compare(s) || now_ms > known_ms + JUDGED_MS)) {
        s->unjudged_ms = 0;
    }
}

void recorder_breakdown_judge_now(struct recorder_state *s)
{
    if (s->unjudged_ms != 0) {
        (void)compare(s);
        s->unjudged_ms = 0;
    }
}

enum err
recorder_breakdown_take(struct recorder_state *s, uint64_t now_ms, uint32_t flags, bool was_asked)
{
    struct expense expense = expense_begin(s);
    CLEANUP(memory_moment_release) struct memory_moment moment = {.time_ms = now_ms};
    CLEANUP(living_process_vec_release) struct living_process_vec living = {0};
    recorder_breakdown_judge_now(s); // the next ones follow
    await_books(s);
    TRY(recorder_living(s, &living));
    for (size_t i = 0; i < living.len; i++) {
        proc_sampler_note_shared(living.items[i].pid, living.items[i].process);
    }
    for (size_t i = 0; i < living.len && !s->is_stopped; i++) {
        const bool is_exiting =
            living.items[i].slot == s->drain.main_slot && (flags & REC_SNAPSHOT_AT_EXIT) != 0;
        TRY(take_snapshot_of(s, living.items + i, is_exiting ? REC_SNAPSHOT_AT_EXIT : 0, &moment,
                             &expense.aside_ns));
    }
    if (moment.memory_snapshots.len == 0) {
        return ERR_OK;
    }
    note_backlog(s);
    s->snapshot_peak_bytes = s->aggregator.totals.peak_bytes;
    s->snapshot_live_bytes = s->aggregator.totals.sums.live_bytes;
    settle(s, &moment);
    // A process that waits at its exit changes nothing meanwhile. The session's clock may be late
    // if the recorder was stopped.
    const uint64_t end_ms = now_ms + (clock_monotonic_ns() - expense.began_ns) / NS_PER_MS;
    s->unjudged_ms =
        (flags & REC_SNAPSHOT_AT_EXIT) != 0 ? 0 : max_u64(end_ms, session_clock_now(&s->clock));
    return memory_snapshots_add(&s->memory_snapshots, &moment, was_asked, expense_ns(s, &expense));
}
