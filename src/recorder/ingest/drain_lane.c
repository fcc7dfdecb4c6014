// SPDX-License-Identifier: MIT
#include "recorder/ingest/drain_lane.h"

#include "recorder/ingest/drain_books.h"
#include "recorder/ingest/drain_time.h"
#include "recorder/lanes/lane_counters.h"
#include "recorder/session/book_reader.h"

enum {
    REST_AFTER_MS = 100, // without anything of its thread
    SENDS_MAX = 1000,    // of counters, while a book is taken: a book has no more
};

static void note_fault(struct drain *drain, const struct drain_lane *lane)
{
    if (drain->corrupt_lanes < DRAIN_FAULTS_MAX) {
        struct drain_fault *fault = &drain->faults[drain->corrupt_lanes];
        *fault = (struct drain_fault){.lane = lane->reader.thread.lane,
                                      .thread_id = lane->reader.thread.thread_id,
                                      .pid = drain->processes[lane->process].pid,
                                      .fault = lane->reader.fault};
        if (fault->fault.rule == NULL) {
            fault->fault.rule = "its positions or counters are impossible";
        }
    }
}

void drain_lane_distrust(struct drain *drain, struct drain_lane *lane)
{
    if (!lane->is_corrupt) {
        lane->is_corrupt = true;
        note_fault(drain, lane);
        drain->corrupt_lanes++;
        lane->reader.thread.process->book_has_gaps = true;
    }
    lane_reader_discard(&lane->reader);
}

// Return the latest time that the lane's thread can have seen. A dead thread has seen none since
// its death.
static uint64_t
latest_ms_of(const struct drain *drain, const struct drain_lane *lane, uint64_t clock_ms)
{
    const struct drain_process *process = drain->processes + lane->process;
    return process->is_dead ? process->dead_ms : clock_ms + DRAIN_TIME_SLACK_MS;
}

enum err drain_lane_run(struct drain *drain, struct drain_lane *lane, uint64_t clock_ms)
{
    const enum err err =
        lane_reader_run(&lane->reader, drain->aggregator, latest_ms_of(drain, lane, clock_ms));
    if (err != ERR_CORRUPT) {
        return err;
    }
    drain_lane_distrust(drain, lane);
    return ERR_OK;
}

bool drain_lane_note_unsampled(struct drain *drain, struct drain_lane *lane)
{
    return lane_counters_take(&lane->reader, drain->aggregator, drain->clock_ms) == ERR_OK;
}

// Whether the thread has sent something since its position was read.
static bool has_sent_more(const struct lane_consumer *consumer)
{
    atomic_thread_fence(memory_order_acquire); // after the reads of its book
    return atomic_load_explicit(&consumer->lane->write_pos, memory_order_relaxed) !=
           consumer->write_pos;
}

// Take the book as it is at one position of the lane: a thread that sends a counter moves on.
static enum err take_at_position(struct lane_reader *reader)
{
    enum err err = ERR_OK;
    for (int i = 0; i < SENDS_MAX && err == ERR_OK; i++) {
        u64_vec_clear(&reader->taken);
        TRY(lane_consumer_refresh(&reader->consumer));
        reader->taken_pos = reader->consumer.write_pos;
        err = book_reader_take(reader->consumer.lane, false, &reader->taken);
        if (!has_sent_more(&reader->consumer)) {
            break;
        }
    }
    return err;
}

// Likewise, under its lock, and leave it empty.
static enum err take_locked(struct drain *drain, struct lane_reader *reader)
{
    TRY(lane_consumer_refresh(&reader->consumer));
    reader->taken_pos = reader->consumer.write_pos;
    drain_books_send_part(drain, reader->consumer.lane);
    return book_reader_take(reader->consumer.lane, true, &reader->taken);
}

enum err drain_lane_take(struct drain *drain, struct drain_lane *lane, bool is_alive)
{
    const enum err err =
        is_alive ? take_locked(drain, &lane->reader) : take_at_position(&lane->reader);
    if (err != ERR_CORRUPT) {
        return err;
    }
    drain_lane_distrust(drain, lane);
    return ERR_OK;
}

bool drain_lane_is_deserted(const struct drain *drain, const struct drain_lane *lane)
{
    // Acquire: pairs with the release in lane_producer_close.
    return drain->processes[lane->process].is_dead || lane->is_done ||
           atomic_load_explicit(&lane->reader.consumer.lane->state, memory_order_acquire) ==
               LANE_CLOSED;
}

