// SPDX-License-Identifier: MIT
// book: see the header. Here: the events. Processes and threads: book_process.c.
#include "aggregate/book.h"

#include "base/minmax.h"

enum err book_init(struct book *book, uint64_t seed)
{
    *book = (struct book){.seed = seed, .held_since_ms = UINT64_MAX};
    heap_totals_init(&book->totals, BOOK_CELLS_MAX, BOOK_COHORTS_MAX);
    return stack_table_init(&book->stacks, &book->strings);
}

enum err book_note_stop(struct book *book, struct book_stop stop)
{
    return book_stop_vec_push(&book->stops, stop);
}

static void
change_left_out(struct book *book, struct book_process *process, const struct left_out_sums *change)
{
    left_out_sums_add(&process->left_out, change);
    left_out_sums_add(&book->estimate.now, change);
}

// Frees whose block was never seen. A forked process inherits such blocks; in others they are those
// that were allocated while nothing was recorded, if there was such a time, or left out.
static void count_unknown(struct book *book, struct book_process *process, uint64_t count)
{
    const bool is_forked = (process->record.flags & REC_PROCESS_FORKED) != 0;
    if (book->sampling.left_out_allocations != 0) {
        book->sampling.unsampled_frees += count;
        const struct left_out_sums freed = left_out_sums_freed(&process->left_out, count);
        change_left_out(book, process, &freed);
        return;
    }
    *(book->stops.len > 0 && !is_forked ? &book->unrecorded_frees : &book->unknown_frees) += count;
}

void book_seal(struct book *book)
{
    id_index_release(&book->stacks.module_index);
    id_index_release(&book->stacks.frame_index);
    id_index_release(&book->stacks.node_index);
    id_index_release(&book->totals.rows.index);
    u32_vec_release(&book->totals.rows.latest_of_nodes);
}

static MUST_USE enum err ensure_entry(struct book *book, struct book_thread *thread)
{
    return LIKELY(thread->entry != REC_NONE)
               ? ERR_OK
               : thread_table_begin(&book->threads, thread->process->index, thread->thread_id,
                                    thread->name, thread->start_ms, &thread->entry);
}

enum err book_merged_node(struct book *book, uint32_t *out_node)
{
    uint32_t frame = 0;
    TRY(stack_table_frame(&book->stacks, REC_NONE, 0, REC_FRAME_CUT, &frame));
    return stack_table_node(&book->stacks, 0, frame, out_node);
}

enum err book_row(struct book *book, struct book_thread *thread, uint32_t node, uint32_t *out_row)
{
    TRY(ensure_entry(book, thread));
    if (UNLIKELY(book->budget.merging == MEMORY_MERGES_ALL) &&
        !row_table_has(&book->totals.rows, thread->entry, node) &&
        !memory_budget_adds(&book->budget)) {
        TRY(book_merged_node(book, &node));
    }
    return row_table_get(&book->totals.rows, thread->entry, node, out_row);
}

enum err book_begin_scope(struct book *book, struct book_thread *thread, uint32_t scope)
{
    TRY(ensure_entry(book, thread));
    TRY(peak_scopes_begin(&book->scopes, thread->entry, thread->lane, scope));
    observer_add(&book->observers, peak_scopes_observer(&book->scopes));
    return ERR_OK;
}

uint64_t book_scope_peak(struct book *book, const struct book_thread *thread, uint32_t scope)
{
    return peak_scopes_most(&book->scopes, thread->entry, thread->lane, scope);
}

void book_end_scope(struct book *book, const struct book_thread *thread, uint32_t scope)
{
    peak_scopes_end(&book->scopes, thread->entry, thread->lane, scope);
    if (book->scopes.threads.len == 0) {
        observer_remove(&book->observers, &book->scopes);
    }
}

static struct live_estimate estimate_of_all(const struct book *book, uint64_t counted_bytes)
{
    return live_estimate_of(&book->estimate.now, counted_bytes, book->waiting_count);
}

