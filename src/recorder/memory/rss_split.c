// SPDX-License-Identifier: MIT
#include "recorder/memory/rss_split.h"

#include <string.h>

#include "base/compiler.h"
#include "base/hash.h"
#include "base/minmax.h"
#include "base/order.h"
#include "host/os/file.h"
#include "recorder/memory/rss_measure.h"

enum {
    RECENT_PARTS = 256,
};

void rss_tables_release(struct rss_tables *tables)
{
    rec_part_vec_release(&tables->parts);
    rec_survivor_vec_release(&tables->survivors);
    shared_claim_vec_release(&tables->claims);
}

enum err rss_tables_append(struct rss_tables *tables, const struct rss_tables *more, uint32_t first)
{
    TRY(rec_part_vec_reserve(&tables->parts, more->parts.len));
    TRY(rec_survivor_vec_reserve(&tables->survivors, more->survivors.len));
    for (size_t i = 0; i < more->parts.len; i++) {
        struct rec_part part = more->parts.items[i];
        part.snapshot += first;
        tables->parts.items[tables->parts.len++] = part;
    }
    for (size_t i = 0; i < more->survivors.len; i++) {
        struct rec_survivor survivor = more->survivors.items[i];
        survivor.snapshot += first;
        tables->survivors.items[tables->survivors.len++] = survivor;
    }
    return ERR_OK;
}

// A part, and the file whose pages it shares with other processes.
struct split_part {
    struct rec_part part;
    struct shared_claim claim;
};

DEFINE_VEC(split_part_vec, struct split_part);

struct splitting {
    struct rss_measure m;
    struct split_part_vec parts;
    uint32_t recent[RECENT_PARTS]; // by hash: 1 + index in parts
};

static void splitting_release(struct splitting *s)
{
    rss_measure_release(&s->m);
    split_part_vec_release(&s->parts);
}

// Return the area whose file a piece belongs to: a .bss counts as the file before it.
static const struct memory_area *file_of(const struct splitting *s, const struct rss_piece *piece)
{
    const struct memory_area *area = rss_measure_area(&s->m, piece);
    return piece->area > 0 && piece->path != memory_area_path(s->m.map, area) ? area - 1 : area;
}

static struct shared_claim
claim_of(const struct splitting *s, const struct rss_piece *piece, const struct rec_part *part)
{
    const struct memory_area *area = rss_measure_area(&s->m, piece);
    const struct memory_area *file = file_of(s, piece);
    const uint64_t shared_bytes = share_u64(area->shared_bytes, part->rss_bytes, area->rss_bytes);
    return (struct shared_claim){
        .device = file->device,
        .inode = file->inode,
        .process = s->m.what->process->index,
        .shared_bytes = shared_bytes,
        .proportional_bytes = share_u64(area->proportional_bytes, part->rss_bytes, area->rss_bytes),
        .private_bytes = part->rss_bytes - shared_bytes,
        .late_bytes = file->inode != 0 ? s->m.what->late_bytes : 0,
    };
}

static int compare_parts(const void *left, const void *right)
{
    const struct rec_part *a = left;
    const struct rec_part *b = right;
    return order_u64(a->kind, b->kind)
               ?: order_u64(a->path, b->path)
               ?: order_u64(a->node, b->node)
               ?: order_u64(a->allocator, b->allocator);
}

static int compare_split_parts(const void *left, const void *right)
{
    const struct split_part *a = left;
    const struct split_part *b = right;
    return compare_parts(&a->part, &b->part)
               ?: order_u64(a->claim.device, b->claim.device)
               ?: order_u64(a->claim.inode, b->claim.inode);
}

static void add_part(struct rec_part *sum, const struct rec_part *part)
{
    sum->areas += part->areas;
    sum->is_estimate |= part->is_estimate;
    sum->virtual_bytes += part->virtual_bytes;
    sum->rss_bytes += part->rss_bytes;
    sum->swap_bytes += part->swap_bytes;
    sum->released_bytes += part->released_bytes;
    sum->huge_bytes += part->huge_bytes;
    sum->blank_bytes += part->blank_bytes;
}

