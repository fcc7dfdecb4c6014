// SPDX-License-Identifier: MIT
#include "target/producer/words/process_words.h"

#include <stddef.h>
#include <sys/mman.h>

#include "base/page_alloc.h"
#include "base/sys.h"

_Static_assert(sizeof(struct process_words) <= PAGE_BYTES, "one page is wiped");

#define DIRECTORY_BYTES ((size_t)WORDS_PLACES * sizeof(_Atomic(struct words_region *)))
#define WINDOW_BYTES    (WORDS_GROUP * sizeof(struct words_region))

// A window: where the room of its group begins, 0 if it has none | WINDOW_OPEN | the group.
#define WINDOW_OPEN       ((uint64_t)1 << 11)
#define WINDOW_GROUP_MASK (WINDOW_OPEN - 1)
_Static_assert(WORDS_GROUPS <= WINDOW_OPEN && PAGE_BYTES == 2 * WINDOW_OPEN, "room for its number");

static char *window_room(uint64_t window)
{
    return (char *)page_start(window);
}

static uint32_t window_group(uint64_t window)
{
    return (uint32_t)(window & WINDOW_GROUP_MASK);
}

struct process_words *process_words_new(void)
{
    struct process_words *words = page_alloc(PAGE_BYTES);
    if (words != NULL && sys_failed(sys_madvise(words, PAGE_BYTES, MADV_WIPEONFORK))) {
        page_free(words, PAGE_BYTES);
        return NULL;
    }
    return words;
}

// Map a part of the file without access. NULL if the kernel refuses.
static void *map_part(const struct words_source *source, uint64_t offset, size_t len_bytes)
{
    const long fd = source->open(source->context);
    if (sys_failed(fd)) {
        return NULL;
    }
    const long at = sys_mmap(NULL, len_bytes, PROT_NONE, MAP_SHARED | MAP_NORESERVE, (int)fd,
                             (int64_t)(source->base + offset));
    (void)sys_close((int)fd); // the mapping keeps the memory
    if (sys_failed(at)) {
        return NULL;
    }
    (void)sys_madvise((void *)at, len_bytes, MADV_DONTDUMP); // only spares core files its pages
    return (void *)at;
}

static bool make_accessible(void *part, size_t len_bytes)
{
    return !sys_failed(sys_mprotect(part, len_bytes, PROT_READ | PROT_WRITE));
}

// Claim a free group of regions. false: there is none.
static bool claim_group(struct words_file *file, uint32_t process, uint32_t *group)
{
    for (uint32_t i = 0; i < WORDS_GROUPS / 64; i++) {
        uint64_t used = atomic_load_explicit(&file->groups[i], memory_order_relaxed);
        while (used != UINT64_MAX) {
            const uint32_t bit = (uint32_t)__builtin_ctzll(~used);
            // Acquire: sees the words as the recorder wiped them before it cleared the bit.
            if (atomic_compare_exchange_strong_explicit(
                    &file->groups[i], &used, used | (uint64_t)1 << bit, memory_order_acquire,
                    memory_order_relaxed)) {
                *group = i * 64 + bit;
                atomic_store_explicit(&file->owners[*group], process, memory_order_relaxed);
                return true;
            }
        }
    }
    return false;
}

static void give_up_group(struct words_file *file, uint32_t group)
{
    atomic_store_explicit(&file->owners[group], 0, memory_order_relaxed);
    atomic_fetch_and_explicit(&file->groups[group / 64], ~((uint64_t)1 << group % 64),
                              memory_order_release);
}

// Claim a group and map room for it, without room if `is_lean`. 0: not possible.
static uint64_t open_window(struct process_words *words, bool is_lean)
{
    uint32_t group;
    if (!claim_group(words->file, words->process, &group)) {
        return 0;
    }
    char *room = NULL;
    if (!is_lean) {
        room = map_part(&words->source, words_region_offset(group * WORDS_GROUP), WINDOW_BYTES);
        if (room == NULL) {
            give_up_group(words->file, group);
            return 0;
        }
    }
    return (uint64_t)room | group | WINDOW_OPEN;
}

// Return the window of that number, and open it first if necessary. 0: not possible.
static uint64_t window_of(struct process_words *words, uint32_t index, bool is_lean)
{
    // Relaxed: the room was mapped before its address was stored, and stays.
    uint64_t window = atomic_load_explicit(words->windows + index, memory_order_relaxed);
    const uint64_t fresh = window == 0 ? open_window(words, is_lean) : 0;
    // Another thread of ours, or a handler, may be as far.
    if (fresh == 0 ||
        atomic_compare_exchange_strong_explicit(words->windows + index, &window, fresh,
                                                memory_order_relaxed, memory_order_relaxed)) {
        return fresh != 0 ? fresh : window;
    }
    if (window_room(fresh) != NULL) {
        (void)sys_munmap(window_room(fresh), WINDOW_BYTES); // cannot fail for our own mapping
    }
    give_up_group(words->file, window_group(fresh));
    return window;
}

