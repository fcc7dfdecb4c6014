// SPDX-License-Identifier: MIT
// Words of blocks against a list that is searched from end to end, with addresses as four kinds of
// allocators give them out: each free finds its block, and each put ends what is stale.
#include "target/producer/words/live_words.h"
#include "target/producer/words/row_numbers.h"

#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "target/producer/words/test_words_heap.h"

enum {
    BLOCKS_MAX = 2048,
    ROWS = 50,
    EVENTS = 15000, // births are their numbers
    THREADS = 4,
    THREAD_EVENTS = 60000,
    SLOTS = 1024,
};

struct live_block {
    uint64_t address;
    uint64_t size_bytes;
    struct word_block expected; // row 0: not recorded
};

struct script {
    int fd;
    struct process_words *words;
    struct test_heap heap;
    struct naive_words naive;
    struct live_block blocks[BLOCKS_MAX];
    uint32_t block_count;
    uint32_t ended_count;
    uint64_t random;
    uint32_t birth;
};

static void open_words(int *fd, struct process_words **words, const _Atomic uint32_t *tiny_below)
{
    const struct words_source source = {.open = words_file_again, .context = fd};
    *fd = words_file_new();
    *words = process_words_new();
    assert_non_null(*words);
    assert_int_equal(process_words_open(*words, &source, 1, tiny_below), ERR_OK);
}

static struct script *script_new(enum test_allocator allocator, uint64_t seed)
{
    struct script *s = calloc(1, sizeof(*s));
    assert_non_null(s);
    s->random = seed * 77 + 1;
    heap_init(&s->heap, allocator);
    s->naive.base = s->heap.base;
    const _Atomic uint32_t *tiny_below = heap_tiny_below(allocator);
    s->naive.tiny_below = allocator == ALLOCATOR_CUSTOM ? WORDS_TINY_SMALL
                          : tiny_below != NULL          ? *tiny_below
                                                        : WORDS_TINY_NEVER;
    open_words(&s->fd, &s->words, tiny_below);
    return s;
}

static void script_free(struct script *s)
{
    (void)close(s->fd);
    free(s);
}

static void put(struct script *s, const struct word_block *block)
{
    struct words_ended found;
    struct word_block expected[NAIVE_MAX];
    const uint32_t count = naive_put(&s->naive, block, expected);
    assert_true(words_put(s->words, block, &found));
    assert_int_equal(found.count, count);
    for (uint32_t i = 0; i < count; i++) {
        bool is_found = false;
        for (uint32_t k = 0; k < count; k++) {
            is_found |= is_same_block(&found.blocks[k], &expected[i]);
        }
        assert_true(is_found);
    }
    s->ended_count += count;
}

static void take(struct script *s, uint64_t address, const struct word_block *block)
{
    struct word_block found = {0};
    struct word_block expected = {0};
    const bool is_there = naive_take(&s->naive, address, &expected);
    assert_int_equal(words_take(s->words, address, &found), is_there);
    assert_true(is_same_block(&found, &expected));
    assert_int_equal(is_there, block->row != 0);
    assert_true(!is_there || is_same_block(&found, block));
}

static void allocate(struct script *s)
{
    const uint64_t r = next_random(&s->random);
    const uint64_t size = random_size(&s->random);
    const uint64_t address =
        s->block_count < BLOCKS_MAX ? heap_take(&s->heap, size, &s->random) : 0;
    if (address == 0) {
        return;
    }
    const uint32_t row = r % 16 == 0   ? 0
                         : r % 16 == 1 ? WORD_ROW_MAX
                                       : 1 + (uint32_t)(r >> 8) % ROWS;
    struct live_block *block = &s->blocks[s->block_count++];
    *block = (struct live_block){
        .address = address,
        .size_bytes = size,
        .expected = {.address = address, .size_bytes = size, .row = row, .birth_ms = s->birth}};
    put(s, &block->expected);
    block->expected.row = row;
}

