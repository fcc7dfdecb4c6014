// SPDX-License-Identifier: MIT
#include "recorder/outside/glibc_heap.h"

#include <stddef.h>
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "base/order.h"
#include "base/search.h"
#include "host/containers/map_u64.h"
#include "host/memory/page_size.h"

// malloc.c and arena.c of glibc since 2.26, on 64-bit machines, in bytes.
enum {
    HEAP_BYTES = 64 << 20, // HEAP_MAX_SIZE
    HEAP_INFO_BYTES_MAX = 128,
    STATE_FAST = 16,
    FAST_LISTS = 10,
    FAST_BYTES_MAX = 176,
    STATE_TOP = 96,
    STATE_BINS = 112,
    STATE_NEXT = 2160,
    STATE_SYSTEM_BYTES = 2184,
    STATE_BYTES = 2200,
    BINS = 127,
    CHUNK_LINKS = 16, // from a chunk to its links
    CHUNK_BYTES_MIN = 32,
    LARGE_BYTES_MIN = 128 << 10, // default of M_MMAP_THRESHOLD
    SIZE_FLAGS = 7,
    IS_MAPPED = 2, // among the flags
};

// Bounds of what is read.
enum {
    CHUNKS_MAX = 1 << 17,
    ARENAS_MAX = 4096,
    BLOCKS_MAX = 1 << 16,
    DATA_BYTES_MAX = 256 << 10, // of libc, or of a static program
};

struct heap_info {
    uint64_t arena;
    uint64_t previous;
    uint64_t size_bytes;
    uint64_t accessible_bytes;
};

_Static_assert(offsetof(struct heap_claim, range) == 0, "claims and ranges are sorted alike");

struct chunk {
    uint64_t previous_bytes;
    uint64_t size; // and flags
    uint64_t next;
    uint64_t before;
};

union arena_state {
    uint8_t bytes[STATE_BYTES];
    uint64_t words[STATE_BYTES / sizeof(uint64_t)];
};

struct reading {
    const struct memory_areas *map;
    const struct memory_source *memory;
    struct foreign_heap *out;
    struct u64_vec arenas; // addresses of states; the main one is the last
    struct map_u64 known;  // the same
    size_t chunks_left;
    size_t blocks_left;
};

static bool read_at(const struct reading *r, uint64_t address, void *out, size_t size_bytes)
{
    return r->memory->read(r->memory->context, address, out, size_bytes);
}

static uint64_t word_of(const union arena_state *state, size_t at)
{
    return state->words[at / sizeof(uint64_t)];
}

static const struct heap_claim *claim_at(const struct reading *r, uint64_t address)
{
    const struct heap_claim_vec *claims = &r->out->claims;
    const size_t first = FIRST_WHERE(at, claims->len, claims->items[at].range.end > address);
    const struct heap_claim *claim = claims->items + first;
    return first < claims->len && claim->range.start <= address ? claim : NULL;
}

static bool is_unnamed(const struct reading *r, const struct memory_area *area)
{
    return area->is_accessible && !area->is_shared && memory_area_path(r->map, area)[0] == '\0';
}

static bool is_known_arena(struct reading *r, uint64_t address)
{
    return map_u64_find(&r->known, address) != NULL;
}

static enum err push_arena(struct reading *r, uint64_t address)
{
    TRY(map_u64_put(&r->known, address, 1));
    return u64_vec_push(&r->arenas, address);
}

// Claim what is a heap of an arena at a multiple of its size. The kernel may have made one area of
// two heaps.
static enum err claim_heap(struct reading *r, const struct memory_area *area, uint64_t start)
{
    struct heap_info info;
    if (!read_at(r, start, &info, sizeof(info)) || info.size_bytes < page_bytes() ||
        info.size_bytes > info.accessible_bytes || info.accessible_bytes > HEAP_BYTES ||
        page_rest(info.accessible_bytes) != 0 || info.accessible_bytes > area->end - start ||
        info.arena % HEAP_BYTES < sizeof(info) || info.arena % HEAP_BYTES > HEAP_INFO_BYTES_MAX) {
        return ERR_OK;
    }
    if (!is_known_arena(r, info.arena) && r->arenas.len < ARENAS_MAX) {
        TRY(push_arena(r, info.arena));
    }
    return heap_claim_vec_push(
        &r->out->claims,
        (struct heap_claim){.range = {.start = start, .end = start + info.accessible_bytes},
                            .kind = HEAP_CLAIM_CHUNKS});
}

