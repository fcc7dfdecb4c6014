// SPDX-License-Identifier: MIT
// heaptrack_events: the lines of a heaptrack file about allocations and frees.
//
// An interpreted file frees "a block of this size and stack", not a particular one. The importer
// assumes that it is the youngest one, because most blocks die young. So the live figures of a
// moment are exact, and the birth of a freed block is an estimate.
//
//   youngest[kind] = {born, count} -> births[...] -> births[...]     one entry a time slice
//
// Two numbers in the file may have the same size and stack. Then a block may be allocated under one
// and freed under the other, as in cairn's own export (export_heaptrack.c).
//
// A raw file frees an address. An allocation at a live address comes from another thread, which
// wrote its line before the line of the free. So the next free at that address frees the older
// block.
//
// Temporary allocations are counted as by heaptrack: the free directly follows the allocation in
// the file, of the same kind, or in a raw file of the same address, on any threads.
#include "formats/import/heaptrack_file.h"

enum {
    MOST_BYTES_SHIFT = 62, // bits of all allocated bytes together
};

static uint32_t find_row(struct heaptrack *h, uint64_t trace)
{
    uint32_t row;
    heaptrack_require(h, trace < h->import->b->nodes.len,
                      "the allocation refers to a trace that is not there");
    import_need(h->import, row_table_get(&h->totals.rows, h->thread, (uint32_t)trace, &row));
    return row;
}

void heaptrack_read_kind(struct heaptrack *h, struct bytes line)
{
    uint64_t trace = 0;
    struct allocation_kind kind = {.twin = REC_NONE, .youngest.older = REC_NONE};
    heaptrack_require(h,
                      heaptrack_number(&line, &kind.size_bytes) &&
                          heaptrack_number(&line, &trace) && line.len == 0,
                      "the allocation lacks its size or trace");
    kind.row = find_row(h, trace);
    import_need(h->import,
                h->kinds.len < REC_NONE ? allocation_kind_vec_push(&h->kinds, kind) : ERR_LIMIT);
}

static inline void count_allocation(struct heaptrack *h, uint32_t row, uint64_t size_bytes)
{
    const uint64_t most_bytes = UINT64_C(1) << MOST_BYTES_SHIFT;
    if (UNLIKELY(size_bytes > most_bytes - h->totals.sums.allocated_bytes)) {
        import_refuse_line(h->import, ERR_LIMIT, "more bytes were allocated than possible");
    }
    import_need(h->import, heap_totals_allocated(&h->totals, row, size_bytes));
}

// Move the youngest blocks to the older ones.
static void put_aside(struct heaptrack *h, struct birth *youngest)
{
    uint32_t place = h->free_birth;
    if (place != REC_NONE) {
        h->free_birth = h->births.items[place].older;
        h->births.items[place] = *youngest;
    } else {
        place = (uint32_t)h->births.len;
        import_need(h->import,
                    place < REC_NONE ? birth_vec_push(&h->births, *youngest) : ERR_LIMIT);
    }
    *youngest = (struct birth){.older = place};
}

static void allocate_kind(struct heaptrack *h, uint64_t number)
{
    heaptrack_require(h, number < h->kinds.len,
                      "the event refers to an allocation that is not there");
    struct allocation_kind *kind = &h->kinds.items[number];
    struct birth *youngest = &kind->youngest;
    if (UNLIKELY(youngest->count == 0)) {
        youngest->born_ms = h->totals.now_ms;
    } else if (UNLIKELY(heap_totals_slice_of(&h->totals, youngest->born_ms) !=
                        h->totals.series.current)) {
        put_aside(h, youngest);
        youngest->born_ms = h->totals.now_ms;
    }
    youngest->count++;
    h->last_allocated = number;
    count_allocation(h, kind->row, kind->size_bytes);
}

static uint64_t key_of_kind(const struct allocation_kind *kind)
{
    return (uint64_t)kind->row << 32 | (uint32_t)(kind->size_bytes ^ kind->size_bytes >> 32);
}

// Return the first kind with the same size and stack, REC_NONE if this is the first one.
static uint32_t find_twin(struct heaptrack *h, uint32_t kind)
{
    const struct allocation_kind *kinds = h->kinds.items;
    for (; h->indexed_kinds <= kind; h->indexed_kinds++) {
        uint64_t key = key_of_kind(&kinds[h->indexed_kinds]);
        if (map_u64_find(&h->kind_of, key) == NULL) {
            import_need(h->import, map_u64_put(&h->kind_of, key, h->indexed_kinds));
        }
    }
    const uint32_t *first = map_u64_find(&h->kind_of, key_of_kind(&kinds[kind]));
    bool is_same = first != NULL && *first != kind && kinds[*first].row == kinds[kind].row &&
                   kinds[*first].size_bytes == kinds[kind].size_bytes;
    return is_same ? *first : REC_NONE;
}

// Resolve a free under a kind without live blocks: return a kind of the same size and stack.
static NOINLINE struct allocation_kind *resolve_twin(struct heaptrack *h,
                                                     struct allocation_kind *kind)
{
    if (kind->twin == REC_NONE) {
        kind->twin = find_twin(h, (uint32_t)(kind - h->kinds.items));
    }
    heaptrack_require(h, kind->twin != REC_NONE && h->kinds.items[kind->twin].youngest.count > 0,
                      "a block is freed that is not live");
    return &h->kinds.items[kind->twin];
}

static void drop_youngest(struct heaptrack *h, struct birth *youngest)
{
    uint32_t place = youngest->older;
    youngest->count--;
    if (youngest->count == 0 && place != REC_NONE) {
        *youngest = h->births.items[place];
        h->births.items[place].older = h->free_birth;
        h->free_birth = place;
    }
}

