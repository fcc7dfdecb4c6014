// SPDX-License-Identifier: MIT
#include "profile/growth/test_support/grammar.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "profile/growth/test_support/drawn_run.h"

#define KEEP DRAWN_NEVER

#define IS(class) (1U << GROWTH_##class)
#define RENEWED   (IS(SAWTOOTH) | IS(BURSTS) | IS(BOUNDED))
#define FILLED    (IS(STOPPED) | IS(START_UP))

enum {
    TRACKS_MAX = 2,
    BUFFERS = 24,
    CLEAR_DIVISOR = 3, // less than this part of the growing memory is no reason for a doubt
};

enum body {
    LEAK,
    STEPS,
    ARRAY,
    TABLE,
    BUFFER,
    QUEUE,
    LAST_GROWING = QUEUE,
    RING,
    SESSIONS,
    TEETH,
    BURSTS,
    LAST_RENEWED = BURSTS,
    CACHE,
    START,
    BODIES,
};

static const char *const body_names[BODIES] = {"leak",    "steps",  "array", "table",
                                               "buffers", "queue",  "ring",  "sessions",
                                               "teeth",   "bursts", "cache", "start"};

// Times are in thousandths of the time with work.
struct track {
    enum body body;
    unsigned from;
    unsigned until;
    unsigned count; // of steps, teeth, bursts, blocks: what the body counts
    unsigned units; // of a block
    unsigned entries;
    unsigned buckets;
    int blocks[DRAWN_BLOCKS_MAX]; // its own, oldest first; numbers of the run
    int first;
    int end;
    uint64_t bytes;
    uint64_t peak_bytes;
};

static struct program {
    struct track tracks[TRACKS_MAX];
    size_t count;
    unsigned gap_from; // idle; in thousandths of the run, as the next ones
    unsigned gap_until;
    unsigned idle_from;
} program;

static bool is_growing(const struct track *track)
{
    return track->body <= LAST_GROWING;
}

// A figure of a program between `low` and `high`.
static unsigned draw(uint64_t *random, unsigned low, unsigned high)
{
    *random = *random * 6364136223846793005UL + 1442695040888963407UL;
    return low + (unsigned)((*random >> 33) % (high - low + 1));
}

static void draw_track(uint64_t *random, struct track *track)
{
    track->body = (enum body)draw(random, 0, BODIES - 1);
    track->from = draw(random, 0, 2) == 0 ? draw(random, 50, 500) : 0;
    track->until = draw(random, 0, 2) == 0 ? 1000 - draw(random, 250, 450) : 1000;
    if (draw(random, 0, 9) == 0) { // all at the start
        track->from = 0;
        track->until = draw(random, 40, 110);
    }
    track->units = draw(random, 5, 60);
    track->count = draw(random, track->body == STEPS ? 9 : 4, track->body == STEPS ? 30 : 12);
}

// Allocate one block that stays until the track frees it.
static void take(struct drawn_run *run, struct track *track, unsigned units)
{
    const int block = drawn_take(run, units, KEEP);
    if (block != KEEP) {
        track->blocks[track->end++] = block;
        track->bytes += run->blocks[block].bytes;
        track->peak_bytes = track->bytes > track->peak_bytes ? track->bytes : track->peak_bytes;
    }
}

static void free_oldest(struct drawn_run *run, struct track *track)
{
    if (track->first < track->end) {
        const int block = track->blocks[track->first++];
        track->bytes -= run->blocks[block].bytes;
        drawn_free(run, block);
    }
}

static void free_all(struct drawn_run *run, struct track *track)
{
    while (track->first < track->end) {
        free_oldest(run, track);
    }
}

// Free the oldest block, and allocate a larger one.
static void replace(struct drawn_run *run, struct track *track, unsigned units)
{
    const unsigned jitter = run->jitter;
    free_oldest(run, track);
    run->jitter = jitter / 10; // each is nearly a copy of the one before
    take(run, track, units);
    run->jitter = jitter;
}

static void play_growing(struct drawn_run *run, struct track *track, bool is_step)
{
    switch (track->body) {
    case STEPS:
        if (is_step) {
            take(run, track, track->units * 10);
        }
        break;
    case ARRAY:
        replace(run, track, ++track->entries * track->units / 5 + 1);
        break;
    case TABLE:
        track->entries += 10;
        if (track->entries > track->buckets) {
            track->buckets = track->entries * 13 / 10 + 40;
            replace(run, track, track->buckets);
        }
        break;
    case BUFFER:
        if (track->end - track->first < BUFFERS) {
            take(run, track, ++track->entries);
        } else {
            replace(run, track, ++track->entries);
        }
        break;
    case QUEUE:
        for (int i = 0; i < 3; i++) {
            take(run, track, track->units);
        }
        free_oldest(run, track);
        free_oldest(run, track);
        break;
    default:
        if (drawn_below(run, 12) < track->count) {
            take(run, track, track->units);
        }
        break;
    }
}