static enum err find_heaps(struct reading *r)
{
    for (size_t i = 0; i < r->map->areas.len; i++) {
        const struct memory_area *area = r->map->areas.items + i;
        if (strcmp(memory_area_path(r->map, area), "[heap]") == 0) {
            TRY(heap_claim_vec_push(
                &r->out->claims,
                (struct heap_claim){.range = {.start = area->start, .end = area->end},
                                    .kind = HEAP_CLAIM_CHUNKS}));
        }
        uint64_t start = (area->start + HEAP_BYTES - 1) & ~(uint64_t)(HEAP_BYTES - 1);
        const bool is_used = area->rss_bytes + area->swap_bytes > 0;
        for (; is_used && is_unnamed(r, area) && start < area->end; start += HEAP_BYTES) {
            TRY(claim_heap(r, area, start));
        }
    }
    return ERR_OK;
}

// Return whether the state of an arena is at `address`, as far as it says so itself: its top is in
// a heap, and both ends of each list are in heaps, or the list is empty.
static bool is_state(const struct reading *r, const union arena_state *state, uint64_t address)
{
    const struct heap_claim *heap = claim_at(r, word_of(state, STATE_TOP));
    if (heap == NULL || heap->kind != HEAP_CLAIM_CHUNKS ||
        word_of(state, STATE_SYSTEM_BYTES) < page_bytes()) {
        return false;
    }
    for (size_t bin = 0; bin < BINS; bin++) {
        const size_t links = STATE_BINS + bin * 2 * sizeof(uint64_t);
        const uint64_t head = address + links - CHUNK_LINKS;
        const uint64_t first = word_of(state, links);
        const uint64_t last = word_of(state, links + sizeof(uint64_t));
        if ((first == head) != (last == head) ||
            (first != head && (claim_at(r, first) == NULL || claim_at(r, last) == NULL))) {
            return false;
        }
    }
    return true;
}

// Find the main arena's state in the writable data of a module.
static enum err search_data(struct reading *r, const struct memory_area *area, bool *out_is_found)
{
    CLEANUP(u64_vec_release) struct u64_vec words = {0};
    const uint64_t size_bytes = min_u64(area->end - area->start, DATA_BYTES_MAX);
    TRY(u64_vec_resize(&words, size_bytes / sizeof(uint64_t)));
    if (!read_at(r, area->start, words.items, size_bytes)) {
        return ERR_OK;
    }
    for (uint64_t at = 0; at + STATE_BYTES <= size_bytes; at += 2 * sizeof(uint64_t)) {
        const void *state = words.items + at / sizeof(uint64_t);
        if (is_state(r, state, area->start + at)) {
            *out_is_found = true;
            return push_arena(r, area->start + at);
        }
    }
    return ERR_OK;
}

static bool may_have_main_arena(const struct reading *r, const struct memory_area *area)
{
    const char *path = memory_area_path(r->map, area);
    const char *name = strrchr(path, '/');
    return name != NULL && area->is_accessible && area->rss_bytes > 0 && !area->is_shared &&
           (strncmp(name, "/libc.so", strlen("/libc.so")) == 0 ||
            strncmp(name, "/libc-2.", strlen("/libc-2.")) == 0);
}

// The other arenas link the main one. A process without other arenas is searched for it.
static enum err find_main_arena(struct reading *r)
{
    union arena_state state;
    bool is_found = false;
    for (size_t i = 0; i < r->arenas.len && i < ARENAS_MAX; i++) {
        const uint64_t next = read_at(r, r->arenas.items[i], state.bytes, sizeof(state.bytes))
                                  ? word_of(&state, STATE_NEXT)
                                  : 0;
        if (next % sizeof(uint64_t) == 0 && !is_known_arena(r, next) &&
            read_at(r, next, state.bytes, sizeof(state.bytes)) && is_state(r, &state, next)) {
            TRY(push_arena(r, next));
            is_found = true;
        }
    }
    for (size_t i = 0; !is_found && i < r->map->areas.len; i++) {
        if (may_have_main_arena(r, r->map->areas.items + i)) {
            TRY(search_data(r, r->map->areas.items + i, &is_found));
        }
    }
    return ERR_OK;
}