static void release(struct script *s, uint32_t i, bool is_past_the_hooks)
{
    const struct live_block block = s->blocks[i];
    s->blocks[i] = s->blocks[--s->block_count];
    if (!is_past_the_hooks) {
        take(s, block.address, &block.expected);
    }
    heap_give(&s->heap, block.address, block.size_bytes);
}

// A realloc whose call fails: the block stays, with its word.
static void reallocate_in_vain(struct script *s, const struct live_block *block)
{
    take(s, block->address, &block->expected);
    if (block->expected.row != 0) {
        put(s, &block->expected);
    }
}

static void step(struct script *s)
{
    const uint64_t r = next_random(&s->random);
    if (s->block_count == 0 || r % 100 < 48) {
        allocate(s);
        return;
    }
    const uint32_t i = (uint32_t)(r >> 20) % s->block_count;
    if (r % 100 < 85) {
        release(s, i, false);
    } else if (r % 100 < 92) {
        release(s, i, true);
    } else {
        reallocate_in_vain(s, &s->blocks[i]);
    }
}

static void each_free_finds_its_block(void **state)
{
    (void)state;
    for (uint32_t allocator = 0; allocator < ALLOCATOR_COUNT; allocator++) {
        struct script *s = script_new(allocator, allocator + 1);
        for (s->birth = 0; s->birth < EVENTS; s->birth++) {
            step(s);
        }
        while (s->block_count > 0) {
            release(s, s->block_count - 1, false);
        }
        assert_true(s->ended_count > EVENTS / 100); // stale words were met
        script_free(s);
    }
}

// The word of a block of each size, alone.
static void sizes_are_exact(void **state)
{
    (void)state;
    int fd;
    struct process_words *words;
    open_words(&fd, &words, heap_tiny_below(ALLOCATOR_CLASSES));
    static const uint64_t sizes[] = {0,    1,    16,     17,     255,     256,
                                     4095, 4096, 131071, 131072, 1 << 20, 1ULL << 40};
    for (uint32_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        for (uint64_t start = 0; start < 4096; start += 8) {
            const struct word_block block = {.address = 0x7fff00000000 + start,
                                             .size_bytes = sizes[i],
                                             .row = WORD_ROW_MAX,
                                             .birth_ms = BIRTH_EXACT_MS - 1};
            struct words_ended ended;
            struct word_block found = {0};
            assert_true(words_put(words, &block, &ended));
            assert_int_equal(ended.count, 0);
            for (uint64_t other = start & ~(uint64_t)31; other < start + 32; other++) {
                assert_true(other == start || !words_take(words, 0x7fff00000000 + other, &found));
            }
            assert_true(words_take(words, block.address, &found));
            assert_true(is_same_block(&found, &block));
            assert_false(words_take(words, block.address, &found));
        }
    }
    (void)close(fd);
}

static void what_has_no_place_is_refused(void **state)
{
    (void)state;
    int fd;
    struct process_words *words;
    struct words_ended ended;
    struct word_block found = {0};
    open_words(&fd, &words, NULL);
    static const uint64_t addresses[] = {0x7f0000000004, 1ULL << ADDRESS_BITS_ARCH, 1ULL << 56,
                                         1ULL << 63, UINT64_MAX & ~(uint64_t)7};
    for (uint32_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        const struct word_block block = {.address = addresses[i], .size_bytes = 40, .row = 1};
        assert_false(words_put(words, &block, &ended));
        assert_int_equal(ended.count, 0);
        assert_false(words_take(words, addresses[i], &found));
    }
    // The highest that has one.
    const struct word_block highest = {
        .address = (1ULL << ADDRESS_BITS_ARCH) - 4096, .size_bytes = 40, .row = 1};
    assert_true(words_put(words, &highest, &ended));
    assert_true(words_take(words, highest.address, &found));
    // Blocks of malloc and of the program's own allocator do not meet.
    const struct word_block own = {
        .address = 0x7f0000000000 | WIRE_CUSTOM_BLOCK, .size_bytes = 5000, .row = 7};
    assert_true(words_put(words, &own, &ended));
    assert_false(words_take(words, 0x7f0000000000, &found));
    assert_true(words_take(words, own.address, &found));
    // The regions of the process's group are mapped, and no group is left.
    memset(words->file->groups, 0xff, sizeof(words->file->groups));
    atomic_store(&words->taken, WORDS_GROUP);
    const struct word_block more = {.address = 0x600000000000, .size_bytes = 40, .row = 1};
    assert_false(words_put(words, &more, &ended));
    assert_false(words_take(words, more.address, &found));
    (void)close(fd);
}