// `part` is the time since the latest step, in thousandths of a step.
static void play_renewed(struct drawn_run *run, struct track *track, bool is_step, unsigned part)
{
    if (track->body == RING) {
        take(run, track, track->units);
        if (track->end - track->first > (int)track->count * 2) {
            free_oldest(run, track);
        }
    } else if (track->body == SESSIONS) {
        take(run, track, track->units);
        while (track->first < track->end &&
               drawn_below(run, 3 * track->count) < (unsigned)(track->end - track->first)) {
            free_oldest(run, track);
        }
    } else {
        const bool is_burst = track->body == BURSTS;
        if (is_step || (is_burst && part >= 250)) {
            free_all(run, track);
        }
        if (!is_burst || part < 250) {
            take(run, track, track->units);
        }
    }
}

static void play_stopping(struct drawn_run *run, struct track *track, unsigned done)
{
    if (track->body == START) {
        for (; track->entries < 5 * track->count; track->entries++) {
            take(run, track, track->units);
        }
    } else if (done < 30 * track->count) { // thousandths
        take(run, track, track->units);
    }
}

static void play_track(struct drawn_run *run, struct track *track, unsigned at, unsigned before)
{
    if (at < track->from || at >= track->until) {
        return;
    }
    const unsigned length = track->until - track->from;
    const unsigned step = (at - track->from) * track->count / length;
    const unsigned part = (at - track->from) * track->count * 1000 / length % 1000;
    const bool is_first = before < track->from || before == at;
    const bool is_step = is_first || step != (before - track->from) * track->count / length;
    if (is_growing(track)) {
        play_growing(run, track, is_step);
    } else if (track->body <= LAST_RENEWED) {
        play_renewed(run, track, is_step, part);
    } else {
        play_stopping(run, track, (at - track->from) * 1000 / length);
    }
}

static bool is_idle_at(unsigned at)
{
    return (at >= program.gap_from && at < program.gap_until) || at >= program.idle_from;
}

// The time with work up to a moment of the run, in thousandths of all of it.
static unsigned worked_at(unsigned at)
{
    const unsigned gap = program.gap_until - program.gap_from;
    const unsigned passed = at > program.gap_until  ? gap
                            : at > program.gap_from ? at - program.gap_from
                                                    : 0;
    return (at - passed) * 1000 / (program.idle_from - gap);
}

static void play(struct drawn_run *run)
{
    const unsigned at = drawn_at(run);
    if (run->now == 0) {
        for (size_t i = 0; i < program.count; i++) {
            struct track *track = &program.tracks[i];
            track->first = track->end = 0;
            track->entries = track->buckets = 0;
            track->bytes = track->peak_bytes = 0;
        }
    }
    run->is_idle = is_idle_at(at);
    if (run->is_idle) {
        return;
    }
    const unsigned before =
        run->now > 0 ? (unsigned)((long)(run->now - 1) * 1000 / run->ticks) : at;
    for (size_t i = 0; i < program.count; i++) {
        play_track(run, &program.tracks[i], worked_at(at), worked_at(before));
    }
}

bool grammar_is_clear(void)
{
    uint64_t growing_bytes = 0;
    uint64_t other_bytes = 0;
    for (size_t i = 0; i < program.count; i++) {
        const struct track *track = &program.tracks[i];
        const bool grows = is_growing(track) && track->until == 1000;
        growing_bytes += grows ? track->bytes : 0;
        other_bytes += grows ? 0 : track->peak_bytes;
    }
    return growing_bytes == 0 || other_bytes < growing_bytes / CLEAR_DIVISOR;
}

void grammar_draw(uint64_t seed, struct grammar_program *out)
{
    uint64_t random = seed * 0x9e3779b97f4a7c15 + 77;
    (void)draw(&random, 0, 1);
    program.count = draw(&random, 0, 2) == 0 ? 2 : 1;
    for (size_t i = 0; i < program.count; i++) {
        draw_track(&random, &program.tracks[i]);
    }
    program.idle_from = draw(&random, 0, 3) == 0 ? 1000 - draw(&random, 50, 400) : 1000;
    program.gap_from = program.gap_until = 0;
    if (draw(&random, 0, 4) == 0) {
        program.gap_from = draw(&random, 200, 500);
        program.gap_until = program.gap_from + draw(&random, 50, 250);
    }
    unsigned classes = 0;
    size_t len = 0;
    out->name[0] = '\0';
    for (size_t i = 0; i < program.count; i++) {
        const struct track *track = &program.tracks[i];
        const bool is_to_end = track->until == 1000;
        const unsigned truth = is_growing(track) && is_to_end ? IS(GROWING)
                               : is_growing(track)            ? FILLED
                               : track->body > LAST_RENEWED   ? FILLED
                               : is_to_end                    ? RENEWED
                                                              : RENEWED | FILLED;
        // What grows decides; grammar_is_clear demands that it has the most.
        classes = truth == IS(GROWING) || classes == IS(GROWING) ? IS(GROWING) : classes | truth;
        len += (size_t)snprintf(out->name + len, sizeof(out->name) - len, "%s%s %u to %u (%u x %u)",
                                i > 0 ? " + " : "", body_names[track->body], track->from,
                                track->until, track->count, track->units);
    }
    (void)snprintf(out->name + len, sizeof(out->name) - len, ", gap %u to %u, idle from %u",
                   program.gap_from, program.gap_until, program.idle_from);
    out->pattern.name = out->name;
    out->pattern.play = play;
    out->pattern.classes = classes;
}
