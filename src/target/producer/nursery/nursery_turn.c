// SPDX-License-Identifier: MIT
// nursery_turn: the work of a nursery once in a tick, and its recovery after a fault. See
// nursery.h.
//
// A thread that was idle when the tick passed may find the recorder draining its nursery: `owner`
// names the side at work. Inside a tick the thread needs no lock, for the recorder comes only when
// the clock has moved since the thread's last event, and not while the thread is inside a hook.
#include <time.h>

#include "base/sys.h"
#include "target/producer/nursery/nursery_send.h"
#include "target/producer/session_join.h"
#include "target/producer/waiting/recorder_liveness.h"

enum {
    WINDOW_TICKS = 16,       // age at which a window of less than the wanted blocks suffices
    WINDOW_BLOCKS_MIN = 256, // lower limit of that window
    PAUSE_TICKS = 256,       // pause in holding
    TRIAL_TICKS = 4,         // until the recorder has published the distance to the maximum
    OWNER_NAP_NS = 200000,   // the recorder owns a nursery for some microseconds
};

// Holding pays if at most `records` records were sent for `blocks` blocks. It costs the thread more
// time than sending, and saves the recorder's. With one thread it pays where one record replaces
// many blocks. Several threads can keep the recorder busy, so it pays sooner; they share the
// processors, and the blocks of a tick vary more, so the window is longer.
static const struct bargain {
    uint32_t records;
    uint32_t blocks;
    uint32_t window_blocks; // that suffice for a judgement
} bargains[] = {
    {.records = 1, .blocks = 4, .window_blocks = 2048},
    {.records = 2, .blocks = 3, .window_blocks = 32768},
};

void nursery_init(struct lane_producer *p)
{
    struct nursery *n = &p->lane->nursery;
    n->stamp = NURSERY_STAMP;
    n->high_water_limit = NURSERY_NO_HIGH_WATER;
    n->epoch = 1;
    n->size_max = NURSERY_SIZE_MAX;
    n->is_holding = (p->session->flags & SESSION_NO_NURSERY) == 0;
    atomic_store_explicit(&n->since_ms, UINT64_MAX, memory_order_relaxed);
    for (uint32_t i = 0; i < NURSERY_HISTORY; i++) {
        n->history[i].pos = UINT64_MAX;
    }
}

// Wait for the recorder, which is busy here or dead. False: dead.
static bool await_owner(struct lane_producer *p)
{
    struct nursery *n = &p->lane->nursery;
    const struct timespec nap = {.tv_nsec = OWNER_NAP_NS};
    struct patience patience;
    patience_init(&patience, p->session, p->lane);
    uint32_t owner = NURSERY_FREE;
    while (!atomic_compare_exchange_strong_explicit(&n->owner, &owner, NURSERY_OF_THREAD,
                                                    memory_order_acquire, memory_order_relaxed)) {
        if (patience_is_over(&patience, p->session, p->lane)) {
            session_abandon(p->session);
            return false;
        }
        (void)sys_futex_wait(&n->owner, owner, &nap); // there is no wake-up: a nap
        owner = NURSERY_FREE;
    }
    return true;
}

// Take the nursery, until give_back. False: the recorder is dead.
static bool take(struct lane_producer *p)
{
    struct nursery *n = &p->lane->nursery;
    uint32_t owner = NURSERY_FREE;
    // Acquire: pairs with the recorder's release, after which its blocks are removed. The nursery
    // may be ours already, if an earlier hook was left half way.
    return LIKELY(atomic_compare_exchange_strong_explicit(
               &n->owner, &owner, NURSERY_OF_THREAD, memory_order_acquire, memory_order_relaxed)) ||
           owner == NURSERY_OF_THREAD || await_owner(p);
}

static void give_back(struct nursery *n)
{
    // Release: pairs with the recorder's acquire.
    atomic_store_explicit(&n->owner, NURSERY_FREE, memory_order_release);
}

// Forget all sizes. In the tick that begins nothing is held: frees of unknown blocks count 0 bytes,
// so the sum would appear to rise by all live bytes, and the bound of the peak with it.
static void begin_to_learn(struct nursery *n)
{
    n->size_max = 0;
}