static void an_unrecorded_block_leaves_no_word(void **state)
{
    (void)state;
    int fd;
    struct process_words *words;
    struct words_ended ended;
    open_words(&fd, &words, NULL);
    for (uint64_t size = 0; size < 10000; size += 200) {
        const struct word_block block = {.address = 0x7f0000000008, .size_bytes = size};
        assert_true(words_put(words, &block, &ended));
        const struct words_at at =
            words_at(process_words_find(words, block.address), block.address);
        assert_true((word_load(at.fine) | word_load(at.middle) | word_load(at.coarse)) == 0);
    }
    (void)close(fd);
}

// Two threads have read a stale word, and one of them has put a block of its own in that place.
static void a_stale_word_ends_once(void **state)
{
    (void)state;
    int fd;
    struct process_words *words;
    struct words_ended ended;
    struct word_block found = {0};
    open_words(&fd, &words, NULL);
    const struct word_block old = {.address = 0x7f0000000010, .size_bytes = 1 << 20, .row = 1};
    const struct word_block fresh = {.address = 0x7f0000000020, .size_bytes = 5000, .row = 2};
    assert_true(words_put(words, &old, &ended));
    const struct words_at at = words_at(process_words_find(words, old.address), old.address);
    const uint64_t seen = word_load(at.coarse);
    assert_true(words_put(words, &fresh, &ended));
    assert_int_equal(ended.count, 1);
    assert_true(is_same_block(&ended.blocks[0], &old));
    words_end_stale(&at, at.coarse, seen, old.address, WORDS_COARSE_BITS, &ended);
    assert_int_equal(ended.count, 1);
    assert_true(words_take(words, fresh.address, &found));
    assert_true(is_same_block(&found, &fresh));
    (void)close(fd);
}

// Threads that hand blocks to each other by slots. The lock is the allocator's.
struct shared {
    struct process_words *words;
    struct test_heap heap;
    pthread_mutex_t lock;
    _Atomic(struct live_block *) slots[SLOTS];
    atomic_uint wrong;
    atomic_long rows[ROWS + 1]; // blocks whose words are there, by the threads' events
};

struct worker {
    struct shared *on;
    pthread_t thread;
    uint64_t random;
};

static void end_blocks(struct shared *on, const struct words_ended *ended)
{
    for (uint32_t i = 0; i < ended->count; i++) {
        atomic_fetch_sub(&on->rows[ended->blocks[i].row], 1);
    }
}

static struct live_block *make_shared(struct worker *w)
{
    struct shared *on = w->on;
    const uint64_t size = random_size(&w->random);
    (void)pthread_mutex_lock(&on->lock);
    const uint64_t address = heap_take(&on->heap, size, &w->random);
    (void)pthread_mutex_unlock(&on->lock);
    struct live_block *block = address != 0 ? calloc(1, sizeof(*block)) : NULL;
    if (block == NULL) {
        return NULL;
    }
    const uint32_t row = 1 + (uint32_t)next_random(&w->random) % ROWS;
    struct words_ended ended;
    *block =
        (struct live_block){.address = address,
                            .size_bytes = size,
                            .expected = {.address = address,
                                         .size_bytes = size,
                                         .row = row,
                                         .birth_ms = next_random(&w->random) % BIRTH_EXACT_MS}};
    on->wrong += !words_put(on->words, &block->expected, &ended);
    end_blocks(on, &ended);
    atomic_fetch_add(&on->rows[row], 1);
    return block;
}

