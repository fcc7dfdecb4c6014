// SPDX-License-Identifier: MIT
// word_checker: keeps the words of all blocks (docs/design/words.md) below cairn's library, and
// checks each pairing. Preloaded behind that library, in front of any allocator, it sees the same
// calls as cairn's hooks, and does with words what hooks have to do.
//
//   malloc   the allocator's, then words_put     free   words_take, then the allocator's
//
// Each take is compared with a table of all blocks that is locked, and what words say of each kind
// of block is written as heap_tracer writes it, so that tests compare it with the recorder's own
// pairing. The shared sum is checked in the same way, against one that each event changes. Some
// reallocs are tried in vain first.
//
// HEAP_TRACER, HEAP_TRACER_OF: as for heap_tracer. WORD_CHECKER names the file of words.
// WORD_CHECKER_WITHOUT leaves a rule out: "put back", "take first", "tiny" or "wipe". A signal
// handler may allocate where tracer_is_inside says no.
#include "word_checker.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/page_alloc.h"
#include "heap_tracer.h"
#include "target/producer/words/live_words.h"

enum {
    BUCKET_BITS = 13,
    BUCKETS = 1 << BUCKET_BITS,
    BUCKET_BLOCKS = 127,
    KIND_BITS = 4,
    IN_VAIN = 16, // each such realloc fails first
};

struct bucket {
    atomic_uint lock;
    uint32_t count;
    struct word_block blocks[BUCKET_BLOCKS];
};

static struct {
    void *(*malloc)(size_t size);
    void *(*calloc)(size_t count, size_t size);
    void *(*realloc)(void *block, size_t size);
    void *(*memalign)(size_t alignment, size_t size);
    void (*free)(void *block);
} g_next;

static struct checker_file *g_file;
static struct bucket *g_buckets;
static struct process_words *g_words;
static char g_words_path[256];
static atomic_uint g_threads;
static atomic_uint g_state; // 0: not checked yet, 1: being checked, 2: active, 3: disabled
static _Atomic uint32_t g_tiny_below;
static bool g_puts_back;
static bool g_takes_first;
static pthread_key_t g_at_end;
static __thread uint32_t t_thread;
static __thread uint32_t t_kind;
static __thread uint32_t t_inside; // the allocator, or a lock
static __thread uint32_t t_reallocs;
static __thread uint64_t t_latest; // the block of the latest event
static __thread bool t_counts;     // in the shared sum
static __thread struct sum_part t_part;

void tracer_set_kind(int kind)
{
    t_kind = (uint32_t)kind;
}

int tracer_kind(void)
{
    return (int)t_kind;
}

int tracer_is_inside(void)
{
    return t_inside != 0;
}

static void fail(void)
{
    atomic_fetch_add(&g_file->sums.errors, 1);
}

// Memory for the few blocks that dlsym needs.
static char g_early[4096];
static size_t g_early_used;

static void *early_block(size_t size)
{
    void *block = g_early + g_early_used;
    g_early_used += (size + 15) / 16 * 16;
    return g_early_used <= sizeof(g_early) ? block : NULL;
}

static bool is_early(const void *block)
{
    return (const char *)block >= g_early && (const char *)block < g_early + sizeof(g_early);
}

// false: the calls come from the search itself.
static bool find_next(void)
{
    static bool is_searching;
    if (g_next.free != NULL) {
        return true;
    }
    if (is_searching) {
        return false;
    }
    is_searching = true;
    *(void **)&g_next.malloc = dlsym(RTLD_NEXT, "malloc");
    *(void **)&g_next.calloc = dlsym(RTLD_NEXT, "calloc");
    *(void **)&g_next.realloc = dlsym(RTLD_NEXT, "realloc");
    *(void **)&g_next.memalign = dlsym(RTLD_NEXT, "memalign");
    *(void **)&g_next.free = dlsym(RTLD_NEXT, "free");
    is_searching = false;
    return true;
}

static long open_words(const void *unused)
{
    (void)unused;
    const int fd = open(g_words_path, O_RDWR | O_CLOEXEC);
    return fd < 0 ? -errno : fd;
}