static void clear_blocks(struct lane_producer *p)
{
    struct nursery_tables *tables = lane_nursery_tables(p->lane);
    __builtin_memset(tables->blocks, 0, sizeof(tables->blocks));
    begin_to_learn(&p->lane->nursery);
}

static int64_t sum_of(const struct nursery *n)
{
    return n->ceiling_bytes - n->room_bytes;
}

// Begin anew: nothing is held, and the earlier sum does not matter any more, so it becomes 0.
static void begin_anew(struct nursery *n)
{
    n->room_bytes = 0;
    n->ceiling_bytes = 0;
    for (uint32_t i = 0; i < NURSERY_HISTORY; i++) {
        n->history[i].pos = UINT64_MAX;
    }
}

static void begin_window(struct nursery_trade *trade)
{
    trade->blocks = 0;
    trade->records = 0;
    trade->ticks = 0;
}

static void pause_holding(struct lane_producer *p)
{
    struct nursery *n = &p->lane->nursery;
    n->trade.off_ticks = PAUSE_TICKS;
    n->is_holding = 0;
    clear_blocks(p);
}

static void resume_holding(struct nursery *n)
{
    n->is_holding = 1;
    begin_to_learn(n);
    n->trade.trial_ticks = n->is_ordered != 0 ? 0 : TRIAL_TICKS;
    begin_anew(n);
}

static void judge_holding(struct lane_producer *p)
{
    struct nursery_trade *trade = &p->lane->nursery.trade;
    const struct bargain *bargain = &bargains[p->is_ordered];
    if (trade->blocks < bargain->window_blocks && trade->ticks < WINDOW_TICKS) {
        return;
    }
    if (trade->blocks >= WINDOW_BLOCKS_MIN &&
        trade->records * bargain->blocks > trade->blocks * bargain->records) {
        pause_holding(p);
    }
    begin_window(trade);
}

// Stop holding where it does not pay, and try again later.
static void adapt_holding(struct lane_producer *p)
{
    struct nursery *n = &p->lane->nursery;
    struct nursery_trade *trade = &n->trade;
    if (book_is_kept(p) || (p->session->flags & SESSION_NO_NURSERY) != 0 || p->open_scopes != 0 ||
        (p->is_ordered && p->freed == NULL)) {
        return;
    }
    n->size_max = NURSERY_SIZE_MAX;
    trade->blocks += n->hold_count;
    trade->ticks++;
    if (n->is_holding == 0) {
        trade->off_ticks--;
        if (trade->off_ticks == 0) {
            resume_holding(n);
            begin_window(trade);
        }
    } else if (trade->trial_ticks > 0) {
        trade->trial_ticks--;
        begin_window(trade);
    } else if ((p->session->flags & SESSION_ALWAYS_HOLD) == 0) {
        judge_holding(p);
    }
}

// Return our value of session_header.order.
static uint32_t number_of(const struct lane_producer *p)
{
    const uintptr_t first = (uintptr_t)p->session + SESSION_LANES_OFFSET;
    const uint32_t lane = (uint32_t)(((uintptr_t)p->lane - first) / LANE_STRIDE) + 1;
    return p->lane->process_index << SESSION_ORDER_SLOT_SHIFT | lane;
}

// Whether `order` is a lane of the image that executed this one. That lane will record nothing
// more, and the recorder aggregates it before any event of ours.
static bool is_of_our_earlier_image(const struct lane_producer *p, uint32_t order)
{
    const uint32_t slot = order >> SESSION_ORDER_SLOT_SHIFT;
    if (order == SESSION_ORDER_SEVERAL || slot >= SESSION_MAX_PROCESSES ||
        slot == p->lane->process_index) {
        return false;
    }
    const struct process_slot *own = session_process(p->session, p->lane->process_index);
    const struct process_slot *other = session_process(p->session, slot);
    return other->pid == own->pid && other->pid_namespace == own->pid_namespace &&
           own->pid_namespace != 0;
}