static void add_split_part(struct split_part *sum, const struct split_part *more)
{
    add_part(&sum->part, &more->part);
    shared_claim_add(&sum->claim, &more->claim);
}

// A map of tens of thousands of areas has few different parts.
static enum err keep_part(struct splitting *s, const struct split_part *part)
{
    const uint64_t key = hash_mix(
        part->part.kind ^ (uint64_t)part->part.path << 8 ^
        hash_mix(part->part.node ^ part->claim.inode << 1 ^ (uint64_t)part->part.allocator << 32));
    uint32_t *recent = s->recent + key % RECENT_PARTS;
    struct split_part *same = *recent != 0 ? s->parts.items + *recent - 1 : NULL;
    if (same != NULL && compare_split_parts(same, part) == 0) {
        add_split_part(same, part);
        return ERR_OK;
    }
    *recent = (uint32_t)s->parts.len + 1;
    return split_part_vec_push(&s->parts, *part);
}

static enum err push_part(struct splitting *s,
                          const struct rss_piece *piece,
                          struct rec_part part,
                          struct string_table *strings,
                          const char *path)
{
    const struct memory_area *area = rss_measure_area(&s->m, piece);
    part.node = piece->node;
    part.areas = 1;
    part.huge_bytes = share_u64(area->huge_bytes, part.rss_bytes, area->rss_bytes);
    part.blank_bytes = share_u64(area->blank_bytes, part.rss_bytes, area->rss_bytes);
    part.allocator = piece->allocator;
    TRY(string_table_intern_text(strings, path, &part.path));
    return keep_part(s, &(struct split_part){.part = part, .claim = claim_of(s, piece, &part)});
}

// Whether all that glibc has of a piece are blocks with a mapping of their own. What is beside them
// is not its memory.
static bool has_blocks_alone(const struct splitting *s, const struct rss_piece *piece)
{
    const char *path = string_table_get(&s->m.what->aggregator->strings, piece->allocator);
    const char *name = path_file_name(path);
    return piece->is_by_blocks && piece->apart_count == piece->live_count &&
           (strncmp(name, "libc.so.", strlen("libc.so.")) == 0 ||
            strncmp(name, "libc-2.", strlen("libc-2.")) == 0);
}

// Return the kind of a heap that is only partly recorded.
static const char *unknown_heap(const struct rss_process *what, const struct rss_piece *piece)
{
    const uint32_t flags = what->process->record.flags;
    if (what->is_heap_known) {
        return "[beside large blocks of glibc]";
    }
    if (piece->is_asked) {
        return string_table_get(&what->aggregator->strings, what->process->earlier_name);
    }
    switch (piece->claim) {
    case HEAP_CLAIM_CHUNKS:
        return what->foreign->is_whole ? "[heap of glibc, allocated before recording]"
                                       : "[heap of glibc, allocated before recording, or free]";
    case HEAP_CLAIM_BLOCKS:
        return "[large blocks of glibc, allocated before recording]";
    case HEAP_CLAIM_NONE:
        break;
    }
    return (flags & REC_PROCESS_FORKED) != 0     ? "[heap inherited over fork]"
           : (flags & REC_PROCESS_ATTACHED) != 0 ? "[allocated before recording, or free]"
                                                 : "[unrecorded heap]";
}

