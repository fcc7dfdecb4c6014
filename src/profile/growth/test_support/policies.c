// SPDX-License-Identifier: MIT
#include "profile/growth/test_support/policies.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "profile/growth/test_support/drawn_run.h"

#define KEEP DRAWN_NEVER

enum {
    KEYS_MAX = 2048,
    STRINGS = 16,
    LOST_MIN = 12, // blocks: fewer are no reason for a verdict
    STACKS = 3,
    WHOLE = 1000,
};

enum policy {
    LIVES_RANDOM,
    LIVES_EQUAL,
    LAST_LIVES = LIVES_EQUAL,
    CACHE,
    EVICTED,
    ELASTIC,
    COLLECTED,
    JOBS,
    CONNECTIONS,
    LAST_TIGHT = CONNECTIONS, // without a leak
    NEW_KEYS,
    BACKLOG,
    SURVIVORS,
    LONGER_LIVES,
    STRINGS_GROW,
    JOBS_WITH_REST,
    POLICIES,
};

enum pace {
    EVEN,
    WAVES,
    ON_OFF,
    RARE,
    RISING,
    PACES,
};

enum sizes {
    EQUAL,
    UNIFORM,
    FEW_LARGE,
    POWERS,
    SIZES,
};

static const char *const policy_names[POLICIES] = {
    "lives",     "equal lives",  "cache",       "evicted",     "elastic",
    "collected", "jobs",         "connections", "new keys",    "backlog",
    "survivors", "longer lives", "strings",     "rest of jobs"};
static const char *const pace_names[PACES] = {"even", "waves", "on and off", "rare", "rising"};
static const char *const size_names[SIZES] = {"equal", "uniform", "few large", "powers"};

static struct program {
    enum policy policy;
    enum pace pace;
    enum sizes sizes;
    unsigned rate;      // blocks in a tick
    unsigned units;     // of a block
    unsigned part;      // of the run, or of the rate, as the policy has it
    unsigned waves;     // in the run
    unsigned lost_of;   // one of as many is never freed; 0: none
    unsigned start;     // blocks of the start
    unsigned idle_from; // in thousandths of the run
} program;

static struct state {
    int blocks[DRAWN_BLOCKS_MAX]; // those that the policy frees, oldest first
    int first;
    int end;
    int keys[KEYS_MAX];
    unsigned lengths[STRINGS]; // of strings, used and taken
    unsigned rooms[STRINGS];
    int until; // tick: of a job, or of a pace
    bool is_on;
    int walk;
    uint64_t lost_bytes;
    uint64_t rest_peak_bytes;
    unsigned lost_blocks;
} state;

static unsigned draw(uint64_t *random, unsigned low, unsigned high)
{
    *random = *random * 6364136223846793005UL + 1442695040888963407UL;
    return low + (unsigned)((*random >> 33) % (high - low + 1));
}

static int held(void)
{
    return state.end - state.first;
}

// All blocks of the run at an even pace, divided.
static int all_blocks(const struct drawn_run *run, unsigned divisor)
{
    const int all = run->ticks * (int)program.rate / (int)divisor;
    return all > 4 ? all : 4;
}

static int ticks_of(const struct drawn_run *run, unsigned divisor)
{
    const int ticks = run->ticks / (int)divisor;
    return ticks > 1 ? ticks : 1;
}

static unsigned size_of(struct drawn_run *run)
{
    switch (program.sizes) {
    case UNIFORM:
        return 1 + drawn_below(run, 2 * program.units);
    case FEW_LARGE:
        return drawn_below(run, 16) == 0 ? program.units * 12 : program.units;
    case POWERS:
        return 1U + (program.units / 4 << drawn_below(run, 5));
    default:
        return program.units;
    }
}

static int take(struct drawn_run *run, unsigned units, int ticks)
{
    run->stack = drawn_below(run, STACKS);
    const bool is_lost = program.lost_of > 0 && drawn_below(run, program.lost_of) == 0;
    const int block = drawn_take(run, units, is_lost ? KEEP : ticks);
    if (is_lost && block != KEEP) {
        state.lost_bytes += run->blocks[block].bytes;
        state.lost_blocks++;
        return KEEP;
    }
    return block;
}

static void keep(struct drawn_run *run)
{
    const int block = take(run, size_of(run), KEEP);
    if (block != KEEP) {
        state.blocks[state.end++] = block;
    }
}

