// SPDX-License-Identifier: MIT
#include "target/producer/words/process_words.h"

#include <stddef.h>
#include <sys/mman.h>

#include "base/page_alloc.h"
#include "base/sys.h"
#include "target/producer/words/region_cut.h"

_Static_assert(sizeof(struct process_words) <= PAGE_GRAIN, "one page is wiped");

#define DIRECTORY_BYTES ((size_t)WORDS_CUSTOM_REGIONS * sizeof(_Atomic(struct words_region *)))
#define WINDOW_BYTES    (WORDS_GROUP * sizeof(struct words_region))

// A window: where the room of its group begins, 0 if it has none | WINDOW_OPEN | the group.
#define WINDOW_OPEN       ((uint64_t)1 << 11)
#define WINDOW_GROUP_MASK (WINDOW_OPEN - 1)
_Static_assert(WORDS_GROUPS <= WINDOW_OPEN && PAGE_GRAIN == 2 * WINDOW_OPEN, "room for its number");

static char *window_room(uint64_t window)
{
    return (char *)grain_start(window);
}

static uint32_t window_group(uint64_t window)
{
    return (uint32_t)(window & WINDOW_GROUP_MASK);
}

struct process_words *process_words_new(void)
{
    struct process_words *words = page_alloc(PAGE_GRAIN);
    if (words != NULL && sys_failed(sys_madvise(words, PAGE_GRAIN, MADV_WIPEONFORK))) {
        page_free(words, PAGE_GRAIN);
        return NULL;
    }
    return words;
}

// The rooms of this process and of its ancestors, which a forked child keeps. A room stays mapped
// in a child, because a handler may fork it in the middle of a put or take, and then return to
// that. Rooms beyond ROOMS_MAX stay mapped for good.
enum {
    ROOMS_MAX = 256
};
static _Atomic(char *) g_rooms[ROOMS_MAX]; // NULL: none

static void forget_room(char *room)
{
    for (uint32_t i = 0; i < ROOMS_MAX; i++) {
        char *found = room;
        (void)atomic_compare_exchange_strong_explicit(&g_rooms[i], &found, NULL,
                                                      memory_order_seq_cst, memory_order_relaxed);
    }
}

// Note the room of a window that is ours by now.
static void note_room(const struct process_words *words, char *room)
{
    bool is_noted = false;
    for (uint32_t i = 0; i < ROOMS_MAX && !is_noted; i++) {
        char *none = NULL;
        is_noted = atomic_compare_exchange_strong_explicit(
            &g_rooms[i], &none, room, memory_order_seq_cst, memory_order_relaxed);
    }
    // Sequentially consistent, as in process_words_map_leanly: either that function sees the room,
    // or we see that it has given back parts of it.
    if (atomic_load_explicit(&words->has_refused, memory_order_seq_cst)) {
        forget_room(room);
    }
}

static bool is_own_room(const struct process_words *words, const char *room)
{
    for (uint32_t i = 0; i < WORDS_WINDOWS_MAX; i++) {
        // Relaxed: the window was stored before its room was noted.
        const uint64_t window = atomic_load_explicit(words->windows + i, memory_order_relaxed);
        if (window_room(window) == room) {
            return true;
        }
    }
    return false;
}

static const _Atomic uint32_t g_tiny_never = WORDS_TINY_NEVER;

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

// Claim a group, and map room for it if it is to have some. 0: not possible.
static uint64_t open_window(struct process_words *words, bool has_room)
{
    uint32_t group;
    if (!claim_group(words->file, words->process, &group)) {
        return 0;
    }
    char *room = NULL;
    if (has_room) {
        room = words_source_map(&words->source, words_region_offset(group * WORDS_GROUP),
                                WINDOW_BYTES);
        if (room == NULL) {
            give_up_group(words->file, group);
            return 0;
        }
    }
    return (uint64_t)room | group | WINDOW_OPEN;
}

// Return the window of that number, and open it first if necessary. 0: not possible.
static uint64_t window_of(struct process_words *words, uint32_t index, bool has_room)
{
    // Relaxed: the room was mapped before its address was stored, and stays.
    uint64_t window = atomic_load_explicit(words->windows + index, memory_order_relaxed);
    const uint64_t fresh = window == 0 ? open_window(words, has_room) : 0;
    // Another thread of ours, or a handler, may be as far.
    if (fresh == 0 ||
        atomic_compare_exchange_strong_explicit(words->windows + index, &window, fresh,
                                                memory_order_relaxed, memory_order_relaxed)) {
        if (window_room(fresh) != NULL && words_source_mapped(&words->source) == NULL) {
            note_room(words, window_room(fresh));
        }
        return fresh != 0 ? fresh : window;
    }
    if (window_room(fresh) != NULL) {
        words_source_unmap(&words->source, window_room(fresh), WINDOW_BYTES);
    }
    give_up_group(words->file, window_group(fresh));
    return window;
}