// Return the bytes of a chunk within a heap; 0: there is none.
static uint64_t chunk_bytes(const struct reading *r, uint64_t address, const struct chunk *chunk)
{
    const struct heap_claim *heap = claim_at(r, address);
    const uint64_t bytes = chunk->size & ~(uint64_t)SIZE_FLAGS;
    return heap != NULL && heap->kind == HEAP_CLAIM_CHUNKS && address % 16 == 0 &&
                   bytes >= CHUNK_BYTES_MIN && bytes <= heap->range.end - address
               ? bytes
               : 0;
}

static enum err push_free(struct reading *r, uint64_t address, uint64_t bytes)
{
    return address_range_vec_push(&r->out->free,
                                  (struct address_range){.start = address, .end = address + bytes});
}

// Note the free chunks of a list, from its head to its head again.
static enum err walk_bin(struct reading *r, uint64_t head, uint64_t first)
{
    uint64_t before = head;
    for (uint64_t at = first; at != head;) {
        struct chunk chunk;
        if (r->chunks_left == 0 || !read_at(r, at, &chunk, sizeof(chunk)) ||
            chunk_bytes(r, at, &chunk) == 0 || chunk.before != before) {
            r->out->is_whole = false;
            return ERR_OK;
        }
        r->chunks_left--;
        TRY(push_free(r, at, chunk_bytes(r, at, &chunk)));
        before = at;
        at = chunk.next;
    }
    return ERR_OK;
}

// Note the small chunks of a list that ends with 0. Since glibc 2.32 each link is combined with its
// own place.
static enum err walk_fast_list(struct reading *r, uint64_t first)
{
    for (uint64_t at = first; at != 0;) {
        struct chunk chunk;
        const uint64_t bytes = r->chunks_left > 0 && read_at(r, at, &chunk, sizeof(chunk))
                                   ? chunk_bytes(r, at, &chunk)
                                   : 0;
        if (bytes == 0 || bytes > FAST_BYTES_MAX) {
            r->out->is_whole = false;
            return ERR_OK;
        }
        r->chunks_left--;
        TRY(push_free(r, at, bytes));
        const uint64_t plain = chunk.next ^ (at + CHUNK_LINKS) >> 12;
        at = plain == 0 || claim_at(r, plain) != NULL ? plain : chunk.next;
    }
    return ERR_OK;
}

// The first list has chunks of all sizes; the others are walked from large chunks to small ones.
static enum err walk_arena(struct reading *r, uint64_t address)
{
    union arena_state state;
    struct chunk top;
    if (!read_at(r, address, state.bytes, sizeof(state.bytes)) || !is_state(r, &state, address)) {
        r->out->is_whole = false;
        return ERR_OK;
    }
    const uint64_t top_address = word_of(&state, STATE_TOP);
    if (read_at(r, top_address, &top, sizeof(top)) && chunk_bytes(r, top_address, &top) > 0) {
        TRY(push_free(r, top_address, chunk_bytes(r, top_address, &top)));
        // The main arena's state is in no heap.
        TRY(claim_at(r, address) != NULL ? u64_vec_push(&r->out->tops, top_address) : ERR_OK);
    }
    for (size_t i = 0; i < BINS; i++) {
        const size_t bin = i == 0 ? 0 : BINS - i;
        const size_t links = STATE_BINS + bin * 2 * sizeof(uint64_t);
        TRY(walk_bin(r, address + links - CHUNK_LINKS, word_of(&state, links)));
    }
    for (size_t i = 0; i < FAST_LISTS; i++) {
        TRY(walk_fast_list(r, word_of(&state, STATE_FAST + i * sizeof(uint64_t))));
    }
    return ERR_OK;
}

static int compare_ranges(const void *left, const void *right)
{
    const struct address_range *a = left;
    const struct address_range *b = right;
    return order_u64(a->start, b->start);
}

// Chunks that were freed, merged or split meanwhile overlap: each byte counts once.
static void join_free(struct address_range_vec *ranges)
{
    size_t kept = 0;
    address_range_vec_sort(ranges, compare_ranges);
    for (size_t i = 0; i < ranges->len; i++) {
        const struct address_range range = ranges->items[i];
        struct address_range *last = kept > 0 ? ranges->items + kept - 1 : NULL;
        if (last != NULL && range.start <= last->end) {
            last->end = max_u64(last->end, range.end);
        } else {
            ranges->items[kept++] = range;
        }
    }
    ranges->len = kept;
}