enum err drain_lane_relieve(struct drain *drain, struct drain_lane *lane, bool is_last)
{
    struct lane_header *header = lane->reader.consumer.lane;
    lane->unsent_since_ms = UINT64_MAX;
    if (lane->is_corrupt || lane->is_relieved) {
        return ERR_OK;
    }
    lane->unsent_since_ms = book_reader_unsent_since(header);
    const bool is_deserted = drain_lane_is_deserted(drain, lane);
    if (is_last || is_deserted) {
        lane->is_relieved = true;
        // The lane does not end, so nothing else adds its part. In a hook the thread may add it
        // itself: then some bytes are missing rather than twice in the sum. The recording is over,
        // so a thread that comes into a hook leaves its book alone.
        if (!is_deserted && book_reader_lock(header, UINT64_MAX)) {
            drain_books_send_part(drain, header);
            book_reader_unlock(header);
        }
        return drain_lane_take(drain, lane, false);
    }
    if (lane->unsent_since_ms != UINT64_MAX && book_reader_lock(header, drain->stable_ms)) {
        const enum err err = drain_lane_take(drain, lane, true);
        book_reader_unlock(header);
        return err;
    }
    return ERR_OK;
}

bool drain_lane_is_in_hook(const struct drain_lane *lane)
{
    // Acquire: pairs with the thread's release of its guard; its hook's stores are complete.
    return atomic_load_explicit(lane_guard(lane->reader.consumer.lane), memory_order_acquire) != 0;
}

bool drain_lane_has_book(const struct drain_lane *lane)
{
    return book_reader_has_counted(lane->reader.consumer.lane);
}

bool drain_lane_is_in_event(const struct drain_lane *lane)
{
    struct lane_header *header = lane->reader.consumer.lane;
    // Acquire: pairs with the thread's releases before it slept, and with record_no_deferred.
    return atomic_load_explicit(&header->unsent_of_handlers, memory_order_acquire) != 0 ||
           lane_reader_has_unread(&lane->reader) ||
           atomic_load_explicit(&header->producer_waiting, memory_order_acquire) != 0 ||
           atomic_load_explicit(&header->write_pos, memory_order_acquire) !=
               lane->reader.consumer.write_pos;
}

bool drain_lane_may_rest(const struct drain *drain, struct drain_lane *lane)
{
    const bool is_idle = lane->unsent_since_ms == UINT64_MAX && lane->reader.query.number == 0 &&
                         !lane_reader_has_unread(&lane->reader);
    lane->busy_ms = is_idle ? lane->busy_ms : drain->clock_ms;
    lane->has_given_back = lane->has_given_back && is_idle;
    return book_reader_is_kept(lane->reader.consumer.lane) && !lane->is_corrupt &&
           !drain_lane_is_deserted(drain, lane) && drain->clock_ms >= lane->busy_ms + REST_AFTER_MS;
}

bool drain_lane_give_back(const struct drain *drain, struct drain_lane *lane)
{
    struct lane_header *header = lane->reader.consumer.lane;
    if (!book_reader_lock(header, drain->stable_ms)) {
        return false;
    }
    const bool is_empty = book_reader_give_back(header);
    book_reader_unlock(header);
    if (is_empty) {
        lane_reader_shrink(&lane->reader);
    }
    return is_empty;
}

bool drain_lane_is_finished(struct drain *drain, struct drain_lane *lane)
{
    if (!drain->processes[lane->process].is_dead && !lane->is_done) {
        // Acquire: pairs with the release in lane_producer_close; its last records are published.
        uint32_t state =
            atomic_load_explicit(&lane->reader.consumer.lane->state, memory_order_acquire);
        if (state != LANE_CLOSED) {
            return false;
        }
    }
    if (lane->is_corrupt) {
        return true;
    }
    if (!lane->is_relieved) {
        return false; // it has ended since this pass looked at its book
    }
    // Records written after the snapshot are for the next pass.
    if (lane_consumer_refresh(&lane->reader.consumer) != ERR_OK) {
        drain_lane_distrust(drain, lane);
        return true;
    }
    return !lane_reader_has_unread(&lane->reader);
}
