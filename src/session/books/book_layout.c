// SPDX-License-Identifier: MIT
#include "session/books/book_layout.h"

#include "base/bucket.h"
#include "session/books/block_words.h"
#include "session/books/sampling_level.h"

// The mask of so many cells.
#define CELLS(count) ((1u << (count)) - 1)

enum {
    SIZES_AT = 32,
    LIVES_AT = 40,
    COHORTS_AT = 48,
    FLAGS_AT = 56,
    FIXED_WORDS = 2, // head, number
};

// Collect the cells in use, and their buckets. A cell may have a bit and still be empty.
static uint32_t
put_cells(const uint64_t *cells, const uint8_t *buckets, uint32_t used, uint64_t *out, uint8_t *to)
{
    uint32_t count = 0;
    for (; used != 0; used &= used - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(used);
        if (book_cell_count(cells[i]) != 0) {
            to[count] = buckets[i];
            out[count++] = cells[i];
        }
    }
    return count;
}

static uint32_t bucket_words(uint32_t cells)
{
    return (cells + 7) / 8;
}

static uint32_t put_cohorts(const struct book_counter *counter, uint64_t *out)
{
    uint32_t count = 0;
    for (uint32_t used = counter->cohorts_used & CELLS(BOOK_COHORTS); used != 0; used &= used - 1) {
        const uint32_t i = (uint32_t)__builtin_ctz(used);
        if (book_cell_count(counter->cohorts[i]) != 0) {
            *out++ = (uint64_t)counter->born[i] << BOOK_COHORT_BITS;
            *out++ = counter->cohorts[i];
            count++;
        }
    }
    return count;
}

uint32_t book_record(const struct book_counter *counter, uint64_t *words)
{
    const bool has_before = counter->before_bytes != 0 || counter->before_blocks != 0;
    const bool has_temporary = book_cell_count(counter->temporary) != 0;
    uint8_t buckets[BOOK_CELLS + 7] = {0};
    uint64_t cells[BOOK_CELLS];
    const uint32_t sizes = put_cells(counter->sizes, counter->size_buckets,
                                     counter->sizes_used & CELLS(BOOK_SIZES), cells, buckets);
    const uint32_t lives =
        put_cells(counter->lives, counter->life_buckets, counter->lives_used & CELLS(BOOK_LIVES),
                  cells + sizes, buckets + sizes);
    if (sizes + lives == 0) {
        return 0;
    }
    uint32_t at = 1;
    words[at++] = (uint64_t)counter->peak_number | (uint64_t)(uint32_t)counter->before_blocks << 32;
    if (has_before) {
        words[at++] = (uint64_t)counter->before_bytes;
    }
    if (has_temporary) {
        words[at++] = counter->temporary;
    }
    __builtin_memcpy(words + at, buckets, bucket_words(sizes + lives) * sizeof(words[0]));
    at += bucket_words(sizes + lives);
    __builtin_memcpy(words + at, cells, (sizes + lives) * sizeof(cells[0]));
    at += sizes + lives;
    const uint32_t cohorts = put_cohorts(counter, words + at);
    const uint32_t flags =
        (has_before ? BOOK_HAS_BEFORE : 0) | (has_temporary ? BOOK_HAS_TEMPORARY : 0);
    words[0] = BOOK_TAG | (uint64_t)counter->row << 8 | (uint64_t)sizes << SIZES_AT |
               (uint64_t)lives << LIVES_AT | (uint64_t)cohorts << COHORTS_AT |
               (uint64_t)flags << FLAGS_AT;
    return at + 2 * cohorts;
}

uint32_t book_record_weighted(const struct book_counter *counter, uint64_t weight, uint64_t *words)
{
    const uint32_t count = book_record(counter, words);
    words[0] |= (uint64_t)BOOK_HAS_WEIGHT << FLAGS_AT;
    words[count] = weight;
    return count + 1;
}

static uint32_t field(uint64_t head, uint32_t at)
{
    return (uint32_t)(head >> at) & 0xff;
}