uint64_t book_live_bytes(const struct book *book)
{
    const uint64_t counted_bytes = book->totals.sums.live_bytes;
    return LIKELY(!book->estimate.is_there) ? counted_bytes
                                            : estimate_of_all(book, counted_bytes).bytes;
}

// As note_height, where blocks were left out. *own_bytes: of the process.
static NOINLINE uint64_t estimate_height(struct book *book,
                                         const struct book_process *process,
                                         uint64_t counted_bytes,
                                         uint64_t *own_bytes)
{
    const struct live_estimate live = estimate_of_all(book, counted_bytes);
    peak_estimate_look(&book->estimate, &live, counted_bytes, live.bytes > book->totals.peak_bytes);
    *own_bytes =
        live_estimate_of(&process->left_out, *own_bytes, process->waiting.waiting_count).bytes;
    return live.bytes;
}

// That there are `count` blocks of `bytes` in all beside those in the sums, and the peaks that this
// may set. Whether it is a new one of the recording.
static inline bool
note_height(struct book *book, struct book_process *process, uint64_t count, uint64_t bytes)
{
    uint64_t all_bytes = book->totals.sums.live_bytes + bytes;
    uint64_t own_bytes = process->live_bytes + bytes;
    if (UNLIKELY(book->estimate.is_there)) {
        all_bytes = estimate_height(book, process, all_bytes, &own_bytes);
    }
    if (own_bytes > process->record.peak_bytes) {
        process->record.peak_bytes = own_bytes;
    }
    if (!heap_totals_note_height(&book->totals, count, all_bytes)) {
        return false;
    }
    peak_bound_peaked(&book->bound);
    return true;
}

// The sums of `count` new blocks of `bytes` in all, and the peaks that they may set, unless they
// have been freed since.
static inline void raise_sums(
    struct book *book, struct book_process *process, uint64_t count, uint64_t bytes, bool is_freed)
{
    heap_totals_raise(&book->totals, count, bytes);
    process->live_bytes += bytes;
    if (LIKELY(!is_freed)) {
        (void)note_height(book, process, 0, 0);
    }
}

// If others have done something since the thread's tick began, it is not known what they had then.
bool book_summit(struct book *book, struct book_thread *thread, uint32_t count, uint64_t bytes)
{
    if (book->stamped_count == thread->stamped_before) {
        return note_height(book, thread->process, count, bytes);
    }
    peak_bound_besides(&book->bound, bytes, book_live_bytes(book));
    return false;
}

// How many blocks it stands for beside itself.
static uint32_t others_of(const struct live_block *block)
{
    return ((uint32_t)1 << block->shift) - 1;
}

static uint64_t weighted_bytes(const struct live_block *block)
{
    return block->size_bytes << block->shift;
}

static NOINLINE enum err tell_allocated(struct book *book,
                                        const struct book_thread *thread,
                                        uint64_t peak_before,
                                        uint64_t address,
                                        const struct live_block *block)
{
    const struct observed_event what = {
        .event = {.time_ms = block->born_ms,
                  .address = address,
                  .size_bytes = block->size_bytes,
                  .kind = REC_EVENT_ALLOCATION,
                  .process = thread->process->index,
                  .thread = thread->entry,
                  .row = block->row,
                  .others = others_of(block)},
        .block = block,
        .bytes = weighted_bytes(block),
        .owner = thread->entry,
        .peak_number = book->totals.rows.peak_number,
        .peak_before = peak_before,
    };
    return observers_tell(&book->observers, &what);
}

// Who frees a block: a thread of the thread table, REC_NONE if that is not known.
struct freeing {
    uint32_t thread;
    enum rec_event_kind kind;
};

