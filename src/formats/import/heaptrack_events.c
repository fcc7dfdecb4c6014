// SPDX-License-Identifier: MIT
// heaptrack_events: the lines of a heaptrack file that say what was allocated and freed.
//
// An interpreted file frees "a block of this size and stack", not a certain one. To tell how old
// the blocks of a kind are, the youngest is taken to be the one that goes: most blocks die young.
// So what was live at a moment is exact, and when a freed block had been born an estimate.
//
//   youngest[kind] = {born, count} -> births[...] -> births[...]     one entry for each slice
//
// Two of its numbers can mean the same size and stack, and a block that was allocated as the one be
// freed as the other, as cairn's own export writes it (export_heaptrack.c).
//
// A raw file frees an address. An allocation at an address that is still live belongs to another
// thread that was quicker to write its line: the older block is the one that the next free means.
//
// Temporary is what heaptrack calls so: the free directly follows the allocation in the file, of
// the same kind, or in a raw file of the same address, whichever threads did it.
#include "formats/import/heaptrack_file.h"

static MUST_USE enum err find_row(struct heaptrack *h, uint64_t trace, uint32_t *out)
{
    struct recording_builder *b = h->import->b;
    if (trace >= b->nodes.len) {
        return heaptrack_refuse(h, "the allocation refers to a trace that is not there");
    }
    size_t known = h->row_of_node.len;
    if (trace >= known) {
        TRY(u32_vec_resize(&h->row_of_node, b->nodes.len));
        memset(h->row_of_node.items + known, 0xff,
               (b->nodes.len - known) * sizeof(uint32_t)); // REC_NONE
    }
    uint32_t *row = &h->row_of_node.items[trace];
    if (*row == REC_NONE) {
        TRY(tally_row(&h->tally, b, h->thread, (uint32_t)trace, row));
    }
    *out = *row;
    return ERR_OK;
}

enum err heaptrack_read_kind(struct heaptrack *h, struct bytes line)
{
    uint64_t size_bytes;
    uint64_t trace;
    uint32_t row = 0;
    if (!heaptrack_number(&line, &size_bytes) || !heaptrack_number(&line, &trace) || line.len > 0) {
        return heaptrack_refuse(h, "the allocation lacks its size or trace");
    }
    TRY(find_row(h, trace, &row));
    TRY(birth_vec_push(&h->youngest, (struct birth){.older = REC_NONE, .twin = REC_NONE}));
    return tally_kind(&h->tally, row, size_bytes);
}

// Says what is wrong with an event that the tally does not take.
static MUST_USE enum err explain(struct heaptrack *h, enum err err)
{
    if (err == ERR_LIMIT) {
        return import_refuse_line(h->import, err, "more bytes were allocated than there can be");
    }
    return err == ERR_CORRUPT ? heaptrack_refuse(h, "a block is freed that is not live") : err;
}

// The youngest blocks become older ones.
static MUST_USE enum err put_aside(struct heaptrack *h, struct birth *youngest)
{
    uint32_t place = h->free_birth;
    if (place != REC_NONE) {
        h->free_birth = h->births.items[place].older;
        h->births.items[place] = *youngest;
    } else {
        if (h->births.len >= REC_NONE) {
            return ERR_LIMIT;
        }
        place = (uint32_t)h->births.len;
        TRY(birth_vec_push(&h->births, *youngest));
    }
    *youngest = (struct birth){.older = place, .twin = youngest->twin};
    return ERR_OK;
}

static MUST_USE enum err allocate_kind(struct heaptrack *h, uint64_t kind)
{
    struct event_tally *t = &h->tally;
    if (UNLIKELY(kind >= t->kinds.len)) {
        return heaptrack_refuse(h, "the event refers to an allocation that is not there");
    }
    struct birth *youngest = &h->youngest.items[kind];
    if (UNLIKELY(youngest->count == 0)) {
        youngest->born_ms = t->now_ms;
    } else if (UNLIKELY(youngest->born_ms >> t->slice_shift != t->slice)) {
        TRY(put_aside(h, youngest));
        youngest->born_ms = t->now_ms;
    }
    youngest->count++;
    h->last_kind = (uint32_t)kind;
    enum err err = tally_allocate(t, (uint32_t)kind);
    return LIKELY(err == ERR_OK) ? ERR_OK : explain(h, err);
}

static uint64_t key_of_kind(const struct tally_kind *kind)
{
    return (uint64_t)kind->row << 32 | (uint32_t)(kind->size_bytes ^ kind->size_bytes >> 32);
}

