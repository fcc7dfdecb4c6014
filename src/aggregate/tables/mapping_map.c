// SPDX-License-Identifier: MIT
#include "aggregate/tables/mapping_map.h"

#include <string.h>

#include "base/minmax.h"
#include "base/search.h"

enum {
    TIDY_MIN = 1024
};

void mapping_map_release(struct mapping_map *map)
{
    mapped_range_vec_release(&map->ranges);
    mapped_range_vec_release(&map->scratch);
    map->tidy_at = 0;
}

// Return the index of the first range that ends after `address`.
static size_t first_behind(const struct mapping_map *map, uint64_t address)
{
    return FIRST_WHERE(at, map->ranges.len, map->ranges.items[at].end > address);
}

const struct mapped_range *mapping_map_at(const struct mapping_map *map, uint64_t address)
{
    const size_t at = first_behind(map, address);
    return at < map->ranges.len ? map->ranges.items + at : NULL;
}

// Drop old unmapped ranges and merge old neighbours of one row: no later change can be older than
// they are.
static void tidy_pieces(struct mapping_map *map, uint64_t now_ms)
{
    struct mapped_range_vec *ranges = &map->ranges;
    size_t kept = 0;
    for (size_t i = 0; i < ranges->len; i++) {
        const struct mapped_range range = ranges->items[i];
        const bool is_old = range.since_ms + MAPPING_KEPT_MS < now_ms;
        if (is_old && range.row == REC_NONE) {
            continue;
        }
        struct mapped_range *last = kept > 0 ? ranges->items + kept - 1 : NULL;
        if (is_old && last != NULL && last->end == range.start && last->row == range.row &&
            last->since_ms + MAPPING_KEPT_MS < now_ms) {
            last->end = range.end;
            last->number = max_u64(last->number, range.number);
        } else {
            ranges->items[kept++] = range;
        }
    }
    ranges->len = kept;
    map->tidy_at = kept > TIDY_MIN / 2 ? 2 * kept : TIDY_MIN;
}

// Add a piece to the replacement. A piece that continues the last one extends it if both are of the
// same change.
static enum err
add_piece(struct mapping_map *map, const struct mapped_range *of, uint64_t start, uint64_t end)
{
    struct mapped_range_vec *pieces = &map->scratch;
    const bool is_full = map->ranges.len >= MAPPING_RANGES_MAX;
    if (start >= end || (is_full && of->row == REC_NONE)) {
        return ERR_OK;
    }
    struct mapped_range *last = pieces->len > 0 ? pieces->items + pieces->len - 1 : NULL;
    if (last != NULL && last->end == start && last->number == of->number && last->row == of->row) {
        last->end = end;
        return ERR_OK;
    }
    struct mapped_range piece = *of;
    piece.start = start;
    piece.end = end;
    return mapped_range_vec_push(pieces, piece);
}

// Replace ranges [from, to) by the pieces.
static enum err splice_pieces(struct mapping_map *map, size_t from, size_t to)
{
    struct mapped_range_vec *ranges = &map->ranges;
    const struct mapped_range_vec *pieces = &map->scratch;
    TRY(mapped_range_vec_reserve(ranges, pieces->len));
    if (to < ranges->len) {
        memmove(ranges->items + from + pieces->len, ranges->items + to,
                (ranges->len - to) * sizeof(*ranges->items));
    }
    if (pieces->len > 0) {
        memcpy(ranges->items + from, pieces->items, pieces->len * sizeof(*pieces->items));
    }
    ranges->len = ranges->len - (to - from) + pieces->len;
    return ERR_OK;
}

// Return the owner of the overlap of `old` and `what`: the one with the higher number.
static const struct mapped_range *winner(const struct mapped_range *old,
                                         const struct mapped_range *what)
{
    return old->number > what->number ? old : what;
}

// Make the pieces that replace ranges [from, to).
static enum err
cut_piece(struct mapping_map *map, size_t from, size_t to, const struct mapped_range *what)
{
    mapped_range_vec_clear(&map->scratch);
    uint64_t at = what->start;
    for (size_t i = from; i < to; i++) {
        const struct mapped_range *old = map->ranges.items + i;
        const uint64_t start = max_u64(old->start, what->start);
        const uint64_t end = min_u64(old->end, what->end);
        TRY(add_piece(map, old, old->start, start));
        TRY(add_piece(map, what, at, start));
        TRY(add_piece(map, winner(old, what), start, end));
        TRY(add_piece(map, old, end, old->end)); // not empty for the last one only
        at = end;
    }
    return add_piece(map, what, at, what->end);
}

// Report the parts that leave their rows, when nothing can fail any more.
static void report_parts(const struct mapping_map *map,
                         size_t from,
                         size_t to,
                         const struct mapped_range *what,
                         const struct mapping_sink *sink)
{
    for (size_t i = from; i < to; i++) {
        const struct mapped_range *old = map->ranges.items + i;
        const struct mapped_range *loser = winner(old, what) == old ? what : old;
        if (loser->row != REC_NONE) {
            sink->left(sink->context, loser->row,
                       min_u64(old->end, what->end) - max_u64(old->start, what->start));
        }
    }
}

enum err mapping_map_set(struct mapping_map *map,
                         const struct mapped_range *what,
                         const struct mapping_sink *sink)
{
    if (map->ranges.len >= max_u64(map->tidy_at, TIDY_MIN)) {
        tidy_pieces(map, what->since_ms);
    }
    const size_t most = what->row != REC_NONE ? MAPPING_RANGES_MAX : 2 * MAPPING_RANGES_MAX;
    if (map->ranges.len >= most) {
        map->unplaced++;
        if (what->row != REC_NONE) {
            sink->left(sink->context, what->row, what->end - what->start);
        }
        return ERR_OK;
    }
    const size_t from = first_behind(map, what->start);
    size_t to = from;
    while (to < map->ranges.len && map->ranges.items[to].start < what->end) {
        to++;
    }
    TRY(cut_piece(map, from, to, what));
    TRY(mapped_range_vec_reserve(&map->ranges, map->scratch.len)); // so that splice cannot fail
    report_parts(map, from, to, what, sink);
    return splice_pieces(map, from, to);
}

bool mapping_map_check(const struct mapping_map *map)
{
    for (size_t i = 0; i < map->ranges.len; i++) {
        const struct mapped_range *range = map->ranges.items + i;
        if (range->start >= range->end || (i > 0 && range[-1].end > range->start)) {
            return false;
        }
    }
    return true;
}