static NOINLINE enum err tell_freed(struct book *book,
                                    const struct book_process *process,
                                    uint64_t address,
                                    const struct live_block *block,
                                    struct freeing by)
{
    const struct observed_event what = {
        .event = {.time_ms = book->totals.now_ms,
                  .address = address,
                  .kind = by.kind,
                  .process = process->index,
                  .thread = by.thread,
                  .row = REC_NONE},
        .block = block,
        .bytes = weighted_bytes(block),
        .owner = book->totals.rows.rows.items[block->row].thread,
        .peak_number = book->totals.rows.peak_number,
    };
    return observers_tell(&book->observers, &what);
}

// Closes those that a block stands for beside itself; the block itself is closed afterwards.
static NOINLINE enum err close_stand_ins(struct book *book,
                                         struct book_process *process,
                                         const struct live_block *block,
                                         uint64_t lifetime_ms,
                                         uint32_t born_slice)
{
    const uint32_t more = ((uint32_t)1 << block->shift) - 1;
    const uint64_t more_bytes = more * block->size_bytes;
    heap_totals_lower(&book->totals, more, more_bytes);
    process->live_bytes -= more_bytes;
    process->stand_ins -= more;
    book->stand_ins -= more;
    change_left_out(
        book, process,
        &(struct left_out_sums){.stand_in_bytes = -more_bytes,
                                .variance = -peak_estimate_variance(block->size_bytes, more + 1)});
    return row_table_freed_more(&book->totals.rows, block->row, block->size_bytes, lifetime_ms,
                                born_slice, more);
}

// Closes a block that was taken out of the live map, or never got there.
static inline enum err close_block(struct book *book,
                                   struct book_process *process,
                                   uint64_t address,
                                   const struct live_block *block,
                                   struct freeing by)
{
    const uint64_t now_ms = book->totals.now_ms;
    if (UNLIKELY(book->observers.count > 0)) {
        TRY(tell_freed(book, process, address, block, by));
    }
    heap_totals_lower(&book->totals, 1, block->size_bytes);
    process->live_bytes -= block->size_bytes;
    uint64_t lifetime_ms = now_ms > block->born_ms ? now_ms - block->born_ms : 0;
    const uint64_t born = block->born_ms >> book->totals.series.slice_shift;
    const uint32_t born_slice =
        born < book->totals.rows.slice ? (uint32_t)born : book->totals.rows.slice;
    TRY(row_table_freed(&book->totals.rows, block->row, block->size_bytes,
                        rec_bucket_of(lifetime_ms), born_slice));
    return LIKELY(block->shift == 0)
               ? ERR_OK
               : close_stand_ins(book, process, block, lifetime_ms, born_slice);
}

void book_settle(struct book *book, struct book_process *process, uint64_t now_tick)
{
    if (process->waiting.waiting_count == 0) {
        return;
    }
    // What is waited for may be held by a thread that has no time to send it.
    const bool is_held = book->held_since_ms < UINT64_MAX - WAITING_TICKS && now_tick != UINT64_MAX;
    const uint64_t held_until = is_held ? book->held_since_ms + WAITING_TICKS : now_tick;
    uint64_t expired =
        waiting_frees_expire(&process->waiting, held_until < now_tick ? held_until : now_tick);
    count_unknown(book, process, expired);
    book->waiting_count -= expired;
}

static void look_at_waiting(struct book *book, uint64_t now_tick)
{
    for (size_t i = 0; i < book->processes.len && book->waiting_count > 0; i++) {
        book_settle(book, book->processes.items[i], now_tick);
    }
}

enum err book_tick(struct book *book, uint64_t tick_ms)
{
    if (tick_ms <= book->totals.now_ms) {
        return ERR_OK;
    }
    if (UNLIKELY(book->waiting_count > 0)) {
        look_at_waiting(book, tick_ms);
    }
    peak_bound_tick(&book->bound, tick_ms);
    return heap_totals_advance(&book->totals, tick_ms);
}

enum err book_extend(struct book *book, uint64_t end_ms)
{
    // A slice that begins at the very end would be empty.
    return end_ms > 0 ? heap_totals_extend(&book->totals, end_ms - 1) : ERR_OK;
}