static struct words_file *map_file(const struct words_source *source)
{
    struct words_file *file = map_part(source, 0, sizeof(*file));
    if (file != NULL && !make_accessible(file, sizeof(*file))) {
        (void)sys_munmap(file, sizeof(*file)); // as above
        return NULL;
    }
    return file;
}

enum err process_words_open(struct process_words *words,
                            const struct words_source *source,
                            uint32_t process,
                            uint32_t tiny_below_bytes)
{
    struct words_file *file = map_file(source);
    if (file == NULL) {
        return ERR_NOT_FOUND;
    }
    const bool is_words = file->magic == WORDS_MAGIC;
    _Atomic(struct words_region *) *directory = is_words ? page_alloc(DIRECTORY_BYTES) : NULL;
    words->file = file;
    words->source = *source;
    words->process = process;
    words->tiny_below_bytes = tiny_below_bytes;
    if (directory == NULL || window_of(words, 0, false) == 0) { // the first now: later a sandbox
        (void)sys_munmap(file, sizeof(*file));                  // may forbid to open the file
        words->file = NULL;
        if (directory != NULL) {
            page_free(directory, DIRECTORY_BYTES);
        }
        return is_words ? ERR_NO_MEMORY : ERR_UNSUPPORTED;
    }
    words->directory = directory;
    return ERR_OK;
}

// Take the next region. NULL: there are no more, or it cannot be mapped.
static struct words_region *
take_region(struct process_words *words, size_t len_bytes, uint32_t *number)
{
    const uint32_t before = atomic_fetch_add_explicit(&words->taken, 1, memory_order_relaxed);
    const bool is_lean = (before & WORDS_TAKEN_LEAN) != 0;
    const uint32_t taken = before & ~WORDS_TAKEN_LEAN;
    const uint32_t index = taken / WORDS_GROUP;
    const uint64_t window = index < WORDS_WINDOWS_MAX ? window_of(words, index, is_lean) : 0;
    if (window == 0) {
        return NULL;
    }
    *number = window_group(window) * WORDS_GROUP + taken % WORDS_GROUP;
    char *room = window_room(window);
    void *region = is_lean || room == NULL
                       ? map_part(&words->source, words_region_offset(*number), len_bytes)
                       : room + taken % WORDS_GROUP * sizeof(struct words_region);
    return region != NULL && make_accessible(region, len_bytes) ? region : NULL;
}

struct words_region *process_words_map(struct process_words *words, uint64_t address)
{
    if (words->directory == NULL || !words_have_place(address)) {
        return NULL;
    }
    // The tiny words are most of a region. mlockall would populate them.
    const bool has_tiny = words->tiny_below_bytes != 0 || (address & WIRE_CUSTOM_BLOCK) != 0;
    const size_t len_bytes =
        has_tiny ? sizeof(struct words_region) : offsetof(struct words_region, tiny);
    const uint32_t place = words_place(address);
    uint32_t number;
    struct words_region *region = take_region(words, len_bytes, &number);
    struct words_region *first = NULL;
    if (region == NULL) {
        return NULL;
    }
    if (!atomic_compare_exchange_strong_explicit(words->directory + place, &first, region,
                                                 memory_order_release, memory_order_relaxed)) {
        return first; // another thread of ours was first, or a handler: ours stays empty
    }
    // Release: pairs with the recorder's acquire; only for symmetry, since it reads zeros before.
    atomic_store_explicit(&words->file->regions[number], words_region_note(words->process, place),
                          memory_order_release);
    return region;
}

void process_words_map_leanly(struct process_words *words)
{
    // A thread that takes a region after this sees the bit. One that took it before has it below.
    const uint32_t taken =
        words->directory != NULL
            ? atomic_fetch_or_explicit(&words->taken, WORDS_TAKEN_LEAN, memory_order_relaxed)
            : WORDS_TAKEN_LEAN;
    const uint32_t index = taken / WORDS_GROUP;
    if ((taken & WORDS_TAKEN_LEAN) != 0 || index >= WORDS_WINDOWS_MAX) {
        return;
    }
    char *room = window_room(atomic_load_explicit(words->windows + index, memory_order_relaxed));
    const size_t used = taken % WORDS_GROUP * sizeof(struct words_region);
    if (room != NULL) {
        (void)sys_munmap(room + used, WINDOW_BYTES - used); // refused, it stays reserved
    }
}

uint32_t process_words_new_row(struct process_words *words)
{
    // Relaxed: a number orders nothing. Of numbers beyond the last one none is used.
    const uint32_t before = atomic_load_explicit(&words->row_count, memory_order_relaxed);
    return before < WORD_ROW_MAX - 1
               ? 1 + atomic_fetch_add_explicit(&words->row_count, 1, memory_order_relaxed)
               : 0;
}