// Take a budget for held bytes: several threads record, and nothing is held. The next block is
// sent: the thread may have allocated it long ago, while it held others and was not running.
static void take_budget(struct lane_producer *p)
{
    struct nursery *n = &p->lane->nursery;
    // Relaxed: the value guards no other data.
    const uint64_t allowed = atomic_load_explicit(&p->session->hold_bytes, memory_order_relaxed);
    const uint64_t budget = n->is_holding != 0 ? allowed : 0;
    p->early_max_bytes = p->freed != NULL ? allowed : 0;
    p->early_bytes = 0; // until this tick's first stamp
    p->is_tick_stamped = false;
    atomic_store_explicit(&n->budget_bytes, budget, memory_order_relaxed);
    // Release: a recorder that acquires the count sees this budget or a later one.
    atomic_store_explicit(&n->budget_count,
                          atomic_load_explicit(&n->budget_count, memory_order_relaxed) + 1,
                          memory_order_release);
    n->room_bytes = NURSERY_NOTHING_SENT;
    n->ceiling_bytes = 0;
    n->size_max = NURSERY_SIZE_MAX; // sizes need not be learned
}

// Register this thread as recording, and check whether others record. Nothing is held.
static void check_order(struct lane_producer *p)
{
    struct nursery *n = &p->lane->nursery;
    if (book_is_kept(p)) { // its events need no order
        p->order = nursery_order(p);
        return;
    }
    const uint32_t own = number_of(p);
    uint32_t order = SESSION_ORDER_NOBODY;
    if (!p->is_ordered && !p->is_clockless) {
        p->alone_stamp = stamp_now(p->session); // before the check
    }
    // Sequentially consistent: of two threads that come first at once, one sees the other.
    if (atomic_compare_exchange_strong(&p->session->order, &order, own) ||
        (is_of_our_earlier_image(p, order) &&
         atomic_compare_exchange_strong(&p->session->order, &order, own))) {
        order = own;
    } else if (order != own) {
        order = SESSION_ORDER_SEVERAL;
        atomic_store(&p->session->order, order);
    }
    p->order = order;
    if (order == SESSION_ORDER_SEVERAL && p->is_clockless) {
        session_count(p->session, NOTE_order_timeouts, 1);
    } else if (order == SESSION_ORDER_SEVERAL && !p->is_ordered) {
        clear_blocks(p);
        n->is_holding = p->freed != NULL ? n->is_holding : 0;
        n->trade.trial_ticks = 0;
        n->is_ordered = 1;
        p->is_ordered = true;
        take_budget(p);
    }
}