void book_clear_holds(struct book *book)
{
    book->held_since_ms = UINT64_MAX;
    book->held_bytes = 0;
}

void book_add_hold(struct book *book, uint64_t since_ms, uint64_t held_bytes)
{
    book->held_since_ms = min_u64(book->held_since_ms, since_ms);
    // A block of more is a lie.
    book->held_bytes += min_u64(held_bytes, BOOK_HELD_MAX);
}

void book_end_holds(struct book *book, uint64_t budget_bytes, bool is_alone)
{
    // What a thread leaves out it does not show in its order with what it holds.
    const uint64_t held_bytes = is_alone && !book->estimate.is_there ? 0 : book->held_bytes;
    peak_bound_unseen(&book->bound, held_bytes + budget_bytes, book_live_bytes(book));
}

void book_thread_rests(struct book *book, struct book_thread *thread)
{
    if (thread->flight.bytes > 0 && thread->tick_ms + PEAK_FLIGHT_MS < book->totals.now_ms) {
        peak_bound_landed(&book->bound, &thread->flight);
    }
}

// Those that a new block stands for beside itself.
static NOINLINE enum err
open_stand_ins(struct book *book, struct book_process *process, const struct live_block *block)
{
    const uint32_t weight = (uint32_t)1 << block->shift;
    struct book_sampling *sampling = &book->sampling;
    process->stand_ins += weight - 1;
    book->stand_ins += weight - 1;
    book->estimate.is_there = true;
    change_left_out(
        book, process,
        &(struct left_out_sums){.stand_in_bytes = (weight - 1) * block->size_bytes,
                                .variance = peak_estimate_variance(block->size_bytes, weight)});
    sampling->sampled_allocations++;
    sampling->stand_in_allocations += weight - 1;
    sampling->stand_in_bytes += (weight - 1) * block->size_bytes;
    sampling->coarsest_weight = max_u64(sampling->coarsest_weight, weight);
    return row_table_allocated_more(&book->totals.rows, block->row, block->size_bytes, weight - 1);
}

// Inline for the sake of the constant shift.
ALWAYS_INLINE enum err allocate(struct book *book,
                                struct book_thread *thread,
                                uint64_t address,
                                uint32_t row,
                                uint64_t size_bytes,
                                uint32_t shift,
                                uint64_t since)
{
    struct book_process *process = thread->process;
    const struct live_block block = {
        .size_bytes = size_bytes, .born_ms = book->totals.now_ms, .row = row, .shift = shift};
    bool is_freed =
        process->waiting.waiting_count > 0 && waiting_frees_take(&process->waiting, address, since);
    if (!is_freed) {
        TRY(live_map_add(&process->live, address, &block));
    }
    TRY(row_table_allocated(&book->totals.rows, row, size_bytes));
    if (shift != 0) {
        TRY(open_stand_ins(book, process, &block));
    }
    const uint64_t peak_before = book->totals.rows.peak_number;
    raise_sums(book, process, (uint64_t)1 << shift, weighted_bytes(&block), is_freed);
    if (UNLIKELY(book->observers.count > 0)) {
        TRY(tell_allocated(book, thread, peak_before, address, &block));
    }
    if (UNLIKELY(thread->stamp != 0)) {
        book->stamped_count++;
    }
    if (since != thread->stamp) { // held back: what the thread did before is no later for it
        peak_bound_joined(&book->bound, thread->stamp, book_live_bytes(book));
    } else if (UNLIKELY(since != 0)) {
        peak_bound_allocated(&book->bound, &thread->flight, since, block.size_bytes,
                             book_live_bytes(book));
    }
    if (UNLIKELY(is_freed)) {
        book->waiting_count--;
        const struct freeing unknown = {.thread = REC_NONE, .kind = REC_EVENT_FREE_LATEST};
        return close_block(book, process, address, &block, unknown);
    }
    return ERR_OK;
}