static void release_shared(struct worker *w, struct live_block *block)
{
    struct shared *on = w->on;
    struct word_block found = {0};
    const uint64_t r = next_random(&w->random);
    if (block == NULL) {
        return;
    }
    if (r % 16 != 0) {
        on->wrong += !words_take(on->words, block->address, &found) ||
                     !is_same_block(&found, &block->expected);
        if (r % 16 == 1) { // a realloc that fails
            struct words_ended ended;
            on->wrong += !words_put(on->words, &found, &ended) || ended.count != 0 ||
                         !words_take(on->words, block->address, &found) ||
                         !is_same_block(&found, &block->expected);
        }
        atomic_fetch_sub(&on->rows[block->expected.row], 1);
    }
    (void)pthread_mutex_lock(&on->lock);
    heap_give(&on->heap, block->address, block->size_bytes);
    (void)pthread_mutex_unlock(&on->lock);
    free(block);
}

static void *work(void *context)
{
    struct worker *w = context;
    for (uint32_t i = 0; i < THREAD_EVENTS; i++) {
        struct live_block *fresh = next_random(&w->random) % 2 != 0 ? make_shared(w) : NULL;
        const uint64_t slot = next_random(&w->random) % SLOTS;
        release_shared(w, atomic_exchange(&w->on->slots[slot], fresh));
    }
    return NULL;
}

static void count_word(struct shared *on, uint64_t word)
{
    if (word_row(word) != 0) {
        atomic_fetch_sub(&on->rows[word_row(word)], 1);
    }
}

// Subtract the words that are left from the counts of their rows.
static void count_words(struct shared *on)
{
    for (uint64_t at = on->heap.base; at < on->heap.base + HEAP_BYTES; at += 8) {
        struct words_region *region = process_words_find(on->words, at);
        const struct words_at words = words_at(region, at);
        if (at % 4096 == 0) {
            count_word(on, word_load(words.coarse));
        }
        if (at % 256 == 0) {
            count_word(on, word_load(words.middle));
        }
        if (at % 32 == 0) {
            count_word(on, word_load(words.fine));
        }
        if (heap_tiny_below(on->heap.allocator) != NULL) {
            count_word(on, word_load(words.tiny));
        }
    }
}

static void threads_pair_each_others_blocks(void **state)
{
    (void)state;
    for (uint32_t allocator = 0; allocator <= ALLOCATOR_SLOTS; allocator++) {
        struct shared *on = calloc(1, sizeof(*on));
        struct worker workers[THREADS];
        int fd;
        assert_non_null(on);
        heap_init(&on->heap, allocator);
        open_words(&fd, &on->words, heap_tiny_below(allocator));
        assert_int_equal(pthread_mutex_init(&on->lock, NULL), 0);
        for (uint32_t i = 0; i < THREADS; i++) {
            workers[i] = (struct worker){.on = on, .random = 1000 * allocator + i + 1};
            assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
        }
        for (uint32_t i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        }
        for (uint32_t i = 0; i < SLOTS; i++) {
            release_shared(&workers[0], atomic_exchange(&on->slots[i], NULL));
        }
        count_words(on);
        assert_int_equal(atomic_load(&on->wrong), 0);
        for (uint32_t i = 0; i <= ROWS; i++) {
            assert_int_equal(atomic_load(&on->rows[i]), 0);
        }
        (void)close(fd);
        free(on);
    }
}

// Handlers in the middle of a put or take.
static struct {
    struct process_words *words;
    uint64_t base;
    volatile uint32_t calls;
    volatile uint32_t wrong;
} g_handled;

static void handle(int number)
{
    (void)number;
    for (uint32_t i = 0; i < 4; i++) { // in all tables, between the interrupted function's blocks
        static const uint64_t sizes[] = {8, 100, 300, 5000};
        const struct word_block block = {.address = g_handled.base + (uint64_t)i * 8192 + 8,
                                         .size_bytes = sizes[i],
                                         .row = 9 + i};
        struct words_ended ended;
        struct word_block found = {0};
        g_handled.wrong += !words_put(g_handled.words, &block, &ended) || ended.count != 0;
        g_handled.wrong +=
            !words_take(g_handled.words, block.address, &found) || !is_same_block(&found, &block);
    }
    g_handled.calls++;
}

