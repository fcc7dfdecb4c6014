// SPDX-License-Identifier: MIT
// heap_tracer: an independent oracle for a run. Preloaded behind cairn's library, so that cairn's
// hooks call it as the real allocator and both record the same run: a table of all blocks by
// address, counters, and the highest sum of live bytes. All are exact, by atomic operations.
//
// Two calls that overlap in time have no order, and cairn may count them in another one than this.
// So there are two more sums. `at_least` has a block from the thread's next event on, and until it
// is about to be freed; `at_most` has a block that is reallocated twice, until the thread's next
// event. At any moment what cairn has counted is between the two.
//
// A forked child's table is empty, as the child's heap is for cairn. When a process ends, its
// blocks leave the sum. The file that HEAP_TRACER_LEFT names gets a line for each of them: pid,
// kind, address, size. Independent of cairn.
#include "heap_tracer.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

// glibc's own functions, under names that no library replaces.
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *block, size_t size);
extern void *__libc_memalign(size_t alignment, size_t size);
extern void __libc_free(void *block);

enum {
    BUCKETS = 1 << 16,
    BUCKET_BLOCKS = 63,
};

struct block {
    void *address;
    size_t size;
    uint64_t serial; // of the thread's events
    uint32_t thread;
    uint32_t kind;
    bool has_left; // `at_least`
};

struct bucket {
    atomic_uint lock;
    uint32_t count;
    struct block blocks[BUCKET_BLOCKS];
};

static struct tracer_file *g_file;
static struct bucket *g_buckets;
static atomic_uint g_threads;
static atomic_uint g_state; // 0: not checked yet, 1: being checked, 2: active, 3: disabled
static __thread uint32_t t_thread;
static __thread uint32_t t_kind;
static __thread uint64_t t_serial;
static __thread void *t_latest;      // the block of the latest event
static __thread uint64_t t_arrived;  // bytes that are not in `at_least` yet
static __thread uint64_t t_replaced; // bytes that are still in `at_most`
static pid_t g_first;                // the process that `at_least` is about

static void raise_to(_Atomic uint64_t *peak, uint64_t live)
{
    uint64_t seen = atomic_load(peak);
    while (live > seen && !atomic_compare_exchange_weak(peak, &seen, live)) {
    }
}

static void raise_bound(struct tracer_bound *bound, uint64_t size)
{
    raise_to(&bound->peak_bytes, atomic_fetch_add(&bound->live_bytes, size) + size);
}

// The thread's latest event is over.
static void settle(void)
{
    if (t_arrived != 0) {
        raise_bound(&g_file->at_least, t_arrived);
        t_arrived = 0;
    }
    if (t_replaced != 0) {
        atomic_fetch_sub(&g_file->at_most.live_bytes, t_replaced);
        t_replaced = 0;
    }
}

void tracer_set_kind(int kind)
{
    settle();
    t_kind = (uint32_t)kind;
}