static bool open_own_words(void)
{
    const struct words_source source = {.open = open_words};
    return process_words_open(g_words, &source, (uint32_t)getpid(), &g_tiny_below) == ERR_OK;
}

static bool is_left_out(const char *rule)
{
    const char *without = getenv("WORD_CHECKER_WITHOUT");
    return without != NULL && strcmp(without, rule) == 0;
}

// Which rule an allocator needs follows from the library that its malloc is in.
static uint32_t find_tiny_below(void)
{
    Dl_info info;
    if (is_left_out("tiny")) {
        return WORDS_TINY_NEVER;
    }
    if (dladdr(*(void **)&g_next.malloc, &info) == 0 || info.dli_fname == NULL) {
        return WORDS_TINY_SMALL;
    }
    return strstr(info.dli_fname, "libc.so") != NULL       ? WORDS_TINY_NEVER
           : strstr(info.dli_fname, "jemalloc") != NULL    ? WORDS_TINY_USUAL
           : strstr(info.dli_fname, "libmimalloc") != NULL ? WORDS_TINY_USUAL
           : strstr(info.dli_fname, "libtcmalloc") != NULL ? WORDS_TINY_USUAL
                                                           : WORDS_TINY_SMALL;
}

static void end_thread(void *unused)
{
    (void)unused;
    if (t_counts) {
        t_inside++; // of what handlers allocate after this, a part may stay with the thread
        t_counts = false;
        (void)shared_sum_send(&g_file->sum, &t_part);
        shared_sum_release(&g_file->sum, &t_part);
        shared_sum_leave(&g_file->sum, 1);
        t_inside--;
    }
}