// Split the allocator's piece into live, rounding and kept.
static enum err
push_heap(struct splitting *s, const struct rss_piece *piece, struct string_table *strings)
{
    uint64_t live = piece->live_bytes;
    uint64_t occupied = piece->occupied_bytes;
    bool is_estimate = false;
    if (rss_measure_has_pages(
            &s->m, piece)) { // of pages that share the kernel's zero page, a part is live
        const struct address_range all = {.start = piece->start, .end = piece->end};
        const uint64_t there =
            max_u64(rss_measure_resident_bytes(&s->m, piece, all), piece->rss_bytes);
        live = share_u64(live, piece->rss_bytes, there);
        occupied = share_u64(occupied, piece->rss_bytes, there);
    } else if (piece->rss_bytes > 0) {
        is_estimate = true;
        live = piece->requested_bytes;
        occupied = piece->extent_bytes;
    }
    live = min_u64(live, piece->rss_bytes);
    occupied = min_u64(occupied, piece->rss_bytes);
    occupied = max_u64(occupied, live);
    const bool is_known = s->m.what->is_heap_known && !has_blocks_alone(s, piece);
    const uint64_t size_bytes = piece->end - piece->start;
    const uint64_t spare_bytes =
        size_bytes > piece->extent_bytes ? size_bytes - piece->extent_bytes : 0;
    const uint64_t rounding_bytes = excess_u64(piece->extent_bytes, piece->requested_bytes);
    // More of it is resident than the blocks leave room for: the program ran on after its map was
    // read, and the pages of some blocks were not seen.
    if (piece->rss_bytes - occupied > spare_bytes) {
        occupied = piece->rss_bytes - spare_bytes;
        live = occupied - live > rounding_bytes ? occupied - rounding_bytes : live;
        is_estimate = true;
    }
    TRY(push_part(s, piece,
                  (struct rec_part){.kind = REC_PART_LIVE,
                                    .is_estimate = is_estimate,
                                    .virtual_bytes = piece->requested_bytes,
                                    .rss_bytes = live},
                  strings, piece->path));
    TRY(push_part(s, piece,
                  (struct rec_part){.kind = REC_PART_ROUNDING,
                                    .is_estimate = 1,
                                    .virtual_bytes = rounding_bytes,
                                    .rss_bytes = occupied - live},
                  strings, piece->path));
    // The free part of an inherited heap, and of one that is not recorded, is unknown, unless its
    // allocator says what is free.
    const uint64_t other_bytes = piece->rss_bytes - occupied;
    const uint64_t kept_bytes = is_known ? other_bytes : min_u64(piece->free_bytes, other_bytes);
    if (is_known || kept_bytes > 0) {
        TRY(push_part(
            s, piece,
            (struct rec_part){.kind = REC_PART_KEPT,
                              .is_estimate = 1,
                              .virtual_bytes = is_known ? spare_bytes : kept_bytes,
                              .rss_bytes = kept_bytes,
                              .released_bytes = min_u64(piece->released_bytes, kept_bytes),
                              .swap_bytes = is_known ? piece->swap_bytes : 0},
            strings, piece->path));
    }
    const bool is_whole = is_known || (s->m.what->is_heap_known && other_bytes == 0);
    return is_whole ? ERR_OK
                    : push_part(s, piece,
                                (struct rec_part){.kind = REC_PART_REST,
                                                  .is_estimate = 1,
                                                  .virtual_bytes = spare_bytes -
                                                                   min_u64(spare_bytes, kept_bytes),
                                                  .rss_bytes = other_bytes - kept_bytes,
                                                  .swap_bytes = piece->swap_bytes},
                                strings, unknown_heap(s->m.what, piece));
}

// Append the parts and their claims; those of one kind, name and stack are one part, and those of
// one file besides one claim.
static enum err append_parts(struct splitting *s, uint32_t index, struct rss_tables *tables)
{
    split_part_vec_sort(&s->parts, compare_split_parts);
    TRY(rec_part_vec_reserve(&tables->parts, s->parts.len));
    TRY(shared_claim_vec_reserve(&tables->claims, s->parts.len));
    for (size_t i = 0; i < s->parts.len; i++) {
        const struct split_part *next = s->parts.items + i;
        if (i > 0 && compare_parts(&next[-1].part, &next->part) == 0) {
            add_part(tables->parts.items + tables->parts.len - 1, &next->part);
        } else {
            tables->parts.items[tables->parts.len] = next->part;
            tables->parts.items[tables->parts.len++].snapshot = index;
        }
        if (i > 0 && compare_split_parts(next - 1, next) == 0) {
            shared_claim_add(tables->claims.items + tables->claims.len - 1, &next->claim);
        } else {
            tables->claims.items[tables->claims.len] = next->claim;
            tables->claims.items[tables->claims.len++].part = (uint32_t)(tables->parts.len - 1);
        }
    }
    return ERR_OK;
}