// Finds the first kind of the same size and stack, REC_NONE if there is none before.
static MUST_USE enum err find_twin(struct heaptrack *h, uint32_t kind, uint32_t *out)
{
    const struct tally_kind *kinds = h->tally.kinds.items;
    for (; h->indexed_kinds <= kind; h->indexed_kinds++) {
        uint64_t key = key_of_kind(&kinds[h->indexed_kinds]);
        if (map_u64_find(&h->kind_of, key) == NULL) {
            TRY(map_u64_put(&h->kind_of, key, h->indexed_kinds));
        }
    }
    const uint32_t *first = map_u64_find(&h->kind_of, key_of_kind(&kinds[kind]));
    bool is_same = first != NULL && *first != kind && kinds[*first].row == kinds[kind].row &&
                   kinds[*first].size_bytes == kinds[kind].size_bytes;
    *out = is_same ? *first : REC_NONE;
    return ERR_OK;
}

// A block of the number `kind` is freed, none of which is live: one of the same size and stack.
static MUST_USE enum err resolve_twin(struct heaptrack *h, uint64_t *kind)
{
    struct birth *of = &h->youngest.items[*kind];
    if (of->twin == REC_NONE) {
        TRY(find_twin(h, (uint32_t)*kind, &of->twin));
    }
    *kind = of->twin != REC_NONE ? of->twin : *kind;
    return ERR_OK;
}

static void drop_youngest(struct heaptrack *h, struct birth *youngest)
{
    uint32_t place = youngest->older;
    youngest->count--;
    if (youngest->count == 0 && place != REC_NONE) {
        youngest->born_ms = h->births.items[place].born_ms;
        youngest->count = h->births.items[place].count;
        youngest->older = h->births.items[place].older;
        h->births.items[place].older = h->free_birth;
        h->free_birth = place;
    }
}

static MUST_USE enum err free_kind(struct heaptrack *h, uint64_t kind)
{
    struct event_tally *t = &h->tally;
    if (UNLIKELY(kind >= t->kinds.len)) {
        return heaptrack_refuse(h, "the event refers to an allocation that is not there");
    }
    bool is_temporary = kind == h->last_kind;
    if (UNLIKELY(h->youngest.items[kind].count == 0)) {
        TRY(resolve_twin(h, &kind));
    }
    enum err err = tally_free(t, (uint32_t)kind, is_temporary);
    if (UNLIKELY(err != ERR_OK)) {
        return explain(h, err);
    }
    h->last_kind = REC_NONE;
    uint64_t born_ms = h->youngest.items[kind].born_ms;
    drop_youngest(h, &h->youngest.items[kind]);
    if (LIKELY(born_ms >> t->slice_shift == t->slice)) {
        return ERR_OK;
    }
    return tally_cohort(t, t->kinds.items[kind].row, born_ms, t->kinds.items[kind].size_bytes);
}

// The kind of a raw allocation, which has no number in the file.
static MUST_USE enum err
find_kind(struct heaptrack *h, uint64_t trace, uint64_t size_bytes, uint32_t *out)
{
    uint32_t row = 0;
    TRY(find_row(h, trace, &row));
    bool is_small = size_bytes <= UINT32_MAX; // a larger one gets a kind of its own each time
    uint64_t key = (uint64_t)row << 32 | (size_bytes & UINT32_MAX);
    const uint32_t *known = is_small ? map_u64_find(&h->kind_of, key) : NULL;
    if (known != NULL) {
        *out = *known;
        return ERR_OK;
    }
    uint32_t kind = (uint32_t)h->tally.kinds.len;
    TRY(tally_kind(&h->tally, row, size_bytes));
    if (is_small) {
        TRY(map_u64_put(&h->kind_of, key, kind));
    }
    *out = kind;
    return ERR_OK;
}

static MUST_USE enum err new_block(struct heaptrack *h, uint32_t kind, uint32_t *out)
{
    uint32_t place = h->free_block;
    if (place == REC_NONE) {
        if (h->blocks.len >= REC_NONE) {
            return ERR_LIMIT;
        }
        place = (uint32_t)h->blocks.len;
        TRY(raw_block_vec_push(&h->blocks, (struct raw_block){0}));
    } else {
        h->free_block = h->blocks.items[place].next;
    }
    h->blocks.items[place] =
        (struct raw_block){.born_ms = h->tally.now_ms, .kind = kind, .next = REC_NONE};
    *out = place;
    return ERR_OK;
}

static MUST_USE enum err allocate_address(struct heaptrack *h, struct bytes line, uint64_t size)
{
    uint64_t trace;
    uint64_t address;
    uint32_t kind;
    uint32_t block;
    if (!heaptrack_number(&line, &trace) || !heaptrack_number(&line, &address) || line.len > 0) {
        return heaptrack_refuse(h, "the allocation lacks its trace or address");
    }
    TRY(find_kind(h, trace, size, &kind));
    TRY(new_block(h, kind, &block));
    const uint32_t *oldest = map_u64_find(&h->block_of, address);
    if (oldest == NULL) {
        TRY(map_u64_put(&h->block_of, address, block));
    } else {
        // Behind the oldest; a third at one address is no more than a damaged file's.
        h->blocks.items[block].next = h->blocks.items[*oldest].next;
        h->blocks.items[*oldest].next = block;
    }
    h->last_kind = kind;
    h->last_address = address;
    enum err err = tally_allocate(&h->tally, kind);
    return err == ERR_OK ? ERR_OK : explain(h, err);
}

