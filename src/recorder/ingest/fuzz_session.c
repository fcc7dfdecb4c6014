// SPDX-License-Identifier: MIT
// fuzz_session: a program that writes anything, anywhere, into the memory it shares with the
// recorder.
//
// The input is a program of small steps (enum step), each a byte and its operands: join, open a
// lane, send words as records, write eight bytes anywhere in the header, the slots or the first
// lanes, let time pass, close. The recorder drains after each tick. After any input the aggregator
// must make a recording that keeps every invariant of recording_check: a hostile program may spoil
// its own figures, never the file. Seeds: tests/fuzz/corpus/session, written by
// tests/fuzz/session_seeds.py.
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/cursor.h"
#include "recorder/ingest/drain.h"
#include "recorder/output/aggregator_snapshot.h"
#include "recorder/session/session_create.h"
#include "recording/test_support/recording_check.h"
#include "session/wire.h"

enum step {
    STEP_JOIN,     // slot 8, flags 8, whether it lives 8
    STEP_OPEN,     // lane 8, slot 8
    STEP_SEND,     // lane 8, words 8, that many words
    STEP_SCRIBBLE, // where 32, eight bytes
    STEP_TICK,     // milliseconds 8
    STEP_CLOSE,    // lane 8
    STEP_COUNT
};

enum {
    LANES = 4,
    SLOTS = 4,
    STEPS_MAX = 2000,
    WORDS_MAX = 64,
    DEAD_PID = 0x3ffffffe, // beyond any kernel's pid_max
};

struct victim {
    struct session session;
    struct aggregator aggregator;
    struct drain drain;
    uint64_t clock_ms;
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct lane_header *lane_at(struct victim *v, uint8_t number)
{
    return session_lane(v->session.memory, number % LANES);
}

static void step_join(struct victim *v, struct cursor *input)
{
    struct process_slot *slot = session_process(v->session.memory, cursor_u8(input) % SLOTS);
    slot->flags = cursor_u8(input);
    slot->pid = cursor_u8(input) % 2 == 0 ? (uint32_t)getpid() : DEAD_PID;
    slot->start_ms = v->clock_ms;
    slot->join_number = atomic_fetch_add(&v->session.header->join_count, 1);
    atomic_store(&slot->state, PROCESS_ACTIVE);
}

static void step_open(struct victim *v, struct cursor *input)
{
    uint8_t number = cursor_u8(input) % LANES;
    struct lane_header *lane = session_lane(v->session.memory, number);
    atomic_fetch_or(&v->session.header->lane_bitmap[0], 1ULL << number);
    lane->process_index = cursor_u8(input) % (SLOTS + 1);
    lane->thread_id = (uint32_t)getpid();
    lane->start_ms = v->clock_ms;
    atomic_store(&lane->ring_bytes, LANE_RING_BYTES_MIN);
    atomic_store(&lane->state, LANE_ACTIVE);
}

static void step_send(struct victim *v, struct cursor *input)
{
    struct lane_header *lane = lane_at(v, cursor_u8(input));
    uint32_t count = cursor_u8(input) % WORDS_MAX;
    uint64_t at = atomic_load(&lane->write_pos);
    for (uint32_t i = 0; i < count; i++, at += sizeof(uint64_t)) {
        uint64_t word = cursor_u64(input);
        memcpy(lane_ring(lane) + at % LANE_RING_BYTES_MIN / 8 * 8, &word, sizeof(word));
    }
    atomic_store(&lane->write_pos, at);
}

// Write anywhere in the header, the slots or the lanes that are in use, ring and producer's state
// included.
static void step_scribble(struct victim *v, struct cursor *input)
{
    uint32_t where = cursor_u32(input);
    uint64_t word = cursor_u64(input);
    uint64_t room = SESSION_LANES_OFFSET + (uint64_t)LANES * LANE_STRIDE;
    memcpy((uint8_t *)v->session.memory + (where % room & ~7ULL), &word, sizeof(word));
}

static MUST_USE enum err pass(struct victim *v, uint64_t milliseconds, bool is_last)
{
    bool was_busy;
    drain_find_dead(&v->drain);
    v->clock_ms += milliseconds;
    atomic_store(&v->session.header->clock_ms, v->clock_ms);
    return drain_pass(&v->drain, v->clock_ms, is_last, &was_busy);
}

static MUST_USE enum err play(struct victim *v, struct cursor *input)
{
    for (int i = 0; i < STEPS_MAX && cursor_left(input) > 0; i++) {
        switch (cursor_u8(input) % STEP_COUNT) {
        case STEP_JOIN:
            step_join(v, input);
            break;
        case STEP_OPEN:
            step_open(v, input);
            break;
        case STEP_SEND:
            step_send(v, input);
            break;
        case STEP_SCRIBBLE:
            step_scribble(v, input);
            break;
        case STEP_TICK:
            TRY(pass(v, cursor_u8(input), false));
            break;
        default:
            atomic_store(&lane_at(v, cursor_u8(input))->state, LANE_CLOSED);
            break;
        }
    }
    TRY(pass(v, 1, false));
    return pass(v, 1, true);
}

static void check_recording(struct victim *v)
{
    CLEANUP(aggregator_snapshot_release) struct aggregator_snapshot snapshot = {0};
    CLEANUP(recording_findings_release) struct recording_findings findings = {0};
    const struct aggregator_snapshot_facts facts = {.state = REC_STATE_FINISHED,
                                                    .exit_status = -1,
                                                    .runtime_ms = v->clock_ms,
                                                    .tool_version = "fuzz",
                                                    .program = "/fuzz",
                                                    .argv = (char *[]){NULL}};
    if (aggregator_snapshot_take(&v->aggregator, NULL, NULL, &facts, &snapshot) != ERR_OK ||
        recording_check(&snapshot.recording, &findings) != ERR_OK) {
        return; // no memory
    }
    for (size_t i = 0; i < INVARIANT_COUNT; i++) {
        if (findings.counts[i] > 0) {
            abort();
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct victim victim;
    const struct session_options options = {.flags = SESSION_FOLLOW_CHILDREN, .max_frames = 64};
    victim = (struct victim){.clock_ms = 1};
    if (session_create(&options, &victim.session, NULL) != ERR_OK) {
        abort();
    }
    atomic_store(&victim.session.header->state, SESSION_RUNNING);
    if (aggregator_init(&victim.aggregator) != ERR_OK ||
        drain_init(&victim.drain, &victim.session, &victim.aggregator, NULL) != ERR_OK) {
        abort();
    }
    struct cursor input = cursor_over((struct bytes){.data = data, .len = size});
    enum err problem = play(&victim, &input);
    if (problem == ERR_OK) {
        check_recording(&victim);
    } else if (problem != ERR_LIMIT && problem != ERR_NO_MEMORY) {
        abort(); // a program's writes must not cause an error
    }
    drain_release(&victim.drain);
    aggregator_release(&victim.aggregator);
    session_release(&victim.session);
    return 0;
}