static struct words_file *map_file(const struct words_source *source)
{
    struct words_file *file = words_source_map(source, 0, sizeof(*file));
    if (file != NULL && !words_source_open_part(file, sizeof(*file))) {
        words_source_unmap(source, file, sizeof(*file));
        return NULL;
    }
    return file;
}

// Reserve the room of the entries: later a sandbox may forbid to open the file.
static void reserve_entries(struct process_words *words, uint64_t window)
{
    char *room = window_room(window);
    words->entries_number = window_group(window) * WORDS_GROUP;
    words->entries_room = room;
    atomic_store_explicit(&words->file->regions[words->entries_number],
                          words_region_note(words->process, ENTRY_PLACE), memory_order_relaxed);
}

enum err process_words_open(struct process_words *words,
                            const struct words_source *source,
                            uint32_t process,
                            const _Atomic uint32_t *tiny_below)
{
    struct words_file *file = map_file(source);
    if (file == NULL || file->magic != WORDS_MAGIC) {
        return file == NULL ? ERR_NOT_FOUND : ERR_UNSUPPORTED;
    }
    words->file = file;
    words->source = *source;
    words->process = process;
    words->tiny_below = tiny_below != NULL ? tiny_below : &g_tiny_never;
    words->taken = 1; // by the entries
    words->directory = source->is_lean ? NULL : page_alloc(DIRECTORY_BYTES);
    uint64_t window = words->directory != NULL ? window_of(words, 0, true) : 0;
    if (window == 0) { // the address space is limited
        if (words->directory != NULL) {
            page_free(words->directory, DIRECTORY_BYTES);
            words->directory = NULL;
        }
        words->has_refused = true;
        window = window_of(words, 0, false);
    }
    if (window == 0) {
        words_source_unmap(source, file, sizeof(*file));
        words->file = NULL;
        return ERR_NO_MEMORY;
    }
    reserve_entries(words, window);
    return ERR_OK;
}

// Take the next region. NULL: there are no more, or it cannot be mapped.
static struct words_region *
take_region(struct process_words *words, size_t len_bytes, uint32_t *number)
{
    const uint32_t taken = atomic_fetch_add_explicit(&words->taken, 1, memory_order_relaxed);
    const uint32_t index = taken / WORDS_GROUP;
    const uint64_t window = index < WORDS_WINDOWS_MAX ? window_of(words, index, true) : 0;
    if (window == 0) {
        return NULL;
    }
    *number = window_group(window) * WORDS_GROUP + taken % WORDS_GROUP;
    char *region = window_room(window) + taken % WORDS_GROUP * sizeof(struct words_region);
    return words_source_open_part(region, len_bytes) ? (struct words_region *)(void *)region : NULL;
}

// Return the directory for an address, and map it first if it is of cairn.h's blocks. NULL: no
// memory.
static _Atomic(struct words_region *) *directory_of(struct process_words *words, uint64_t address)
{
    if ((address & WIRE_CUSTOM_BLOCK) == 0) {
        return words->directory;
    }
    _Atomic(struct words_region *) *found =
        atomic_load_explicit(&words->custom_directory, memory_order_relaxed);
    if (found != NULL) {
        return found;
    }
    _Atomic(struct words_region *) *fresh = page_alloc(DIRECTORY_BYTES);
    if (fresh == NULL ||
        atomic_compare_exchange_strong_explicit(&words->custom_directory, &found, fresh,
                                                memory_order_relaxed, memory_order_relaxed)) {
        return fresh;
    }
    page_free(fresh, DIRECTORY_BYTES); // another thread of ours was first, or a handler
    return found;
}

// Take a region for that place of a directory. NULL: it cannot be mapped.
static struct words_region *map_region(struct process_words *words,
                                       _Atomic(struct words_region *) *directory,
                                       uint32_t place,
                                       size_t len_bytes)
{
    uint32_t number;
    struct words_region *first = NULL;
    struct words_region *region = take_region(words, len_bytes, &number);
    if (region == NULL) {
        return NULL;
    }
    if (!atomic_compare_exchange_strong_explicit(directory + place % WORDS_CUSTOM_REGIONS, &first,
                                                 region, memory_order_release,
                                                 memory_order_relaxed)) {
        return first; // another thread of ours was first, or a handler: ours stays empty
    }
    // Release: pairs with the recorder's acquire; only for symmetry, since it reads zeros before.
    atomic_store_explicit(&words->file->regions[number], words_region_note(words->process, place),
                          memory_order_release);
    return region;
}