static void free_kind(struct heaptrack *h, uint64_t number)
{
    heaptrack_require(h, number < h->kinds.len,
                      "the event refers to an allocation that is not there");
    struct allocation_kind *kind = &h->kinds.items[number];
    if (UNLIKELY(kind->youngest.count == 0)) {
        kind = resolve_twin(h, kind);
    }
    const struct heap_free block = {.size_bytes = kind->size_bytes,
                                    .born_ms = kind->youngest.born_ms,
                                    .row = kind->row,
                                    .lifetime = BUCKET_UNKNOWN,
                                    .is_temporary = number == h->last_allocated};
    h->last_allocated = HEAPTRACK_NOTHING;
    drop_youngest(h, &kind->youngest);
    import_need(h->import, heap_totals_freed(&h->totals, &block));
}

// Add a block, and return its index.
static uint32_t new_block(struct heaptrack *h, struct raw_block block)
{
    uint32_t place = h->free_block;
    if (place == REC_NONE) {
        place = (uint32_t)h->blocks.len;
        import_need(h->import,
                    place < REC_NONE ? raw_block_vec_push(&h->blocks, block) : ERR_LIMIT);
    } else {
        h->free_block = h->blocks.items[place].next;
        h->blocks.items[place] = block;
    }
    return place;
}

static void allocate_address(struct heaptrack *h, struct bytes line, uint64_t size)
{
    uint64_t trace = 0;
    uint64_t address = 0;
    struct raw_block block = {.size_bytes = size, .born_ms = h->totals.now_ms, .next = REC_NONE};
    heaptrack_require(
        h, heaptrack_number(&line, &trace) && heaptrack_number(&line, &address) && line.len == 0,
        "the allocation lacks its trace or address");
    block.row = find_row(h, trace);
    const uint32_t place = new_block(h, block);
    const uint32_t *oldest = map_u64_find(&h->block_of, address);
    if (oldest == NULL) {
        import_need(h->import, map_u64_put(&h->block_of, address, place));
    } else {
        // Insert after the oldest. Only a damaged file has a third block at one address.
        h->blocks.items[place].next = h->blocks.items[*oldest].next;
        h->blocks.items[*oldest].next = place;
    }
    h->last_allocated = address;
    count_allocation(h, block.row, size);
}

static void free_address(struct heaptrack *h, uint64_t address)
{
    const uint32_t *oldest = map_u64_find(&h->block_of, address);
    const bool is_temporary = h->last_allocated == address;
    h->last_allocated = HEAPTRACK_NOTHING;
    if (oldest == NULL) { // allocated before the recording, or by a function that heaptrack does
                          // not hook
        h->import->b->totals.unknown_frees++;
        return;
    }
    uint32_t place = *oldest;
    struct raw_block *block = &h->blocks.items[place];
    const struct heap_free freed = {.size_bytes = block->size_bytes,
                                    .born_ms = block->born_ms,
                                    .row = block->row,
                                    .lifetime = rec_bucket_of(h->totals.now_ms - block->born_ms),
                                    .is_temporary = is_temporary};
    if (block->next != REC_NONE) {
        import_need(h->import, map_u64_put(&h->block_of, address, block->next));
    } else {
        (void)map_u64_remove(&h->block_of, address); // is present
    }
    block->next = h->free_block;
    h->free_block = place;
    import_need(h->import, heap_totals_freed(&h->totals, &freed));
}

void heaptrack_read_allocation(struct heaptrack *h, struct bytes line)
{
    uint64_t number = 0;
    heaptrack_require(h, heaptrack_number(&line, &number), "the allocation has no number");
    if (h->is_raw) {
        allocate_address(h, line, number);
    } else {
        heaptrack_require(h, line.len == 0, "the allocation has more than its number");
        allocate_kind(h, number);
    }
}

void heaptrack_read_free(struct heaptrack *h, struct bytes line)
{
    uint64_t number = 0;
    heaptrack_require(h, heaptrack_number(&line, &number) && line.len == 0,
                      "the free does not have one number");
    (h->is_raw ? free_address : free_kind)(h, number);
}

// The values of hexadecimal digits, 16 for every other byte.
static const uint8_t digits[256] = {
#define NONE_16 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16
    NONE_16, NONE_16, NONE_16, 0,       1,       2,       3,  4,       5,       6,
    7,       8,       9,       16,      16,      16,      16, 16,      16,      NONE_16,
    NONE_16, 16,      10,      11,      12,      13,      14, 15,      16,      16,
    16,      16,      16,      16,      16,      16,      16, NONE_16, NONE_16, NONE_16,
    NONE_16, NONE_16, NONE_16, NONE_16, NONE_16, NONE_16,
#undef NONE_16
};

// Nearly all lines of a large file are "+ 1f" and "- 1f". This loop reads each byte of them once
// and does not search for line feeds. Any other line is left to the general code.
void heaptrack_read_run(struct heaptrack *h)
{
    enum {
        LONGEST = 2 + 8 + 1, // a kind has at most eight digits
    };
    struct unpacked *in = h->import->in;
    while (in->end - in->begin >= LONGEST) {
        const uint8_t *start = (const uint8_t *)in->data + in->begin;
        const uint8_t *at = start + 2;
        uint32_t kind = 0;
        for (; digits[*at] < 16 && at < start + LONGEST - 1; at++) {
            kind = kind << 4 | digits[*at];
        }
        bool is_allocation = start[0] == '+';
        if ((!is_allocation && start[0] != '-') || start[1] != ' ' || *at != '\n' ||
            at == start + 2) {
            return;
        }
        size_t len = (size_t)(at - start) + 1;
        in->begin += len;
        in->offset += len;
        in->line_number++;
        if (is_allocation) {
            allocate_kind(h, kind);
        } else {
            free_kind(h, kind);
        }
    }
}