static void a_handler_changes_no_other_word(void **state)
{
    (void)state;
    int fd;
    const struct itimerval often = {{.tv_usec = 100}, {.tv_usec = 100}};
    const struct itimerval never = {{0}, {0}};
    const struct sigaction action = {.sa_handler = handle};
    struct sigaction before;
    open_words(&fd, &g_handled.words, heap_tiny_below(ALLOCATOR_CLASSES));
    g_handled.base = 0x555500000000;
    assert_int_equal(sigaction(SIGALRM, &action, &before), 0);
    assert_int_equal(setitimer(ITIMER_REAL, &often, NULL), 0);
    uint32_t wrong = 0;
    for (uint64_t i = 0; g_handled.calls < 300; i++) {
        // The grains of a handler's tiny block: the same marker.
        const struct word_block block = {.address = g_handled.base + (i % 2 != 0 ? 0 : 16),
                                         .size_bytes = i % 3 != 0 ? 8 : 16,
                                         .row = 1};
        struct words_ended ended;
        struct word_block found = {0};
        wrong += !words_put(g_handled.words, &block, &ended) || ended.count != 0;
        wrong +=
            !words_take(g_handled.words, block.address, &found) || !is_same_block(&found, &block);
    }
    assert_int_equal(setitimer(ITIMER_REAL, &never, NULL), 0);
    assert_int_equal(sigaction(SIGALRM, &before, NULL), 0);
    assert_int_equal(wrong, 0);
    assert_int_equal(g_handled.wrong, 0);
    (void)close(fd);
}

#if !defined(WITHOUT_OWN_KERNEL)
// What a forked child may do; its exit status is 0 if all was right. Its parent's room is there
// until the child limits itself: it may return to a hook that the parent was in.
static int act_as_child(struct process_words *words,
                        const int *fd,
                        const struct word_block *old,
                        char *parents_room)
{
    struct words_ended ended;
    struct word_block found = {0};
    unsigned char unused;
    if (mincore(parents_room, PAGE_GRAIN, &unused) != 0) {
        return 4;
    }
    const struct words_source source = {.open = words_file_again, .context = fd};
    if (words_put(words, old, &ended) || words_take(words, old->address, &found)) {
        return 1;
    }
    if (process_words_open(words, &source, 2, NULL) != ERR_OK ||
        words_take(words, old->address, &found)) {
        return 2;
    }
    const struct word_block fresh = {.address = old->address, .size_bytes = 50, .row = 3};
    if (!words_put(words, &fresh, &ended) || ended.count != 0) {
        return 3;
    }
    process_words_map_leanly(words, true);
    const bool is_kept = mincore(parents_room, PAGE_GRAIN, &unused) == 0;
    process_words_map_leanly(words, false);
    const bool has_gone = mincore(parents_room, PAGE_GRAIN, &unused) != 0 && errno == ENOMEM;
    return is_kept && has_gone && words_take(words, old->address, &found) ? 0 : 5;
}

static void a_child_has_words_of_its_own(void **state)
{
    (void)state;
    int fd;
    int status;
    struct process_words *words;
    struct words_ended ended;
    struct word_block found = {0};
    const struct word_block block = {.address = 0x7f0000000040, .size_bytes = 40, .row = 5};
    open_words(&fd, &words, NULL);
    assert_true(words_put(words, &block, &ended));
    char *room = (char *)grain_start(atomic_load(words->windows));
    const pid_t child = fork();
    if (child == 0) {
        _exit(act_as_child(words, &fd, &block, room));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(atomic_load(&words->file->groups[0]), 3); // one each
    assert_true(words_take(words, block.address, &found));
    assert_true(is_same_block(&found, &block));
    (void)close(fd);
}

#endif

// Handles of a program's own allocator: each names a block, and may be closer to the next one than
// the block is long.
static void handles_do_not_end_each_other(void **state)
{
    (void)state;
    static const uint64_t sizes[] = {8, 100, 1000, 100000};
    int fd;
    struct process_words *words;
    struct words_ended ended;
    struct word_block found;
    open_words(&fd, &words, NULL);
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const uint64_t first = WIRE_CUSTOM_BLOCK | 0x7f0000000000 | i << 20;
        const struct word_block block = {.address = first, .size_bytes = sizes[i], .row = 5};
        assert_true(words_have_room(words, first, sizes[i]));
        assert_true(words_put(words, &block, &ended));
        assert_true(words_have_room(words, first, sizes[i])); // its own place: it is stale
        assert_int_equal(words_have_room(words, first + 8, sizes[i]), sizes[i] < 256);
        assert_true(words_have_room(words, first + 4096, sizes[i]));
        assert_true(words_take(words, first, &found));
        assert_int_equal(found.size_bytes, sizes[i]);
        assert_true(words_have_room(words, first + 8, sizes[i]));
    }
    assert_false(words_have_room(words, WIRE_CUSTOM_BLOCK | 7, 8)); // no place
    (void)close(fd);
}