// Return the size of the block with a mapping of its own that begins at `address`, 0 if there is
// none.
static uint64_t mapped_bytes(const struct reading *r, uint64_t address)
{
    struct chunk chunk;
    const bool is_mapped = read_at(r, address, &chunk, sizeof(chunk)) &&
                           (chunk.size & SIZE_FLAGS) == IS_MAPPED && chunk.previous_bytes == 0;
    const uint64_t bytes = is_mapped ? chunk.size & ~(uint64_t)SIZE_FLAGS : 0;
    return page_rest(bytes) == 0 ? bytes : 0;
}

// Return where such blocks end that are one behind the other from `start` on: `start` if something
// else is there. Small blocks count only if they fill the memory: a small number may be by chance.
static uint64_t end_of_blocks(struct reading *r, uint64_t start, uint64_t end)
{
    uint64_t at = start;
    bool are_large = true;
    while (at < end && r->blocks_left > 0) {
        const uint64_t bytes = mapped_bytes(r, at);
        r->blocks_left--;
        if (bytes == 0 || bytes > end - at) {
            break;
        }
        are_large = are_large && bytes >= LARGE_BYTES_MIN;
        at += bytes;
    }
    return at == end || are_large ? at : start;
}

static enum err
find_blocks(struct reading *r, const struct u64_vec *stack_tops, struct heap_claim_vec *blocks)
{
    size_t passed = 0; // ends of stacks before the end of the area
    for (size_t i = 0; i < r->map->areas.len; i++) {
        const struct memory_area *area = r->map->areas.items + i;
        while (passed < stack_tops->len && stack_tops->items[passed] < area->end) {
            passed++;
        }
        const uint64_t top = passed > 0 ? stack_tops->items[passed - 1] : 0;
        const uint64_t start = max_u64(area->start, top);
        if (!is_unnamed(r, area) || area->rss_bytes == 0 || claim_at(r, start) != NULL) {
            continue;
        }
        const uint64_t end = end_of_blocks(r, start, area->end);
        if (end > start) {
            TRY(heap_claim_vec_push(blocks,
                                    (struct heap_claim){.range = {.start = start, .end = end},
                                                        .kind = HEAP_CLAIM_BLOCKS}));
        }
    }
    return ERR_OK;
}

static void reading_release(struct reading *r)
{
    u64_vec_release(&r->arenas);
    map_u64_release(&r->known);
}

enum err glibc_heap_read(const struct memory_areas *map,
                         const struct memory_source *memory,
                         const struct u64_vec *stack_tops,
                         struct foreign_heap *out)
{
    CLEANUP(foreign_heap_release) struct foreign_heap found = {.is_whole = true, .is_read = true};
    CLEANUP(reading_release)
    struct reading r = {.map = map,
                        .memory = memory,
                        .out = &found,
                        .chunks_left = CHUNKS_MAX,
                        .blocks_left = BLOCKS_MAX};
    TRY(find_heaps(&r));
    TRY(find_main_arena(&r));
    if (r.arenas.len == 0) { // no glibc: [heap] is another allocator's
        *out = (struct foreign_heap){.is_whole = true};
        return ERR_OK;
    }
    for (size_t i = 0; i < r.arenas.len; i++) {
        TRY(walk_arena(&r, r.arenas.items[i]));
    }
    join_free(&found.free);
    u64_vec_sort_numbers(&found.tops);
    CLEANUP(heap_claim_vec_release) struct heap_claim_vec blocks = {0};
    TRY(find_blocks(&r, stack_tops, &blocks));
    for (size_t i = 0; i < blocks.len; i++) {
        TRY(heap_claim_vec_push(&found.claims, blocks.items[i]));
    }
    heap_claim_vec_sort(&found.claims, compare_ranges); // a claim begins with its range
    *out = TAKE(found);
    return ERR_OK;
}

enum err glibc_heap_read_tops(const struct memory_areas *map,
                              const struct memory_source *memory,
                              struct foreign_heap *out)
{
    CLEANUP(foreign_heap_release) struct foreign_heap found = {0};
    CLEANUP(reading_release) struct reading r = {.map = map, .memory = memory, .out = &found};
    TRY(find_heaps(&r));
    out->knows_tops = true;
    for (size_t i = 0; i < r.arenas.len; i++) {
        uint64_t top;
        if (read_at(&r, r.arenas.items[i] + STATE_TOP, &top, sizeof(top)) &&
            claim_at(&r, top) != NULL) {
            TRY(u64_vec_push(&out->tops, top));
        } else {
            out->knows_tops = false;
        }
    }
    u64_vec_sort_numbers(&out->tops);
    return ERR_OK;
}
