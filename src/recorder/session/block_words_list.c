// SPDX-License-Identifier: MIT
#include "recorder/session/block_words_list.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "base/order.h"
#include "host/containers/vec.h"

// Of address: so many words are read at once.
#define CHUNK_BITS  20
#define CHUNK_BYTES (1u << CHUNK_BITS)
#define PAGE_BITS   WORDS_COARSE_BITS // blocks are sorted page by page

#define READ_BUCKETS 64u // of entries

DEFINE_VEC(word_block_vec, struct word_block);

enum {
    PAGES = CHUNK_BYTES >> PAGE_BITS,
    MIDDLE_PAGE = 1 << (PAGE_BITS - WORDS_MIDDLE_BITS),
    FINE_PAGE = 1 << (PAGE_BITS - WORDS_FINE_BITS),
    TINY_PAGE = 1 << (PAGE_BITS - WORDS_TINY_BITS),
    TINY_GRAIN = 1 << (WORDS_FINE_BITS - WORDS_TINY_BITS), // of 32 bytes
    PAGE_BLOCKS_MAX = 1 + MIDDLE_PAGE + FINE_PAGE + TINY_PAGE,
};

// Only pages from `first` to `last` are read, which have all that are noted. A table that is a hole
// in the file is not there, and not filled.
struct chunk {
    uint32_t first;
    uint32_t last;
    struct words_page notes[PAGES];
    bool has_notes;
    bool has_coarse;
    bool has_middle;
    bool has_fine;
    bool has_tiny;
    bool has_large;
    uint64_t coarse[PAGES];
    uint64_t large[PAGES];
    uint64_t middle[PAGES * MIDDLE_PAGE];
    uint64_t fine[PAGES * FINE_PAGE];
    uint64_t tiny[PAGES * TINY_PAGE];
};

struct region {
    uint64_t address;
    uint64_t offset;
};

struct listing {
    int fd;
    uint64_t base;
    const struct block_words_visitor *visitor;
    struct words_file file;
    struct region regions[WORDS_REGIONS_MAX]; // of the process, by address
    struct chunk chunk;
    struct word_block blocks[PAGE_BLOCKS_MAX]; // of one page
    uint32_t block_count;
    struct word_block latest; // not reported yet; row 0: none
    uint32_t since_pause;     // blocks
    bool is_left;             // the visitor does not go on
    struct word_block_vec entries;
    size_t next_entry;
};

// Report a block, unless it overlaps the one before: then report the older one as stale.
static void report(struct listing *l, const struct word_block *block)
{
    const struct block_words_visitor *v = l->visitor;
    const uint64_t end = l->latest.address + l->latest.size_bytes;
    const bool is_overlapped =
        l->latest.row != 0 && (block->address < end || block->address == l->latest.address);
    if (is_overlapped && l->latest.birth_ms >= block->birth_ms) {
        v->stale(v->context, block);
        return;
    }
    if (is_overlapped) {
        v->stale(v->context, &l->latest);
    } else if (l->latest.row != 0) {
        v->live(v->context, &l->latest);
    }
    l->latest = *block;
}

static void pause_sometimes(struct listing *l)
{
    if (l->since_pause >= BLOCK_WORDS_PAUSE && l->visitor->goes_on != NULL) {
        l->since_pause = 0;
        l->is_left = !l->visitor->goes_on(l->visitor->context);
    }
}

// Report the blocks below `address` that have entries.
static void report_entries(struct listing *l, uint64_t address)
{
    while (!l->is_left && l->next_entry < l->entries.len &&
           l->entries.items[l->next_entry].address < address) {
        report(l, l->entries.items + l->next_entry++);
        l->since_pause++;
        pause_sometimes(l);
    }
}

static void end_report(struct listing *l)
{
    report_entries(l, UINT64_MAX);
    if (l->latest.row != 0) {
        l->visitor->live(l->visitor->context, &l->latest);
        l->latest.row = 0;
    }
}

static void
add_word(struct listing *l, uint64_t word, uint64_t size_bytes, uint64_t grain, uint32_t grain_bits)
{
    const uint64_t start = word_start(word, grain_bits);
    if (word_row(word) != 0 && start >> grain_bits == 0) {
        l->blocks[l->block_count++] =
            (struct word_block){.address = grain + start,
                                .size_bytes = size_bytes,
                                .birth_ms = word_birth_ms(word, grain_bits),
                                .row = word_row(word)};
    }
}

static void add_words(
    struct listing *l, const uint64_t *words, uint32_t count, uint64_t address, uint32_t grain_bits)
{
    for (uint32_t i = 0; i < count; i++) {
        if (words[i] != 0) {
            add_word(l, words[i], word_size(words[i], grain_bits),
                     address + ((uint64_t)i << grain_bits), grain_bits);
        }
    }
}