static MUST_USE enum err free_address(struct heaptrack *h, uint64_t address)
{
    struct event_tally *t = &h->tally;
    const uint32_t *oldest = map_u64_find(&h->block_of, address);
    if (oldest == NULL) { // from before the recording, or of a hook that heaptrack does not have
        h->last_kind = REC_NONE;
        h->import->b->totals.unknown_frees++;
        return ERR_OK;
    }
    uint32_t place = *oldest;
    struct raw_block *block = &h->blocks.items[place];
    struct tally_kind kind = t->kinds.items[block->kind];
    uint64_t born_ms = block->born_ms;
    enum err err =
        tally_free(t, block->kind, h->last_kind != REC_NONE && h->last_address == address);
    if (err != ERR_OK) {
        return explain(h, err);
    }
    h->last_kind = REC_NONE;
    if (block->next != REC_NONE) {
        TRY(map_u64_put(&h->block_of, address, block->next));
    } else {
        (void)map_u64_remove(&h->block_of, address); // it is there
    }
    block->next = h->free_block;
    h->free_block = place;
    TRY(tally_lifetime(t, kind.row, born_ms, kind.size_bytes));
    return tally_cohort(t, kind.row, born_ms, kind.size_bytes);
}

enum err heaptrack_read_allocation(struct heaptrack *h, struct bytes line)
{
    uint64_t number;
    if (UNLIKELY(!heaptrack_number(&line, &number))) {
        return heaptrack_refuse(h, "the allocation has no number");
    }
    if (h->is_raw) {
        return allocate_address(h, line, number);
    }
    return LIKELY(line.len == 0) ? allocate_kind(h, number)
                                 : heaptrack_refuse(h, "the allocation has more than its number");
}

enum err heaptrack_read_free(struct heaptrack *h, struct bytes line)
{
    uint64_t number;
    if (UNLIKELY(!heaptrack_number(&line, &number) || line.len > 0)) {
        return heaptrack_refuse(h, "the free does not have one number");
    }
    return h->is_raw ? free_address(h, number) : free_kind(h, number);
}

// The value of a hexadecimal digit, 16 for everything else.
static const uint8_t digits[256] = {
#define NONE_16 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16, 16
    NONE_16, NONE_16, NONE_16, 0,       1,       2,       3,  4,       5,       6,
    7,       8,       9,       16,      16,      16,      16, 16,      16,      NONE_16,
    NONE_16, 16,      10,      11,      12,      13,      14, 15,      16,      16,
    16,      16,      16,      16,      16,      16,      16, NONE_16, NONE_16, NONE_16,
    NONE_16, NONE_16, NONE_16, NONE_16, NONE_16, NONE_16,
#undef NONE_16
};

// Nearly all lines of a large file are "+ 1f" and "- 1f": no line feed is looked for in them, and
// each is read once. What is not quite like that is left to the general way.
enum err heaptrack_read_run(struct heaptrack *h)
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
            return ERR_OK;
        }
        size_t len = (size_t)(at - start) + 1;
        in->begin += len;
        in->offset += len;
        in->line_number++;
        TRY(is_allocation ? allocate_kind(h, kind) : free_kind(h, kind));
    }
    return ERR_OK;
}

static MUST_USE enum err finish_births(struct heaptrack *h, uint32_t kind)
{
    const struct tally_kind *of = &h->tally.kinds.items[kind];
    const struct birth *birth = &h->youngest.items[kind];
    while (birth->count > 0) {
        TRY(tally_survivors(&h->tally, of->row, birth->born_ms, birth->count, of->size_bytes));
        if (birth->older == REC_NONE) {
            break;
        }
        birth = &h->births.items[birth->older];
    }
    return ERR_OK;
}

enum err heaptrack_finish_events(struct heaptrack *h)
{
    struct event_tally *t = &h->tally;
    for (uint32_t i = 0; i < h->youngest.len; i++) {
        TRY(finish_births(h, i));
    }
    size_t position = 0;
    uint64_t address;
    uint32_t place;
    while (map_u64_next(&h->block_of, &position, &address, &place)) {
        for (; place != REC_NONE; place = h->blocks.items[place].next) {
            const struct raw_block *block = &h->blocks.items[place];
            const struct tally_kind *kind = &t->kinds.items[block->kind];
            TRY(tally_survivors(t, kind->row, block->born_ms, 1, kind->size_bytes));
        }
    }
    return ERR_OK;
}