// Take the margin that the recorder published for an earlier TICK.
static void take_margin(struct lane_producer *p)
{
    struct nursery *n = &p->lane->nursery;
    const struct lane_header *lane = p->lane;
    // Acquire: pairs with the recorder's release; the other two values are of this serial or a
    // later one.
    const uint64_t serial = atomic_load_explicit(&lane->margin_serial, memory_order_acquire);
    const uint64_t pos = atomic_load_explicit(&lane->margin_pos, memory_order_relaxed);
    const uint64_t margin = atomic_load_explicit(&lane->margin_bytes, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (serial == 0 || serial % 2 != 0 || margin > INT64_MAX / 2 ||
        serial != atomic_load_explicit(&lane->margin_serial, memory_order_relaxed)) {
        return;
    }
    for (uint32_t i = 0; i < NURSERY_HISTORY; i++) {
        const int64_t ceiling = n->history[i].sum_bytes + (int64_t)margin;
        if (n->history[i].pos == pos && ceiling > n->ceiling_bytes) {
            n->room_bytes += ceiling - n->ceiling_bytes;
            n->ceiling_bytes = ceiling;
        }
    }
}

// Begin a tick: the TICK was written, and nothing is held.
static void begin_tick(struct lane_producer *p, uint64_t now_ms)
{
    struct nursery *n = &p->lane->nursery;
    n->history[n->tick_count++ % NURSERY_HISTORY] =
        (struct nursery_moment){.pos = p->pos - sizeof(uint64_t), .sum_bytes = sum_of(n)};
    adapt_holding(p);
    if (book_is_kept(p)) {
        book_begin_tick(p, now_ms);
    } else if (p->is_ordered) {
        take_budget(p);
    } else {
        take_margin(p);
    }
    n->hold_count = book_is_kept(p) ? n->hold_count : 0;
    atomic_store_explicit(&n->held_bytes, 0, memory_order_relaxed);
    // Release: a recorder that sees the new time sees all records published before.
    atomic_store_explicit(&n->since_ms, now_ms, memory_order_release);
}

bool nursery_turn(struct lane_producer *p, uint64_t clock)
{
    if (session_is_over(p->session)) {
        return false;
    }
    const bool is_later = clock != p->clock;
    const uint64_t now_ms = session_time_of(p->session, clock);
    if (!take(p)) {
        return false;
    }
    const bool is_held = book_is_kept(p) && !book_is_due(p, now_ms);
    const bool is_sent = (is_held || nursery_send_all(p)) &&
                         (!is_later || lane_producer_send_tick(p, clock, now_ms));
    if (is_sent) {
        lane_producer_publish(p);
        check_order(p);
    }
    if (is_sent && is_later) {
        begin_tick(p, now_ms);
    }
    give_back(&p->lane->nursery);
    return is_sent;
}

bool nursery_flush(struct lane_producer *p)
{
    if (!take(p)) {
        return false;
    }
    const bool is_sent = nursery_send_all(p);
    give_back(&p->lane->nursery);
    return is_sent;
}

bool nursery_suspend(struct lane_producer *p)
{
    struct nursery *n = &p->lane->nursery;
    if (!nursery_flush(p)) {
        return false;
    }
    if (n->is_holding != 0) {
        clear_blocks(p);
        n->is_holding = 0;
        n->trade.off_ticks = 1; // one tick after the last scope was closed
    }
    return true;
}

// Complete an interrupted change of a block: see nursery_layout.h.
static void finish_block(struct lane_producer *p, struct nursery_block *block)
{
    const struct nursery *n = &p->lane->nursery;
    const uint64_t state = block->place >> NURSERY_STATE_SHIFT;
    const struct nursery_counter *counter =
        nursery_counter_at(p->lane, nursery_counter_key(block->kind));
    const bool is_done = state == NURSERY_SENDING ? p->pos >= n->mark : counter->sums != n->mark;
    if (state == NURSERY_SENDING || state == NURSERY_COALESCING) {
        block->place = is_done ? 0 : block->place & NURSERY_ADDRESS_MASK;
    }
}

// Complete an interrupted leaving from the high-water mark.
static void finish_leaving(struct lane_producer *p)
{
    struct nursery *n = &p->lane->nursery;
    const uint64_t leaving = n->leaving & NURSERY_ADDRESS_MASK;
    if (leaving != 0 && nursery_block_of(p->lane, leaving)->place == leaving) {
        n->freed_count = (uint32_t)(n->leaving >> NURSERY_LEAVING_SHIFT);
    }
    n->leaving = 0;
}

bool nursery_recover(struct lane_producer *p)
{
    struct nursery *n = &p->lane->nursery;
    if (!take(p)) {
        return false;
    }
    if (book_is_kept(p)) {
        book_recover(p);
        const bool is_sent = book_send_all(p);
        give_back(n);
        return is_sent;
    }
    struct nursery_tables *tables = lane_nursery_tables(p->lane);
    uint64_t held = 0;
    for (uint32_t i = 0; i < NURSERY_BLOCKS; i++) {
        struct nursery_block *block = tables->blocks + i;
        finish_block(p, block);
        if (nursery_is_held(block)) {
            held += nursery_size(block->kind);
            n->touched[i / 64] |= (uint64_t)1 << i % 64;
        }
    }
    for (uint32_t i = 0; i < NURSERY_COUNTERS; i++) {
        const bool was_sending = (tables->counters[i].key & NURSERY_COUNTER_SENDING) != 0;
        tables->counters[i].key &= ~NURSERY_COUNTER_SENDING;
        tables->counters[i].key = was_sending && p->pos >= n->mark ? 0 : tables->counters[i].key;
    }
    finish_leaving(p);
    atomic_store_explicit(&n->held_bytes, held, memory_order_relaxed);
    n->hold_count += held != 0; // if the block that was being held was not counted yet
    n->last_allocated = 0;
    const bool is_sent = nursery_send_all(p);
    begin_anew(n);
    if (p->is_ordered) {
        take_budget(p);
    }
    give_back(n);
    return is_sent;
}