static int by_address(const void *a, const void *b)
{
    const struct word_block *x = a;
    const struct word_block *y = b;
    return order_u64(x->address, y->address) ?: order_u64(y->birth_ms, x->birth_ms);
}

static bool had_words(const _Atomic uint8_t *has)
{
    // The copy is private.
    return atomic_load_explicit(has, memory_order_relaxed) == WORDS_NOTE_HAD;
}

static bool is_noted(const struct words_page *page)
{
    return had_words(&page->has_coarse) || had_words(&page->has_middle) ||
           had_words(&page->has_fine);
}

static void visit_page(struct listing *l, uint32_t page, uint64_t address)
{
    const struct chunk *c = &l->chunk;
    const struct words_page *note = c->notes + page;
    const uint32_t fine = page * FINE_PAGE;
    l->block_count = 0;
    if (c->has_coarse && had_words(&note->has_coarse)) {
        const uint64_t large = c->has_large ? c->large[page] : 0;
        const bool is_sound = large >> WORDS_ADDRESS_BITS == 0;
        add_word(l, c->coarse[page], is_sound ? large : 0, address, WORDS_COARSE_BITS);
    }
    if (c->has_middle && had_words(&note->has_middle)) {
        add_words(l, c->middle + (size_t)page * MIDDLE_PAGE, MIDDLE_PAGE, address,
                  WORDS_MIDDLE_BITS);
    }
    const uint32_t others = l->block_count;
    const bool has_fine = c->has_fine && had_words(&note->has_fine);
    if (has_fine) {
        add_words(l, c->fine + fine, FINE_PAGE, address, WORDS_FINE_BITS);
    }
    for (uint32_t i = fine; has_fine && c->has_tiny && i < fine + FINE_PAGE; i++) {
        if (c->fine[i] == WORD_MARKER) {
            add_words(l, c->tiny + (size_t)i * TINY_GRAIN, TINY_GRAIN,
                      address + ((uint64_t)(i - fine) << WORDS_FINE_BITS), WORDS_TINY_BITS);
        }
    }
    if (others != 0 || c->has_tiny) { // else they are in order
        qsort(l->blocks, l->block_count, sizeof(l->blocks[0]), by_address);
    }
    for (uint32_t i = 0; i < l->block_count; i++) {
        report_entries(l, l->blocks[i].address);
        report(l, &l->blocks[i]);
    }
    l->since_pause += l->block_count;
}

// Read a part of the file; false: it is shorter, or cannot be read.
static bool read_part(int fd, uint64_t offset, void *to, size_t len_bytes)
{
    char *at = to;
    while (len_bytes > 0) {
        const ssize_t got = pread(fd, at, len_bytes, (off_t)offset);
        if (got <= 0 && !(got < 0 && errno == EINTR)) {
            return false;
        }
        const size_t step = got > 0 ? (size_t)got : 0;
        at += step;
        offset += step;
        len_bytes -= step;
    }
    return true;
}

// Read a part of the file as read_part does, unless it is a hole.
static bool read_words(int fd, uint64_t offset, void *to, size_t len_bytes, bool *is_there)
{
    const off_t data = lseek(fd, (off_t)offset, SEEK_DATA);
    *is_there = data < 0 ? errno != ENXIO : (uint64_t)data < offset + len_bytes;
    return !*is_there || read_part(fd, offset, to, len_bytes);
}