// A block for which there is no room: counted, and its free will be one of nothing.
static enum err leave_out(struct book *book,
                          struct book_thread *thread,
                          uint64_t address,
                          uint64_t size_bytes,
                          uint64_t since)
{
    struct book_sampling *sampling = &book->sampling;
    sampling->left_out_allocations++;
    sampling->left_out_bytes += size_bytes;
    if (waiting_frees_take(&thread->process->waiting, address, since)) {
        book->waiting_count--;
        sampling->unsampled_frees++;
    } else {
        sampling->forgotten++;
        book->estimate.is_there = true;
        change_left_out(book, thread->process,
                        &(struct left_out_sums){.lost_blocks = 1, .lost_bytes = size_bytes});
    }
    return ERR_OK;
}

// While live blocks take their part of the memory (memory_budget.h).
static NOINLINE enum err allocate_sparsely(struct book *book,
                                           struct book_thread *thread,
                                           uint64_t address,
                                           uint32_t row,
                                           uint64_t size_bytes,
                                           uint32_t shift,
                                           uint64_t since)
{
    return memory_budget_takes(&book->budget, size_bytes, &shift)
               ? allocate(book, thread, address, row, size_bytes, shift, since)
               : leave_out(book, thread, address, size_bytes, since);
}

enum err book_allocate(struct book *book,
                       struct book_thread *thread,
                       uint64_t address,
                       uint32_t row,
                       uint64_t size_bytes)
{
    return LIKELY(book->budget.level == 0)
               ? allocate(book, thread, address, row, size_bytes, 0, thread->stamp)
               : allocate_sparsely(book, thread, address, row, size_bytes, 0, thread->stamp);
}

enum err book_allocate_sampled(struct book *book,
                               struct book_thread *thread,
                               uint64_t address,
                               uint32_t row,
                               uint64_t size_bytes,
                               uint32_t shift)
{
    return LIKELY(book->budget.level == 0)
               ? allocate(book, thread, address, row, size_bytes, shift, thread->stamp)
               : allocate_sparsely(book, thread, address, row, size_bytes, shift, thread->stamp);
}

enum err book_allocate_late(struct book *book,
                            struct book_thread *thread,
                            uint64_t address,
                            uint32_t row,
                            uint64_t size_bytes,
                            uint64_t since)
{
    return LIKELY(book->budget.level == 0)
               ? allocate(book, thread, address, row, size_bytes, 0, since)
               : allocate_sparsely(book, thread, address, row, size_bytes, 0, since);
}

static NOINLINE enum err
free_unknown(struct book *book, struct book_thread *thread, uint64_t address)
{
    struct waiting_frees *waiting = &thread->process->waiting;
    TRY(observers_tell(&book->observers,
                       &(struct observed_event){.event = {.time_ms = book->totals.now_ms,
                                                          .address = address,
                                                          .kind = REC_EVENT_UNKNOWN_FREE,
                                                          .process = thread->process->index,
                                                          .thread = thread->entry,
                                                          .row = REC_NONE}}));
    uint64_t before = waiting->waiting_count;
    uint64_t expired = 0;
    TRY(waiting_frees_add(waiting, address, book->totals.now_ms, thread->stamp, &expired));
    count_unknown(book, thread->process, expired);
    book->waiting_count = book->waiting_count + waiting->waiting_count - before;
    return ERR_OK;
}

