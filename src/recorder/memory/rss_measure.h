// SPDX-License-Identifier: MIT
// rss_measure: cuts the map of a process into pieces, and measures what live blocks and free memory
// have of each. rss_split.h has the rules; only rss_split.c uses it.
// Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "aggregate/books/listed_walk.h"
#include "base/err.h"
#include "recorder/memory/rss_pieces.h"
#include "recorder/memory/survivors.h"

struct rss_measure;

typedef void
block_visit(struct rss_measure *s, struct rss_piece *piece, const struct listed_block *block);

struct rss_measure {
    const struct rss_process *what;     // borrowed; set by the caller
    const struct memory_areas *map;     // borrowed; set by the caller
    struct rss_piece_vec pieces;        // owned
    struct resident_pages pages;        // owned
    struct survivors survivors;         // owned
    struct survivor_list survivor_list; // owned
    struct listed_walk walk;            // of the blocks
    block_visit *visit;                 // of a walk
    struct rss_piece *latest;           // of the block before; NULL: none
    size_t spans_left;                  // of a walk: pieces that blocks reach into
    enum err err;                       // of a visit to a block
    bool is_estimated;
    bool is_answered; // an allocator said what it keeps
    uint64_t requested_bytes;
    struct sparse_pages sparse;
};

// Cut and measure. Without an answer the pieces of an area are estimated.
enum err rss_measure_run(struct rss_measure *s) MUST_USE;
void rss_measure_release(struct rss_measure *s); // accepts a zeroed one

// Find who keeps sparse pages resident. Healthy heaps have few, and are not searched.
enum err rss_measure_survivors(struct rss_measure *s,
                               uint32_t index,
                               struct rec_survivor_vec *survivors) MUST_USE;

// Whether it is known, at least by an estimate, how full each page is.
bool rss_measure_is_fill_known(const struct rss_measure *s);

const struct memory_area *rss_measure_area(const struct rss_measure *s,
                                           const struct rss_piece *piece);

// Whether it is known which pages of a piece are resident, and how much is of a range within it.
bool rss_measure_has_pages(const struct rss_measure *s, const struct rss_piece *piece);
uint64_t rss_measure_resident_bytes(const struct rss_measure *s,
                                    const struct rss_piece *piece,
                                    struct address_range of);

// Serve others now and then in a long loop.
void rss_measure_pause(const struct rss_measure *s, size_t step);