static void free_oldest(struct drawn_run *run)
{
    if (held() > 0) {
        drawn_free(run, state.blocks[state.first++]);
    }
}

static void free_any(struct drawn_run *run)
{
    if (held() > 0) {
        const int at = state.first + (int)drawn_below(run, (unsigned)held());
        const int chosen = state.blocks[at];
        state.blocks[at] = state.blocks[state.first];
        state.blocks[state.first] = chosen;
        free_oldest(run);
    }
}

static void free_until(struct drawn_run *run, int left)
{
    while (held() > left) {
        free_oldest(run);
    }
}

// Between 0 and 2000, `program.waves` times.
static unsigned wave_at(const struct drawn_run *run)
{
    const unsigned phase = drawn_at(run) * program.waves * 4 % (4 * WHOLE);
    return phase < 2 * WHOLE ? phase : 4 * WHOLE - phase;
}

static unsigned blocks_now(struct drawn_run *run)
{
    switch (program.pace) {
    case WAVES:
        return program.rate * wave_at(run) / WHOLE + drawn_below(run, 2);
    case ON_OFF:
        if (run->now >= state.until) {
            state.is_on = !state.is_on;
            state.until = run->now + 1 + (int)drawn_below(run, (unsigned)ticks_of(run, 15));
        }
        return state.is_on ? 2 * program.rate : 0;
    case RARE:
        return drawn_below(run, 8) == 0 ? 8 * program.rate : 0;
    case RISING:
        return program.rate * (500 + drawn_at(run)) / WHOLE + drawn_below(run, 2);
    default:
        return program.rate;
    }
}

static void ask_cache(struct drawn_run *run, unsigned keys)
{
    const unsigned one = drawn_below(run, keys);
    const unsigned other = drawn_below(run, keys);
    const unsigned key = one < other || drawn_below(run, 2) == 0 ? one : other;
    if (state.keys[key] != KEEP && drawn_below(run, 5) > 0) {
        return;
    }
    drawn_free(run, state.keys[key]);
    state.keys[key] = take(run, size_of(run), KEEP);
}

static void end_job(struct drawn_run *run, int kept_of)
{
    for (int i = 0; held() > 0; i++) {
        if (kept_of > 0 && i % kept_of == 0) {
            state.lost_blocks++;
            state.lost_bytes += run->blocks[state.blocks[state.first++]].bytes;
        } else {
            free_oldest(run);
        }
    }
}

static void append(struct drawn_run *run)
{
    const unsigned which = drawn_below(run, STRINGS);
    state.lengths[which] += size_of(run);
    if (state.lengths[which] > state.rooms[which]) {
        state.rooms[which] = state.lengths[which] * 3 / 2;
        state.keys[which] = drawn_resize(run, state.keys[which], state.rooms[which]);
    }
}

// One request of the program.
static void serve(struct drawn_run *run)
{
    const int quarter = all_blocks(run, 4 * program.part);
    switch (program.policy) {
    case LIVES_RANDOM: {
        const int longest = ticks_of(run, 2 * program.part);
        (void)take(run, size_of(run), 1 + (int)drawn_below(run, (unsigned)longest));
        break;
    }
    case LIVES_EQUAL:
        (void)take(run, size_of(run), ticks_of(run, 3 * program.part));
        break;
    case LONGER_LIVES:
        (void)take(run, size_of(run), 1 + run->now / 2);
        break;
    case CACHE: {
        const int keys = all_blocks(run, 12);
        ask_cache(run, keys < KEYS_MAX ? (unsigned)keys : KEYS_MAX);
        break;
    }
    case EVICTED:
        keep(run);
        while (held() > quarter) {
            free_any(run);
        }
        break;
    case ELASTIC:
        keep(run);
        free_until(run, quarter * (int)(WHOLE + wave_at(run) / 2) / (2 * WHOLE));
        break;
    case COLLECTED:
        keep(run);
        if (held() > 2 * quarter) {
            free_until(run, quarter / 2);
        }
        break;
    case SURVIVORS:
        keep(run);
        if (held() > state.walk + 2 * quarter) {
            state.walk += quarter;
            while (held() > state.walk) {
                free_any(run);
            }
        }
        break;
    case NEW_KEYS:
        if (drawn_below(run, program.part) == 0) {
            keep(run);
        }
        break;
    case BACKLOG:
        keep(run);
        if (drawn_below(run, program.part + 3) > 0) {
            free_oldest(run);
        }
        break;
    case STRINGS_GROW:
        append(run);
        break;
    default:
        keep(run);
        break;
    }
}