// The thread says that it frees the address of its latest allocation, where `taken` was. That is
// the very block if it is the thread's own: another thread may have freed that, and made another
// one there; but its own next one is its latest.
static enum err count_temporary(struct book *book,
                                const struct book_thread *thread,
                                uint64_t address,
                                const struct live_block *taken)
{
    if (book->totals.rows.rows.items[taken->row].thread != thread->entry) {
        return ERR_OK;
    }
    const uint64_t count = (uint64_t)1 << taken->shift;
    book->totals.sums.temporary += count;
    book->totals.temporary_bytes += count * taken->size_bytes;
    TRY(row_table_was_temporary(&book->totals.rows, taken->row, taken->size_bytes,
                                (uint32_t)count));
    if (LIKELY(book->observers.count == 0)) {
        return ERR_OK;
    }
    return observers_tell(&book->observers,
                          &(struct observed_event){.event = {.time_ms = book->totals.now_ms,
                                                             .address = address,
                                                             .size_bytes = taken->size_bytes,
                                                             .kind = REC_EVENT_TEMPORARY,
                                                             .process = thread->process->index,
                                                             .thread = thread->entry,
                                                             .row = taken->row,
                                                             .others = others_of(taken)}});
}

enum err
book_free(struct book *book, struct book_thread *thread, uint64_t address, bool is_temporary)
{
    struct live_block block;
    const bool is_known = live_map_take(&thread->process->live, address, &block);
    if (is_temporary && is_known) {
        TRY(count_temporary(book, thread, address, &block));
    }
    if (UNLIKELY(!is_known)) {
        return free_unknown(book, thread, address);
    }
    const struct freeing by = {.thread = thread->entry, .kind = REC_EVENT_FREE};
    TRY(close_block(book, thread->process, address, &block, by));
    if (UNLIKELY(thread->stamp != 0)) {
        book->stamped_count++;
        peak_bound_freed(&book->bound, &thread->flight, thread->stamp, block.size_bytes,
                         book_live_bytes(book));
    }
    return ERR_OK;
}

enum err
book_reallocate(struct book *book, struct book_thread *thread, const struct book_move *move)
{
    TRY(book_free(book, thread, move->from, move->is_temporary));
    return book_allocate(book, thread, move->to, move->row, move->size_bytes);
}

enum err
book_pairs(struct book *book, uint32_t row, uint32_t count, uint64_t bytes, bool is_temporary)
{
    TRY(row_table_paired(&book->totals.rows, row, count, bytes, is_temporary));
    book->totals.sums.allocations += count;
    book->totals.sums.allocated_bytes += bytes;
    book->totals.sums.frees += count;
    book->totals.sums.freed_bytes += bytes;
    if (is_temporary) {
        book->totals.sums.temporary += count;
        book->totals.temporary_bytes += bytes;
    }
    return ERR_OK;
}

void book_thread_tick(const struct book *book, struct book_thread *thread, uint64_t tick_ms)
{
    thread->tick_ms = tick_ms;
    thread->stamped_before = book->stamped_count;
}

void book_left_out(struct book *book,
                   struct book_thread *thread,
                   const struct book_balance *balance)
{
    change_left_out(book, thread->process,
                    &(struct left_out_sums){.known_bytes = (uint64_t)balance->bytes -
                                                           (uint64_t)thread->left_out_bytes,
                                            .lost_blocks = balance->lost_blocks,
                                            .lost_bytes = balance->lost_bytes});
    book->estimate.is_there = true;
    book->estimate.grain_bytes += balance->grain_bytes - thread->grain_bytes;
    thread->left_out_bytes = balance->bytes;
    thread->grain_bytes = balance->grain_bytes;
    (void)note_height(book, thread->process, 0, 0);
}

static uint64_t margin_of(uint64_t peak_bytes, uint64_t live_bytes)
{
    return peak_bytes > live_bytes ? peak_bytes - live_bytes : 0;
}

uint64_t book_margin(const struct book *book, const struct book_process *process)
{
    uint64_t own_bytes = process->live_bytes;
    if (UNLIKELY(book->estimate.is_there)) {
        own_bytes =
            live_estimate_of(&process->left_out, own_bytes, process->waiting.waiting_count).bytes;
    }
    const uint64_t all = margin_of(book->totals.peak_bytes, book_live_bytes(book));
    const uint64_t own = margin_of(process->record.peak_bytes, own_bytes);
    return all < own ? all : own;
}