uint32_t book_record_words(uint64_t head)
{
    const uint32_t sizes = field(head, SIZES_AT);
    const uint32_t lives = field(head, LIVES_AT);
    const uint32_t cohorts = field(head, COHORTS_AT);
    const uint32_t flags = field(head, FLAGS_AT);
    const bool is_sound = sizes <= BOOK_SIZES && lives <= BOOK_LIVES && sizes + lives > 0 &&
                          cohorts <= BOOK_COHORTS &&
                          flags <= (BOOK_HAS_BEFORE | BOOK_HAS_TEMPORARY | BOOK_HAS_WEIGHT);
    return is_sound ? FIXED_WORDS + ((flags & BOOK_HAS_BEFORE) != 0) +
                          ((flags & BOOK_HAS_TEMPORARY) != 0) + ((flags & BOOK_HAS_WEIGHT) != 0) +
                          bucket_words(sizes + lives) + sizes + lives + 2 * cohorts
                    : 0;
}

static bool
read_cells(const uint64_t *words, const uint8_t *buckets, uint32_t count, uint64_t *to, uint8_t *of)
{
    bool is_sound = true;
    for (uint32_t i = 0; i < count; i++) {
        to[i] = words[i];
        of[i] = buckets[i];
        is_sound = is_sound && book_cell_count(words[i]) != 0 && buckets[i] < BUCKET_COUNT;
    }
    return is_sound;
}

// A block with a weight above 1 is shorter than the interval, and alone in its record.
static bool take_weight(uint64_t weight, struct book_entry *out)
{
    const struct book_net net = book_entry_net(out);
    out->weight = (uint32_t)weight;
    return weight == 1 || (weight != 0 && weight <= BLOCK_WEIGHT_MAX && out->before_bytes == 0 &&
                           out->before_blocks == 0 && out->size_count + out->life_count == 1 &&
                           (net.blocks == 1 || net.blocks == -1) && out->cohort_count <= 1 &&
                           net.bytes <= (int64_t)BLOCK_WEIGHT_INTERVAL_MAX &&
                           net.bytes >= -(int64_t)BLOCK_WEIGHT_INTERVAL_MAX);
}

// Zeroes nothing that the counts leave out: that would take as long as all the rest.
bool book_record_read(const uint64_t *words, struct book_entry *out)
{
    const uint64_t head = words[0];
    const uint32_t flags = field(head, FLAGS_AT);
    out->row = (uint32_t)(head >> 8) & WORD_ROW_MAX;
    out->peak_number = (uint32_t)words[1];
    out->before_blocks = (int32_t)(words[1] >> 32);
    out->weight = 1;
    out->size_count = field(head, SIZES_AT);
    out->life_count = field(head, LIVES_AT);
    out->cohort_count = field(head, COHORTS_AT);
    words += 2;
    out->before_bytes = (flags & BOOK_HAS_BEFORE) != 0 ? (int64_t)*words++ : 0;
    out->temporary = (flags & BOOK_HAS_TEMPORARY) != 0 ? *words++ : 0;
    const uint8_t *buckets = (const uint8_t *)words;
    words += bucket_words(out->size_count + out->life_count);
    bool is_sound =
        out->row != 0 && read_cells(words, buckets, out->size_count, out->sizes, out->size_buckets);
    words += out->size_count;
    is_sound = read_cells(words, buckets + out->size_count, out->life_count, out->lives,
                          out->life_buckets) &&
               is_sound;
    words += out->life_count;
    for (uint32_t i = 0; i < out->cohort_count; i++) {
        out->born_ms[i] = *words++;
        out->cohorts[i] = *words++;
    }
    return take_weight((flags & BOOK_HAS_WEIGHT) != 0 ? *words : 1, out) && is_sound;
}

struct book_net book_entry_net(const struct book_entry *entry)
{
    struct book_net net = {0};
    for (uint32_t i = 0; i < entry->size_count; i++) {
        net.bytes += (int64_t)book_cell_bytes(entry->sizes[i]);
        net.blocks += book_cell_count(entry->sizes[i]);
    }
    for (uint32_t i = 0; i < entry->life_count; i++) {
        net.bytes -= (int64_t)book_cell_bytes(entry->lives[i]);
        net.blocks -= book_cell_count(entry->lives[i]);
    }
    net.bytes *= entry->weight;
    net.blocks *= entry->weight;
    return net;
}