// Read the words of a table for the noted pages of the chunk at `place` of the region at `offset`.
// A page has (1 << PAGE_BITS >> grain_bits) of them.
#define READ_TABLE(l, table, offset, place, grain_bits)                                          \
    read_words((l)->fd,                                                                          \
               (offset) + offsetof(struct words_region, table) +                                 \
                   (((place) + ((uint64_t)(l)->chunk.first << PAGE_BITS)) >> (grain_bits)) *     \
                       sizeof(uint64_t),                                                         \
               (l)->chunk.table + ((size_t)(l)->chunk.first << PAGE_BITS >> (grain_bits)),       \
               ((size_t)((l)->chunk.last - (l)->chunk.first + 1) << PAGE_BITS >> (grain_bits)) * \
                   sizeof(uint64_t),                                                             \
               &(l)->chunk.has_##table)

// Read the notes of a chunk, and which pages they name. Other pages have no words, and may be a
// hole for a thousand times their size.
static bool read_notes(struct listing *l, uint64_t offset, uint64_t place, bool *has_any)
{
    struct chunk *c = &l->chunk;
    const uint64_t at = offset + (place >> PAGE_BITS) * sizeof(c->notes[0]);
    *has_any = false;
    if (!read_words(l->fd, at, c->notes, sizeof(c->notes), &c->has_notes)) {
        return false;
    }
    for (uint32_t page = 0; c->has_notes && page < PAGES; page++) {
        if (is_noted(c->notes + page)) {
            c->first = *has_any ? c->first : page;
            c->last = page;
            *has_any = true;
        }
    }
    return true;
}

static bool read_tables(struct listing *l, uint64_t offset, uint64_t place)
{
    const struct chunk *c = &l->chunk;
    return READ_TABLE(l, coarse, offset, place, WORDS_COARSE_BITS) &&
           (!c->has_coarse || READ_TABLE(l, large, offset, place, WORDS_COARSE_BITS)) &&
           READ_TABLE(l, middle, offset, place, WORDS_MIDDLE_BITS) &&
           READ_TABLE(l, fine, offset, place, WORDS_FINE_BITS) &&
           READ_TABLE(l, tiny, offset, place, WORDS_TINY_BITS);
}

static bool visit_region(struct listing *l, uint64_t offset, uint64_t address)
{
    for (uint64_t place = 0; place < WORDS_REGION_BYTES && !l->is_left; place += CHUNK_BYTES) {
        bool has_any;
        if (!read_notes(l, offset, place, &has_any) ||
            (has_any && !read_tables(l, offset, place))) {
            return false;
        }
        if (!has_any) {
            continue;
        }
        for (uint32_t page = l->chunk.first; page <= l->chunk.last; page++) {
            visit_page(l, page, address + place + ((uint64_t)page << PAGE_BITS));
        }
        pause_sometimes(l);
    }
    return true;
}

static int by_region(const void *a, const void *b)
{
    const struct region *x = a;
    const struct region *y = b;
    return order_u64(x->address, y->address) ?: order_u64(x->offset, y->offset);
}

static MUST_USE enum err
add_buckets(const struct entry_bucket *buckets, uint64_t count, struct word_block_vec *out)
{
    for (uint64_t i = 0; i < count * ENTRY_BUCKET; i++) {
        const struct block_entry *entry = &buckets[i / ENTRY_BUCKET].entries[i % ENTRY_BUCKET];
        // The copy is private.
        const uint64_t address = atomic_load_explicit(&entry->address, memory_order_relaxed);
        const uint64_t word = atomic_load_explicit(&entry->word, memory_order_relaxed);
        const uint64_t size = atomic_load_explicit(&entry->size_bytes, memory_order_relaxed);
        if (address != 0 && word_row(word) != 0 && size >> WORDS_ADDRESS_BITS == 0) {
            TRY(word_block_vec_push(out, entry_block(address, word, size)));
        }
    }
    return ERR_OK;
}

// Return where the file has data from `at` on, at the start of a bucket; `end` if nowhere before.
static uint64_t next_data(int fd, uint64_t offset, uint64_t at, uint64_t end)
{
    const off_t data = lseek(fd, (off_t)(offset + at), SEEK_DATA);
    if (data < 0) {
        return errno == ENXIO ? end : at;
    }
    const uint64_t found = max_u64((uint64_t)data, offset + at) - offset;
    return min_u64(found / sizeof(struct entry_bucket) * sizeof(struct entry_bucket), end);
}

// Append the blocks of the entries whose region begins at `offset` of the file, by address.
static MUST_USE enum err read_entries_at(int fd, uint64_t offset, struct word_block_vec *out)
{
    struct entry_bucket buckets[READ_BUCKETS];
    const uint64_t end = ENTRY_BYTES_ALL;
    uint64_t at = next_data(fd, offset, 0, end);
    while (at < end) {
        const ssize_t got =
            pread(fd, buckets, min_u64(sizeof(buckets), end - at), (off_t)(offset + at));
        if (got < 0 && errno == EINTR) {
            continue;
        }
        const uint64_t count = got > 0 ? (uint64_t)got / sizeof(buckets[0]) : 0;
        if (count == 0) {
            return ERR_IO;
        }
        TRY(add_buckets(buckets, count, out));
        at = next_data(fd, offset, at + count * sizeof(buckets[0]), end);
    }
    word_block_vec_sort(out, by_address);
    return ERR_OK;
}

// Return where in the file the entries of a process begin; 0: it has none.
static uint64_t entries_offset(const struct listing *l, uint32_t process)
{
    for (uint32_t i = 0; i < WORDS_REGIONS_MAX; i++) {
        // The copy is private.
        const uint64_t note = atomic_load_explicit(&l->file.regions[i], memory_order_relaxed);
        if (note == words_region_note(process, ENTRY_PLACE)) {
            return l->base + words_region_offset(i);
        }
    }
    return 0;
}

// Read the entries of a process.
static MUST_USE enum err read_entries(struct listing *l, uint32_t process)
{
    const uint64_t offset = entries_offset(l, process);
    return offset != 0 ? read_entries_at(l->fd, offset, &l->entries) : ERR_OK;
}

// Return whether any block of a process has had an entry; also if that is unknown.
static bool has_entries(const struct listing *l, uint32_t process)
{
    const uint64_t offset = entries_offset(l, process);
    return offset != 0 && next_data(l->fd, offset, 0, ENTRY_BYTES_ALL) < ENTRY_BYTES_ALL;
}

// Find the regions of a process and return their number. A place that is there twice counts once.
static uint32_t find_regions(struct listing *l, uint32_t process)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < WORDS_REGIONS_MAX; i++) {
        // The copy is private.
        const uint64_t note = atomic_load_explicit(&l->file.regions[i], memory_order_relaxed);
        const uint32_t place = (uint32_t)note - 1;
        if (note != 0 && note >> 32 == process && place < WORDS_PLACES) {
            l->regions[count++] = (struct region){.address = words_place_address(place),
                                                  .offset = l->base + words_region_offset(i)};
        }
    }
    qsort(l->regions, count, sizeof(l->regions[0]), by_region);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (kept == 0 || l->regions[kept - 1].address != l->regions[i].address) {
            l->regions[kept++] = l->regions[i];
        }
    }
    return kept;
}