static bool open_files(const char *path, const char *words_path)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0 || strlen(words_path) >= sizeof(g_words_path)) {
        return false;
    }
    strcpy(g_words_path, words_path);
    void *file = mmap(NULL, sizeof(*g_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    void *buckets = mmap(NULL, BUCKETS * sizeof(*g_buckets), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (file == MAP_FAILED || buckets == MAP_FAILED ||
        madvise(buckets, BUCKETS * sizeof(*g_buckets), MADV_WIPEONFORK) != 0) {
        return false;
    }
    g_file = file;
    g_buckets = buckets;
    g_tiny_below = find_tiny_below();
    g_puts_back = !is_left_out("put back");
    g_takes_first = !is_left_out("take first");
    g_words = process_words_new();
    if (g_words != NULL && is_left_out("wipe")) {
        (void)madvise(g_words, PAGE_GRAIN, MADV_KEEPONFORK);
    }
    return g_words != NULL && open_own_words() && pthread_key_create(&g_at_end, end_thread) == 0;
}

static bool is_wanted(void)
{
    unsigned state = atomic_load(&g_state);
    if (state == 0 && atomic_compare_exchange_strong(&g_state, &state, 1)) {
        const int saved_errno = errno;
        const char *program = getenv("HEAP_TRACER_OF");
        const char *path = getenv("HEAP_TRACER");
        const char *words = getenv("WORD_CHECKER");
        const bool is_it = program != NULL && strcmp(program, program_invocation_short_name) == 0;
        state = is_it && path != NULL && words != NULL && open_files(path, words) ? 2 : 3;
        errno = saved_errno;
        atomic_store(&g_state, state);
    }
    return state == 2;
}

// Before the program: what a handler allocates while this opens its files would not be counted.
__attribute__((constructor)) static void begin(void)
{
    (void)find_next();
    (void)is_wanted();
}

// Prepare the thread, in a forked child the process. A handler may come at any moment.
static void enter(void)
{
    if (g_words->directory == NULL) {
        t_inside++; // a handler has no words yet
        t_counts = false;
        if (!open_own_words()) {
            fail();
        }
        t_inside--;
    }
    if (t_thread == 0) {
        t_thread = atomic_fetch_add(&g_threads, 1) + 1;
    }
    if (!t_counts) {
        t_counts = true;
        shared_sum_join(&g_file->sum, &t_part);
        t_inside++;
        (void)pthread_setspecific(g_at_end, &t_part);
        t_inside--;
    }
}

static struct bucket *lock_bucket(uint64_t address)
{
    // The upper bits: mimalloc has many blocks with the same lower ones.
    struct bucket *bucket = g_buckets + (address * 0x9e3779b97f4a7c15u >> (64 - BUCKET_BITS));
    t_inside++;
    while (atomic_exchange(&bucket->lock, 1) != 0) {
        (void)sched_yield();
    }
    return bucket;
}

static void unlock(struct bucket *bucket)
{
    atomic_store(&bucket->lock, 0);
    t_inside--;
}

static void raise(_Atomic uint64_t *most, uint64_t value)
{
    uint64_t seen = atomic_load(most);
    while (value > seen && !atomic_compare_exchange_weak(most, &seen, value)) {
    }
}

// Change both sums.
static void change_live(int64_t delta)
{
    struct tracer_file *sums = &g_file->sums;
    raise(&sums->peak_bytes,
          atomic_fetch_add(&sums->live_bytes, (uint64_t)delta) + (uint64_t)delta);
    raise(&g_file->batch_max, t_part.batch_bytes);
    raise(&g_file->threads_max, atomic_load(&g_file->sum.thread_count));
    t_inside++; // a handler would need a part of its own
    if (delta < 0 && !shared_sum_before_free(&g_file->sum, &t_part)) {
        (void)shared_sum_send(&g_file->sum, &t_part);
    }
    (void)shared_sum_add(&g_file->sum, &t_part, 0, delta);
    t_inside--;
}

static void change_by_block(int64_t delta)
{
    raise(&g_file->block_max, (uint64_t)llabs(delta));
    change_live(delta);
}

static void table_add(const struct word_block *block)
{
    struct bucket *bucket = lock_bucket(block->address);
    if (bucket->count < BUCKET_BLOCKS) {
        bucket->blocks[bucket->count++] = *block;
    } else {
        fail();
    }
    unlock(bucket);
}

static bool table_take(uint64_t address, struct word_block *out)
{
    struct bucket *bucket = lock_bucket(address);
    bool is_there = false;
    for (uint32_t i = 0; i < bucket->count && !is_there; i++) {
        if (bucket->blocks[i].address == address) {
            *out = bucket->blocks[i];
            bucket->blocks[i] = bucket->blocks[--bucket->count];
            is_there = true;
        }
    }
    unlock(bucket);
    return is_there;
}

// A row is a kind of a thread, as cairn's are stacks of a thread.
static void put(uint64_t address, size_t size)
{
    struct words_ended ended;
    enter();
    const struct word_block block = {.address = address,
                                     .size_bytes = size,
                                     .row = (t_thread << KIND_BITS | t_kind) & WORD_ROW_MAX,
                                     .birth_ms = t_thread % BIRTH_EXACT_MS};
    table_add(&block);
    if (!words_put(g_words, &block, &ended) || ended.count != 0) {
        fail();
    }
    struct tracer_sums *sums = &g_file->sums.kinds[t_kind];
    atomic_fetch_add(&sums->allocations, 1);
    atomic_fetch_add(&sums->allocated_bytes, size);
    t_latest = address;
}

static void count_free(const struct word_block *block, bool is_latest)
{
    struct tracer_sums *sums = &g_file->sums.kinds[block->row % (1 << KIND_BITS) % TRACER_KINDS];
    const bool is_own = block->row >> KIND_BITS == t_thread;
    atomic_fetch_add(&sums->frees, 1);
    atomic_fetch_add(&sums->freed_bytes, block->size_bytes);
    atomic_fetch_add(&sums->temporary, is_latest && is_own);
    t_latest = 0;
}

// Take the word of a block and compare it with the table's. Blocks of before a fork have neither.
static bool take(uint64_t address, struct word_block *out)
{
    struct word_block expected = {0};
    struct word_block found = {0};
    enter();
    const bool is_there = table_take(address, &expected);
    if (words_take(g_words, address, &found) != is_there ||
        found.size_bytes != expected.size_bytes || found.row != expected.row ||
        found.birth_ms != expected.birth_ms) {
        fail();
    }
    *out = found;
    return is_there;
}

static void end_block(uint64_t address)
{
    struct word_block block;
    const bool is_latest = t_latest == address;
    if (take(address, &block)) {
        change_by_block(-(int64_t)block.size_bytes);
        count_free(&block, is_latest);
    } else {
        t_latest = 0;
    }
}

static void *begin_block(void *block, size_t size)
{
    if (block != NULL && is_wanted()) {
        enter();
        change_by_block((int64_t)size);
        put((uint64_t)block, size);
    }
    return block;
}

void *malloc(size_t size)
{
    if (!find_next()) {
        return early_block(size);
    }
    t_inside++;
    void *block = g_next.malloc(size);
    t_inside--;
    return begin_block(block, size);
}

void *calloc(size_t count, size_t size)
{
    if (!find_next()) {
        return early_block(count * size);
    }
    t_inside++;
    void *block = g_next.calloc(count, size);
    t_inside--;
    return begin_block(block, count * size);
}

void *memalign(size_t alignment, size_t size)
{
    (void)find_next();
    t_inside++;
    void *block = g_next.memalign(alignment, size);
    t_inside--;
    return begin_block(block, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return memalign(alignment, size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    *out = memalign(alignment, size);
    return *out != NULL ? 0 : ENOMEM;
}

static void free_next(void *block)
{
    t_inside++;
    g_next.free(block);
    t_inside--;
}

void free(void *block)
{
    if (block == NULL || is_early(block)) {
        return;
    }
    (void)find_next();
    if (!is_wanted()) {
        g_next.free(block);
    } else if (g_takes_first) {
        end_block((uint64_t)block);
        free_next(block);
    } else {
        free_next(block);
        end_block((uint64_t)block);
    }
}

// A realloc that fails leaves the block and its word.
static void reallocate_in_vain(void *block)
{
    struct word_block word;
    struct words_ended ended;
    struct word_block expected;
    const bool is_there = table_take((uint64_t)block, &expected);
    if (!is_there) {
        return;
    }
    table_add(&expected);
    (void)words_take(g_words, (uint64_t)block, &word);
    t_inside++;
    void *moved = g_next.realloc(block, (size_t)1 << 62);
    t_inside--;
    if (moved != NULL || (g_puts_back && (!words_put(g_words, &word, &ended) || ended.count > 0))) {
        fail();
    }
}

// Begin a new block in the place of an old one.
static void replace(const struct word_block *old, uint64_t block, size_t size, bool is_latest)
{
    count_free(old, is_latest);
    change_by_block((int64_t)size - (int64_t)old->size_bytes);
    put(block, size);
}

void *realloc(void *block, size_t size)
{
    (void)find_next();
    if (block == NULL || !is_wanted()) {
        t_inside++;
        void *fresh = g_next.realloc(block, size);
        t_inside--;
        return begin_block(fresh, size);
    }
    enter();
    if (++t_reallocs % IN_VAIN == 0) {
        reallocate_in_vain(block);
    }
    struct word_block old;
    const bool is_latest = t_latest == (uint64_t)block;
    const bool is_there = take((uint64_t)block, &old);
    t_inside++;
    void *moved = g_next.realloc(block, size);
    t_inside--;
    if (moved == NULL) {
        fail(); // tests do not run out of memory
    } else if (is_there) {
        replace(&old, (uint64_t)moved, size, is_latest);
    } else {
        (void)begin_block(moved, size);
    }
    return moved;
}

// The blocks of a process leave the sums at its end.
__attribute__((destructor)) static void leave(void)
{
    if (!is_wanted()) {
        return;
    }
    int64_t left = 0;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        for (uint32_t k = 0; k < g_buckets[i].count; k++) {
            left += (int64_t)g_buckets[i].blocks[k].size_bytes;
        }
    }
    enter();
    change_live(-left);
    end_thread(NULL);
    const struct sum_value value = shared_sum_read(&g_file->sum);
    atomic_store(&g_file->sum_bytes, (uint64_t)value.sum_bytes);
    atomic_store(&g_file->sum_peak_bytes, value.peak_bytes);
}