static void births_ascend_and_never_wrap(void **state)
{
    (void)state;
    for (uint32_t bits = WORD_BIRTH_BITS_MIDDLE; bits <= 31; bits++) {
        const uint64_t steps = (uint64_t)1 << (bits - BIRTH_EXPONENT_BITS);
        uint64_t latest = 0;
        for (uint64_t time_ms = 0; time_ms < (uint64_t)1 << 60; time_ms += 1 + time_ms / 70000) {
            const uint64_t code = birth_code(time_ms, bits);
            const uint64_t first = birth_time_ms(code, bits);
            assert_true(code >= latest && code >> bits == 0);
            assert_true(first <= time_ms);
            if (time_ms < (uint64_t)1 << 44) { // five hundred years
                assert_true(time_ms - first <= time_ms / steps);
                assert_true(time_ms >= 2 * steps || first == time_ms);
                assert_true(time_ms < birth_time_ms(code + 1, bits));
            }
            latest = code;
        }
        assert_int_equal(birth_code(UINT64_MAX, bits), ((uint64_t)1 << bits) - 1);
    }
}

// Rows have numbers of their own, in ranges of one level each, until there are no more.
static void a_row_says_its_level(void **state)
{
    (void)state;
    int fd;
    struct process_words *words;
    open_words(&fd, &words, NULL);
    uint8_t *levels = calloc(WORD_ROW_MAX + 1, 1); // by row: 1 + level
    assert_non_null(levels);
    uint64_t rows = 0;
    for (uint32_t i = 0;; i++) {
        const uint32_t level = i % 16384 == 0 ? i / 16384 % (LANE_LEVEL_MAX + 1) : i % 2;
        const uint32_t row = row_numbers_take(words, level);
        if (row == 0) {
            break;
        }
        assert_true(row < WORD_ROW_MAX && levels[row] == 0);
        levels[row] = (uint8_t)(1 + level);
        assert_int_equal(process_words_row_level(words, row), level);
        rows++;
    }
    assert_true(rows > WORD_ROW_MAX - 20 * WORD_RANGE_ROWS); // ranges that others began
    for (uint32_t row = 1; row < WORD_ROW_MAX; row++) {
        assert_true(levels[row] == 0 || levels[row] == 1 + process_words_row_level(words, row));
    }
    free(levels);
    (void)close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_row_says_its_level),
        cmocka_unit_test(each_free_finds_its_block),
        cmocka_unit_test(sizes_are_exact),
        cmocka_unit_test(what_has_no_place_is_refused),
        cmocka_unit_test(an_unrecorded_block_leaves_no_word),
        cmocka_unit_test(a_stale_word_ends_once),
        cmocka_unit_test(threads_pair_each_others_blocks),
        cmocka_unit_test(a_handler_changes_no_other_word),
#if !defined(WITHOUT_OWN_KERNEL) // an emulator wipes no pages
        cmocka_unit_test(a_child_has_words_of_its_own),
#endif
        cmocka_unit_test(handles_do_not_end_each_other),
        cmocka_unit_test(births_ascend_and_never_wrap),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