static void listing_freep(struct listing **l)
{
    if (*l != NULL) {
        word_block_vec_release(&(*l)->entries);
    }
    free(*l);
}

enum err block_words_list(int words_fd,
                          uint64_t base,
                          uint32_t process,
                          const struct block_words_visitor *visitor,
                          struct err_info *info)
{
    CLEANUP(listing_freep) struct listing *l = calloc(1, sizeof(*l));
    if (l == NULL) {
        return ERR_NO_MEMORY;
    }
    l->fd = words_fd;
    l->base = base;
    l->visitor = visitor;
    bool is_read = read_part(words_fd, base, &l->file, sizeof(l->file));
    TRY(is_read ? read_entries(l, process) : ERR_OK);
    const uint32_t count = is_read ? find_regions(l, process) : 0;
    for (uint32_t i = 0; i < count && is_read; i++) {
        is_read = visit_region(l, l->regions[i].offset, l->regions[i].address);
    }
    if (!is_read) {
        return err_set_errno(info, errno, "cannot read the words of live blocks");
    }
    end_report(l);
    return ERR_OK;
}

struct block_words_places {
    int fd;
    bool has_entries; // these do not say where blocks were that have been freed
    uint32_t region_count;
    struct region regions[WORDS_REGIONS_MAX]; // of the process, by address
};

enum err block_words_places_open(int words_fd,
                                 uint64_t base,
                                 uint32_t process,
                                 struct block_words_places **out)
{
    struct block_words_places *places = calloc(1, sizeof(*places));
    CLEANUP(listing_freep) struct listing *l = calloc(1, sizeof(*l));
    if (l == NULL || places == NULL || !read_part(words_fd, base, &l->file, sizeof(l->file))) {
        free(places);
        return l == NULL || places == NULL ? ERR_NO_MEMORY : ERR_IO;
    }
    l->fd = words_fd;
    l->base = base;
    places->fd = words_fd;
    places->has_entries = has_entries(l, process);
    places->region_count = find_regions(l, process);
    memcpy(places->regions, l->regions, places->region_count * sizeof(l->regions[0]));
    *out = places;
    return ERR_OK;
}

void block_words_places_free(struct block_words_places *places)
{
    free(places);
}

// Do block_words_places_any for pages of one region.
static bool has_noted(int fd, const struct region *region, uint64_t start, uint64_t end)
{
    struct words_page pages[256];
    const uint64_t last = (end - region->address + (1u << PAGE_BITS) - 1) >> PAGE_BITS;
    uint64_t at = (start - region->address) >> PAGE_BITS;
    while (at < last) {
        const uint64_t count = min_u64(last - at, ARRAY_LEN(pages));
        bool is_there = false;
        if (!read_words(fd, region->offset + at * sizeof(pages[0]), pages, count * sizeof(pages[0]),
                        &is_there)) {
            return true;
        }
        for (uint64_t i = 0; is_there && i < count; i++) {
            if (is_noted(pages + i)) {
                return true;
            }
        }
        at += count;
    }
    return false;
}

bool block_words_places_any(const struct block_words_places *places, uint64_t start, uint64_t end)
{
    if (places->has_entries) {
        return true;
    }
    for (uint32_t i = 0; i < places->region_count; i++) {
        const struct region *region = places->regions + i;
        const uint64_t from = max_u64(start, region->address);
        const uint64_t to = min_u64(end, region->address + WORDS_REGION_BYTES);
        if (from < to && has_noted(places->fd, region, from, to)) {
            return true;
        }
    }
    return false;
}