// Whether blocks of malloc may ever have tiny words.
static bool may_have_tiny(const struct process_words *words)
{
    return words->tiny_below != &g_tiny_never;
}

struct words_region *process_words_map(struct process_words *words, uint64_t address)
{
    // Relaxed: a thread that does not see it tries in vain.
    if (words->directory == NULL || !words_have_place(address) ||
        atomic_load_explicit(&words->has_refused, memory_order_relaxed)) {
        return NULL;
    }
    // The tiny words are most of a region. mlockall would populate them.
    const bool has_tiny = may_have_tiny(words) || (address & WIRE_CUSTOM_BLOCK) != 0;
    const size_t len_bytes =
        has_tiny ? sizeof(struct words_region) : offsetof(struct words_region, tiny);
    // With the agent no handler may keep a coroutine in the midst: attach/old_session.h.
    const uint64_t blocked = signals_block();
    _Atomic(struct words_region *) *directory = directory_of(words, address);
    struct words_region *region =
        directory != NULL ? map_region(words, directory, words_place(address), len_bytes) : NULL;
    signals_restore(blocked);
    if (region == NULL) {
        atomic_store_explicit(&words->has_refused, true, memory_order_relaxed);
    }
    return region;
}

static struct entry_bucket *map_chunk(const struct process_words *words, uint32_t chunk, bool alone)
{
    const uint64_t offset = entry_chunk_offset(chunk);
    const uint64_t len_bytes = entry_chunk_bytes(chunk);
    void *at =
        alone ? words_source_map(&words->source,
                                 words_region_offset(words->entries_number) + offset, len_bytes)
              : words->entries_room + offset;
    return at != NULL && words_source_open_part(at, len_bytes) ? at : NULL;
}

// Map a chunk that is as `found` says, unless another thread of ours, or a handler, is as far: ours
// stays unused then.
static struct entry_bucket *
use_chunk(struct process_words *words, uint32_t chunk, struct entry_bucket *found)
{
    while (found == NULL || found == WORDS_CHUNK_ALONE) {
        struct entry_bucket *before = found;
        struct entry_bucket *fresh =
            map_chunk(words, chunk, found == WORDS_CHUNK_ALONE || words->entries_room == NULL);
        if (fresh != NULL) {
            if (atomic_compare_exchange_strong_explicit(words->chunks + chunk, &found, fresh,
                                                        memory_order_relaxed,
                                                        memory_order_relaxed)) {
                return fresh;
            }
            continue;
        }
        // The room may have been given back meanwhile: shrink_entries.
        found = atomic_load_explicit(words->chunks + chunk, memory_order_relaxed);
        if (found == before) {
            return NULL;
        }
    }
    return found;
}

struct entry_bucket *process_words_chunk(struct process_words *words, uint32_t chunk)
{
    // Relaxed: the chunk was mapped before its address was stored, and stays.
    struct entry_bucket *found = atomic_load_explicit(words->chunks + chunk, memory_order_relaxed);
    if (found != NULL && found != WORDS_CHUNK_ALONE) {
        return found;
    }
    const uint64_t blocked = signals_block(); // as in process_words_map
    found = use_chunk(words, chunk, found);
    signals_restore(blocked);
    return found;
}

static struct free_rows *map_free_rows(const struct process_words *words)
{
    const uint64_t len_bytes = sizeof(struct free_rows);
    const uint64_t offset = words_region_offset(words->entries_number) + FREE_ROWS_OFFSET;
    void *at = words->entries_room != NULL ? words->entries_room + FREE_ROWS_OFFSET
                                           : words_source_map(&words->source, offset, len_bytes);
    return at != NULL && words_source_open_part(at, len_bytes) ? at : WORDS_NO_FREE_ROWS;
}

struct free_rows *process_words_open_free_rows(struct process_words *words)
{
    // Relaxed: the list was mapped before its address was stored, and stays.
    struct free_rows *found = atomic_load_explicit(&words->free_rows, memory_order_relaxed);
    if (found == NULL) {
        const uint64_t blocked = signals_block(); // as in process_words_map
        struct free_rows *fresh = map_free_rows(words);
        // Another thread of ours, or a handler, may be as far: ours stays unused then.
        found = atomic_compare_exchange_strong_explicit(&words->free_rows, &found, fresh,
                                                        memory_order_relaxed, memory_order_relaxed)
                    ? fresh
                    : found;
        signals_restore(blocked);
    }
    return found != WORDS_NO_FREE_ROWS ? found : NULL;
}