static bool open_file(const char *path)
{
    const int fd = open(path, O_RDWR | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    void *file = mmap(NULL, sizeof(*g_file), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    (void)close(fd);
    void *buckets = mmap(NULL, BUCKETS * sizeof(*g_buckets), PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (file == MAP_FAILED || buckets == MAP_FAILED ||
        madvise(buckets, BUCKETS * sizeof(*g_buckets), MADV_WIPEONFORK) != 0) {
        return false;
    }
    g_file = file;
    g_first = getpid();
    g_buckets = buckets;
    return true;
}

static bool is_wanted(void)
{
    unsigned state = atomic_load(&g_state);
    if (state == 0 && atomic_compare_exchange_strong(&g_state, &state, 1)) {
        const int saved_errno = errno;
        const char *program = getenv("HEAP_TRACER_OF");
        const char *path = getenv("HEAP_TRACER");
        const bool is_it = program != NULL && strcmp(program, program_invocation_short_name) == 0;
        state = is_it && path != NULL && open_file(path) ? 2 : 3;
        errno = saved_errno;
        atomic_store(&g_state, state);
    }
    return state == 2;
}

static struct bucket *lock_bucket(const void *address)
{
    struct bucket *bucket = g_buckets + ((uintptr_t)address >> 4) * 0x9e3779b97f4a7c15u % BUCKETS;
    while (atomic_exchange(&bucket->lock, 1) != 0) {
        (void)sched_yield();
    }
    return bucket;
}

static void unlock(struct bucket *bucket)
{
    atomic_store(&bucket->lock, 0);
}

static void raise_live(size_t size)
{
    raise_to(&g_file->peak_bytes, atomic_fetch_add(&g_file->live_bytes, size) + size);
}

static void lower_live(size_t size)
{
    atomic_fetch_sub(&g_file->live_bytes, size);
    atomic_fetch_sub(&g_file->at_most.live_bytes, size);
}

static void add(void *address, size_t size)
{
    if (t_thread == 0) {
        t_thread = atomic_fetch_add(&g_threads, 1) + 1;
    }
    struct bucket *bucket = lock_bucket(address);
    if (bucket->count == BUCKET_BLOCKS) {
        atomic_fetch_add(&g_file->errors, 1);
    } else {
        bucket->blocks[bucket->count++] = (struct block){.address = address,
                                                         .size = size,
                                                         .serial = ++t_serial,
                                                         .thread = t_thread,
                                                         .kind = t_kind};
    }
    unlock(bucket);
    struct tracer_sums *sums = &g_file->kinds[t_kind];
    atomic_fetch_add(&sums->allocations, 1);
    atomic_fetch_add(&sums->allocated_bytes, size);
    t_latest = address;
    raise_bound(&g_file->at_most, size);
    t_arrived = t_kind != 0 && getpid() == g_first ? size : 0;
}

void tracer_leaves(const void *address)
{
    if (address == NULL || !is_wanted()) {
        return;
    }
    settle();
    struct bucket *bucket = lock_bucket(address);
    for (uint32_t i = 0; i < bucket->count; i++) {
        struct block *block = bucket->blocks + i;
        if (block->address == address && block->kind != 0 && getpid() == g_first) {
            atomic_fetch_sub(&g_file->at_least.live_bytes, block->size);
            block->has_left = true;
        }
    }
    unlock(bucket);
}

// Remove a block. Return its size, or 0 for an unknown block.
static size_t take(void *address)
{
    struct block found = {0};
    settle();
    struct bucket *bucket = lock_bucket(address);
    for (uint32_t i = 0; i < bucket->count; i++) {
        if (bucket->blocks[i].address == address) {
            found = bucket->blocks[i];
            bucket->blocks[i] = bucket->blocks[--bucket->count];
            break;
        }
    }
    unlock(bucket);
    const bool is_latest =
        t_latest == address && found.thread == t_thread && found.serial == t_serial;
    t_latest = NULL;
    t_serial++;
    if (found.kind != 0 && !found.has_left && getpid() == g_first) {
        atomic_fetch_add(&g_file->errors, 1); // the program has not said so
    }
    if (found.address != NULL) {
        struct tracer_sums *sums = &g_file->kinds[found.kind];
        atomic_fetch_add(&sums->frees, 1);
        atomic_fetch_add(&sums->freed_bytes, found.size);
        atomic_fetch_add(&sums->temporary, is_latest);
    }
    return found.size;
}

static void *note(void *block, size_t size)
{
    if (block != NULL && is_wanted()) {
        settle();
        raise_live(size);
        add(block, size);
    }
    return block;
}

// Add a block after one of `old_size` was taken.
static void put_instead(void *block, size_t old_size, size_t size)
{
    if (size > old_size) {
        raise_live(size - old_size);
    } else {
        atomic_fetch_sub(&g_file->live_bytes, old_size - size);
    }
    add(block, size);
    t_replaced = old_size;
}

void *malloc(size_t size)
{
    return note(__libc_malloc(size), size);
}

void *calloc(size_t count, size_t size)
{
    return note(__libc_calloc(count, size), count * size);
}

void *memalign(size_t alignment, size_t size)
{
    return note(__libc_memalign(alignment, size), size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return note(__libc_memalign(alignment, size), size);
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    *out = note(__libc_memalign(alignment, size), size);
    return *out != NULL ? 0 : ENOMEM;
}

void free(void *block)
{
    if (block != NULL && is_wanted()) {
        lower_live(take(block));
    }
    __libc_free(block);
}

void *realloc(void *block, size_t size)
{
    if (block == NULL || !is_wanted()) {
        return note(__libc_realloc(block, size), size);
    }
    const size_t old_size = take(block); // before another thread can have its address
    void *moved = __libc_realloc(block, size);
    if (moved == NULL) {
        atomic_fetch_add(&g_file->errors, 1); // tests do not run out of memory
        return NULL;
    }
    put_instead(moved, old_size, size);
    return moved;
}

void tracer_add(void *block, size_t size)
{
    (void)note(block, size);
}

void tracer_resize(void *block, size_t size)
{
    if (is_wanted()) {
        put_instead(block, take(block), size);
    }
}

void tracer_take(void *block)
{
    if (is_wanted()) {
        lower_live(take(block));
    }
}

static void write_left(int fd, const struct block *block)
{
    char line[80];
    const int len = snprintf(line, sizeof(line), "%d %u %zu %zu\n", (int)getpid(), block->kind,
                             (size_t)block->address, block->size);
    if (fd >= 0 && write(fd, line, (size_t)len) != len) {
        atomic_fetch_add(&g_file->errors, 1);
    }
}

// The blocks of a process leave the sum at its end.
__attribute__((destructor)) static void leave(void)
{
    if (!is_wanted()) {
        return;
    }
    uint64_t left = 0;
    const char *path = getenv("HEAP_TRACER_LEFT");
    const int fd = path != NULL ? open(path, O_WRONLY | O_APPEND | O_CLOEXEC) : -1;
    for (uint32_t i = 0; i < BUCKETS; i++) {
        for (uint32_t k = 0; k < g_buckets[i].count; k++) {
            left += g_buckets[i].blocks[k].size;
            write_left(fd, g_buckets[i].blocks + k);
        }
    }
    (void)close(fd);
    lower_live(left);
}