// Return the name of a piece that is no heap: its file's, or where memory without a name is from.
static const char *name_of(const struct splitting *s,
                           const struct rss_piece *piece,
                           const struct string_table *strings)
{
    const bool is_earlier =
        piece->kind == REC_PART_REST && piece->is_earlier && piece->path[0] == '\0';
    return is_earlier ? string_table_get(strings, s->m.what->process->earlier_name) : piece->path;
}

static enum err make_parts(struct splitting *s, struct string_table *strings)
{
    for (size_t i = 0; i < s->m.pieces.len; i++) {
        const struct rss_piece *piece = s->m.pieces.items + i;
        rss_measure_pause(&s->m, i);
        if (piece->kind == REC_PART_KEPT) {
            TRY(push_heap(s, piece, strings));
            continue;
        }
        // Irrelevant: memory of libc and the kernel without pages.
        const bool is_empty = piece->rss_bytes == 0 && piece->swap_bytes == 0;
        if (is_empty && piece->kind != REC_PART_MAPPED && piece->kind != REC_PART_FILE) {
            continue;
        }
        TRY(push_part(s, piece,
                      (struct rec_part){.kind = piece->kind,
                                        .virtual_bytes = piece->end - piece->start,
                                        .rss_bytes = piece->rss_bytes,
                                        .swap_bytes = piece->swap_bytes},
                      strings, name_of(s, piece, strings)));
    }
    return ERR_OK;
}

static void add_up(const struct splitting *s, struct rec_memory_snapshot *snapshot)
{
    for (size_t i = 0; i < s->parts.len; i++) {
        const struct rec_part *part = &s->parts.items[i].part;
        snapshot->bytes[part->kind - 1] += part->rss_bytes;
        snapshot->rss_bytes += part->rss_bytes;
        snapshot->swap_bytes += part->swap_bytes;
    }
    snapshot->requested_bytes = s->m.requested_bytes;
    // Pages that share the kernel's zero page are present, but count for nothing in RSS.
    snapshot->empty_page_bytes = min_u64(s->m.sparse.empty_bytes, snapshot->kept_bytes);
    snapshot->sparse_page_bytes = s->m.sparse.sparse_bytes;
    snapshot->sparse_block_bytes = s->m.sparse.block_bytes;
    snapshot->flags |=
        s->m.is_estimated || s->m.walk.changed_count > 0 ? REC_SNAPSHOT_ESTIMATED : 0;
    const struct foreign_heap *foreign = s->m.what->foreign;
    const bool is_whole = foreign == NULL || foreign->is_whole;
    const bool is_foreign_known =
        is_whole && (s->m.is_answered || (foreign != NULL && foreign->is_read));
    const bool is_released_known =
        rss_measure_is_fill_known(&s->m) && (s->m.what->is_heap_known || is_foreign_known);
    snapshot->flags |= is_released_known ? REC_SNAPSHOT_RELEASED : 0;
}

enum err rss_split(const struct rss_process *what,
                   const struct memory_areas *map,
                   uint32_t index,
                   struct string_table *strings,
                   struct rec_memory_snapshot *snapshot,
                   struct rss_tables *tables)
{
    CLEANUP(splitting_release) struct splitting s = {.m = {.what = what, .map = map}};
    TRY(rss_measure_run(&s.m));
    TRY(make_parts(&s, strings));
    TRY(rss_measure_survivors(&s.m, index, &tables->survivors));
    TRY(append_parts(&s, index, tables));
    add_up(&s, snapshot);
    return ERR_OK;
}