// Give back the room of chunks that no block has used.
static void shrink_entries(struct process_words *words)
{
    for (uint32_t chunk = 0; chunk < ENTRY_CHUNKS; chunk++) {
        struct entry_bucket *none = NULL;
        if (atomic_compare_exchange_strong_explicit(words->chunks + chunk, &none, WORDS_CHUNK_ALONE,
                                                    memory_order_relaxed, memory_order_relaxed)) {
            (void)sys_munmap(words->entries_room + entry_chunk_offset(chunk),
                             entry_chunk_bytes(chunk)); // refused, it stays reserved
        }
    }
    const uint64_t used = FREE_ROWS_OFFSET + sizeof(struct free_rows);
    (void)sys_munmap(words->entries_room + used, sizeof(struct words_region) - used); // likewise
}

// Give back what a region does not use.
static void shrink_region(const struct process_words *words, uint64_t window, uint32_t place)
{
    const uint32_t number = window_group(window) * WORDS_GROUP + place;
    const uint64_t note = atomic_load_explicit(words->file->regions + number, memory_order_relaxed);
    if (note != 0 && (uint32_t)note != ENTRY_PLACE + 1) {
        const bool is_custom = (uint32_t)note > WORDS_CUSTOM_REGIONS;
        region_cut((struct words_region *)(void *)window_room(window) + place,
                   is_custom ? NULL : words->tiny_below);
    }
}

// Unmap every group that this process does not own. Only for a process that has all words mapped.
static void shrink_mapping(const struct process_words *words)
{
    char *mapped = words_source_mapped(&words->source);
    for (uint32_t group = 0; group < WORDS_GROUPS; group++) {
        // Relaxed: its own. A group that another thread claims meanwhile cannot be used any more.
        if (atomic_load_explicit(words->file->owners + group, memory_order_relaxed) !=
            words->process) {
            (void)sys_munmap(mapped + words_region_offset(group * WORDS_GROUP),
                             WINDOW_BYTES); // refused, it stays reserved
        }
    }
    *words->source.mapped = 0;
}

// Unmap the rooms that a forked child has of its ancestors.
static void unmap_inherited(const struct process_words *words)
{
    for (uint32_t i = 0; i < ROOMS_MAX; i++) {
        // Acquire: pairs with note_room's exchange, behind the store of the window.
        char *room = atomic_load_explicit(&g_rooms[i], memory_order_acquire);
        if (room != NULL && !is_own_room(words, room) &&
            atomic_compare_exchange_strong_explicit(&g_rooms[i], &room, NULL, memory_order_relaxed,
                                                    memory_order_relaxed)) {
            (void)sys_munmap(room, WINDOW_BYTES); // refused, it stays reserved
        }
    }
}

// Give back the room of a window but for `used` regions, and what these do not use.
static void
shrink_window(const struct process_words *words, uint64_t window, uint32_t used, bool cuts)
{
    char *room = window_room(window);
    if (room == NULL) {
        return;
    }
    forget_room(room); // the program may map something there, which a child keeps
    (void)sys_munmap(room + used * sizeof(struct words_region), // likewise
                     WINDOW_BYTES - used * sizeof(struct words_region));
    for (uint32_t place = 0; cuts && place < used; place++) {
        shrink_region(words, window, place);
    }
}

static void map_leanly(struct process_words *words, bool is_nested, bool cuts)
{
    if (!is_nested) {
        unmap_inherited(words);
    }
    // A thread that does not see it finds no number left. Sequentially consistent: see note_room.
    if (!process_words_are_open(words) ||
        atomic_exchange_explicit(&words->has_refused, true, memory_order_seq_cst)) {
        return;
    }
    // Threads that took a number before have the room below it.
    uint32_t left = atomic_fetch_add_explicit(&words->taken, WORDS_TAKEN_ALL, memory_order_relaxed);
    for (uint32_t i = 0; i < WORDS_WINDOWS_MAX; i++) {
        const uint64_t window = atomic_load_explicit(words->windows + i, memory_order_relaxed);
        const uint32_t used = left < WORDS_GROUP ? left : WORDS_GROUP;
        shrink_window(words, window, used, cuts);
        left -= used;
    }
    shrink_entries(words);
    if (words_source_mapped(&words->source) != NULL) {
        shrink_mapping(words);
    }
}

void process_words_map_leanly(struct process_words *words, bool is_nested)
{
    map_leanly(words, is_nested, true);
}

// Chunks of a process with little room: 3 MiB, for some 100,000 blocks.
#define CHUNKS_LEAN 4u

void process_words_foresee(struct process_words *words)
{
    const uint32_t count = words->entries_room != NULL ? ENTRY_CHUNKS : CHUNKS_LEAN;
    for (uint32_t chunk = 0; chunk < count && process_words_are_open(words); chunk++) {
        (void)process_words_chunk(words, chunk); // what is missing then, is missing later
    }
    if (process_words_are_open(words)) {
        (void)process_words_open_free_rows(words); // likewise
    }
    map_leanly(words, true, false);
}