// Connections come and go, whatever the pace.
static void walk(struct drawn_run *run)
{
    const int most = 20 + 10 * (int)program.part;
    for (unsigned i = 0; i < program.rate * 2; i++) {
        const bool comes = drawn_below(run, (unsigned)most) >= (unsigned)held();
        if (comes) {
            keep(run);
        } else {
            free_any(run);
        }
    }
}

static void begin(struct drawn_run *run)
{
    memset(&state, 0, sizeof(state));
    for (size_t i = 0; i < KEYS_MAX; i++) {
        state.keys[i] = KEEP;
    }
    run->stack = STACKS;
    for (unsigned i = 0; i < program.start; i++) {
        (void)drawn_take(run, program.units, KEEP);
    }
}

static void play(struct drawn_run *run)
{
    if (run->now == 0) {
        begin(run);
    }
    run->is_idle = drawn_at(run) >= program.idle_from;
    if (run->is_idle) {
        return;
    }
    const bool has_jobs = program.policy == JOBS || program.policy == JOBS_WITH_REST;
    if (has_jobs && program.pace != ON_OFF && run->now >= state.until) {
        end_job(run, program.policy == JOBS_WITH_REST ? (int)program.part + 1 : 0);
        state.until = run->now + 1 + (int)drawn_below(run, (unsigned)ticks_of(run, 10));
    }
    if (program.policy == CONNECTIONS) {
        walk(run);
    }
    const unsigned blocks = program.policy == CONNECTIONS ? 0 : blocks_now(run);
    for (unsigned i = 0; i < blocks; i++) {
        serve(run);
    }
    const uint64_t rest_bytes = run->level - state.lost_bytes;
    state.rest_peak_bytes = rest_bytes > state.rest_peak_bytes ? rest_bytes : state.rest_peak_bytes;
}

bool policies_are_clear(void)
{
    const bool has_loss = program.lost_of > 0 || program.policy == JOBS_WITH_REST;
    return !has_loss ||
           (state.lost_blocks >= LOST_MIN && state.lost_bytes >= state.rest_peak_bytes);
}

void policies_draw(uint64_t seed, struct policy_program *out)
{
    uint64_t random = seed * 0x9e3779b97f4a7c15 + 12345;
    (void)draw(&random, 0, 1);
    program = (struct program){
        .policy = (enum policy)draw(&random, 0, POLICIES - 1),
        .pace = (enum pace)draw(&random, 0, PACES - 1),
        .sizes = (enum sizes)draw(&random, 0, SIZES - 1),
        .rate = draw(&random, 1, 5),
        .units = draw(&random, 4, 40),
        .part = draw(&random, 2, 6),
        .waves = draw(&random, 5, 14),
        .start = draw(&random, 0, 2) == 0 ? draw(&random, 10, 120) : 0,
        .idle_from = draw(&random, 0, 3) == 0 ? draw(&random, 600, 950) : WHOLE,
    };
    const bool is_tight = program.policy <= LAST_TIGHT;
    const bool has_jobs = program.policy == JOBS || program.policy == JOBS_WITH_REST;
    const bool follows = program.policy <= LAST_LIVES;      // the level follows the pace
    const bool has_timers = program.policy == LONGER_LIVES; // they free while nothing is allocated
    if ((follows && program.pace == RISING) || (has_jobs && program.pace == ON_OFF) ||
        (has_timers && program.pace == ON_OFF)) {
        program.pace = EVEN;
    }
    program.idle_from = has_timers ? WHOLE : program.idle_from;
    program.lost_of = is_tight && draw(&random, 0, 2) == 0 ? draw(&random, 3, 20) : 0;
    const bool leaks = !is_tight || program.lost_of > 0;
    (void)snprintf(out->name, sizeof(out->name),
                   "%s/%u, %s x %u, %s x %u, lost 1 of %u, start %u, idle from %u%s",
                   policy_names[program.policy], program.part, pace_names[program.pace],
                   program.rate, size_names[program.sizes], program.units, program.lost_of,
                   program.start, program.idle_from, leaks ? ": leaks" : "");
    out->pattern = (struct drawn_pattern){
        .name = out->name,
        .play = play,
        .classes = leaks ? 1U << GROWTH_GROWING | 1U << GROWTH_LATE : ~(1U << GROWTH_GROWING),
    };
}
