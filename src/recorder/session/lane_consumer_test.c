// SPDX-License-Identifier: MIT
// lane_consumer on a lane in plain memory, and wire_decode on valid, truncated and random words.
#include "recorder/session/lane_consumer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <sys/mman.h>

#include "base/page.h"
#include "base/test_support/random_numbers.h"
#include "host/memory/page_size.h"

static struct lane_header *new_lane(void)
{
    struct lane_header *lane = aligned_alloc(4096, LANE_STRIDE);
    assert_non_null(lane);
    memset(lane, 0, LANE_STRIDE);
    atomic_store(&lane->ring_bytes, LANE_RING_BYTES_MIN);
    return lane;
}

static void positions_are_believed_only_if_they_make_sense(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint64_t read_pos;
        uint64_t write_pos;
        uint32_t ring_bytes;
        enum err want;
    } cases[] = {
        {"empty", 64, 64, LANE_RING_BYTES_MIN, ERR_OK},
        {"empty, whatever the ring says", 64, 64, 3, ERR_OK},
        {"some", 64, 128, LANE_RING_BYTES_MIN, ERR_OK},
        {"full", 64, 64 + LANE_RING_BYTES_MIN, LANE_RING_BYTES_MIN, ERR_OK},
        {"more than full", 64, 72 + LANE_RING_BYTES_MIN, LANE_RING_BYTES_MIN, ERR_CORRUPT},
        {"backwards", 64, 56, LANE_RING_BYTES_MIN, ERR_CORRUPT},
        {"no multiple of 8", 64, 68, LANE_RING_BYTES_MIN, ERR_CORRUPT},
        {"ring too small", 64, 128, LANE_RING_BYTES_MIN / 2, ERR_CORRUPT},
        {"ring too large", 64, 128, LANE_RING_BYTES_MAX * 2, ERR_CORRUPT},
        {"ring of no power of two", 64, 128, LANE_RING_BYTES_MIN + 8, ERR_CORRUPT},
        {"the end of the world", 64, UINT64_MAX - 7, LANE_RING_BYTES_MAX, ERR_CORRUPT},
    };
    struct lane_header *lane = new_lane();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        print_message("%s\n", cases[i].name);
        struct lane_consumer c;
        lane_consumer_init(&c, lane);
        c.read_pos = c.write_pos = cases[i].read_pos;
        atomic_store(&lane->write_pos, cases[i].write_pos);
        atomic_store(&lane->ring_bytes, cases[i].ring_bytes);
        assert_int_equal(lane_consumer_refresh(&c), cases[i].want);
        uint64_t unread = cases[i].want == ERR_OK ? cases[i].write_pos - cases[i].read_pos : 0;
        assert_int_equal(lane_consumer_unread_bytes(&c), unread);
    }
    free(lane);
}

static void pieces_end_at_the_ring_s_end(void **state)
{
    (void)state;
    struct lane_header *lane = new_lane();
    uint64_t *ring = (uint64_t *)(void *)lane_ring(lane);
    const size_t words = LANE_RING_BYTES_MIN / 8;
    for (size_t i = 0; i < words; i++) {
        ring[i] = i;
    }
    struct lane_consumer c;
    lane_consumer_init(&c, lane);
    c.read_pos = c.write_pos = LANE_RING_BYTES_MIN - 24;
    atomic_store(&lane->write_pos, LANE_RING_BYTES_MIN + 16);
    assert_int_equal(lane_consumer_refresh(&c), ERR_OK);
    uint64_t piece[16];
    assert_int_equal(lane_consumer_copy(&c, piece, sizeof(piece)), 24);
    assert_int_equal(piece[0], words - 3);
    assert_int_equal(lane_consumer_copy(&c, piece, 8), 8); // unread until advance
    atomic_store(&lane->producer_waiting, 1);
    lane_consumer_advance(&c, 24);
    assert_int_equal(atomic_load(&lane->read_pos), LANE_RING_BYTES_MIN);
    assert_int_equal(atomic_load(&lane->producer_waiting), 0);
    assert_int_equal(lane_consumer_copy(&c, piece, sizeof(piece)), 16);
    assert_int_equal(piece[0], 0);
    assert_int_equal(piece[1], 1);
    const uint32_t waiting = lane_waiting_for(LANE_RING_BYTES_MIN + 16);
    atomic_store(&lane->producer_waiting, waiting);
    lane_consumer_advance(&c, 8);
    assert_int_equal(atomic_load(&lane->producer_waiting), waiting); // not far enough
    lane_consumer_advance(&c, 8);
    assert_int_equal(atomic_load(&lane->producer_waiting), 0);
    assert_int_equal(lane_consumer_copy(&c, piece, sizeof(piece)), 0);
    free(lane);
}

// Read all in pieces of random lengths. The words are numbered, from *read on.
static void read_all(struct lane_consumer *c, uint64_t *read, uint64_t *random)
{
    enum {
        PIECE_WORDS = 2048
    };
    uint64_t piece[PIECE_WORDS];
    assert_int_equal(lane_consumer_refresh(c), ERR_OK);
    while (lane_consumer_unread_bytes(c) > 0) {
        const size_t most = 1 + next_random(random) % PIECE_WORDS;
        const size_t words = lane_consumer_copy(c, piece, most * 8) / 8;
        for (size_t i = 0; i < words; i++) {
            assert_int_equal(piece[i], *read + i);
        }
        *read += words;
        lane_consumer_advance(c, words * 8);
        const uint64_t free_pos = atomic_load(&c->lane->read_pos);
        assert_true(free_pos <= *read * 8 && *read * 8 - free_pos < page_bytes());
    }
    assert_int_equal(atomic_load(&c->lane->read_pos), *read * 8);
}

// Pages that were read at once are gone, and nothing else is lost.
static void what_was_read_gives_its_pages_back(void **state)
{
    (void)state;
    enum {
        ROUNDS = 2000,
        WORDS = 8192, // of the ring
        RING_BYTES = WORDS * 8,
    };
    const uint64_t page_words = page_bytes() / 8;
    struct lane_header *lane =
        mmap(NULL, LANE_STRIDE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(lane, MAP_FAILED);
    uint64_t *ring = (uint64_t *)(void *)lane_ring(lane);
    atomic_store(&lane->ring_bytes, RING_BYTES);
    struct lane_consumer c;
    lane_consumer_init(&c, lane);
    c.gives_back = true;
    uint64_t read = 0;
    uint64_t random = 1;
    for (int round = 0; round < ROUNDS; round++) {
        const uint64_t first = read;
        const uint64_t end = first + 1 + next_random(&random) % WORDS;
        for (uint64_t i = first; i < end; i++) {
            ring[i % WORDS] = i;
        }
        atomic_store(&lane->write_pos, end * 8);
        read_all(&c, &read, &random);
        unsigned char pages[RING_BYTES / PAGE_GRAIN];
        assert_int_equal(mincore(ring, RING_BYTES, pages), 0);
        for (uint64_t i = (first + page_words - 1) / page_words * page_words; i + page_words <= end;
             i += page_words) {
            assert_int_equal(pages[i % WORDS / page_words] & 1, 0);
        }
    }
    assert_int_equal(munmap(lane, LANE_STRIDE), 0);
}

static void discarding_lets_the_producer_go_on(void **state)
{
    (void)state;
    struct lane_header *lane = new_lane();
    struct lane_consumer c;
    lane_consumer_init(&c, lane);
    atomic_store(&lane->write_pos, 12345);
    atomic_store(&lane->producer_waiting, 1);
    assert_int_equal(lane_consumer_refresh(&c), ERR_CORRUPT);
    lane_consumer_discard(&c);
    assert_int_equal(atomic_load(&lane->read_pos), 12345);
    assert_int_equal(atomic_load(&lane->producer_waiting), 0);
    assert_int_equal(lane_consumer_unread_bytes(&c), 0);
    free(lane);
}

#define SLOT 0x123456u

static void check_decoded(const uint64_t words[static 8], const struct wire_record *want)
{
    struct wire_record got = {0};
    assert_int_equal(wire_decode(words, 8, &got), WIRE_DECODED);
    assert_int_equal(got.tag, want->tag);
    assert_int_equal(got.words, want->words);
    assert_int_equal(got.address, want->address);
    assert_int_equal(got.slot, want->slot);
    assert_int_equal(got.size_bytes, want->size_bytes);
    assert_int_equal(got.count, want->count);
    assert_int_equal(got.level, want->level);
    for (size_t given = 1; given < got.words; given++) {
        assert_int_equal(wire_decode(words, given, &got), WIRE_INCOMPLETE);
    }
}

static void records_are_decoded_as_wire_h_says(void **state)
{
    (void)state;
    static const struct {
        uint64_t words[8];
        struct wire_record want;
    } cases[] = {
        {{WIRE_TICK | 77 << 8}, {.tag = WIRE_TICK, .words = 1, .address = 77}},
        {{WIRE_ROW | (uint64_t)SLOT << 8 | (uint64_t)0x654321 << 32 | (uint64_t)4 << 56},
         {.tag = WIRE_ROW,
          .words = 1,
          .address = SLOT | (uint64_t)0x654321 << 24 | (uint64_t)4 << 48,
          .slot = SLOT,
          .level = 4,
          .count = 0x654321}},
        {{WIRE_EVENT | SLOT << 8, UINT64_MAX},
         {.tag = WIRE_EVENT, .words = 2, .address = SLOT, .slot = SLOT, .size_bytes = UINT64_MAX}},
        {{WIRE_GREW | 4000 << 8, (uint64_t)SLOT << 40 | 4096},
         {.tag = WIRE_GREW, .words = 2, .address = 4000, .slot = SLOT, .size_bytes = 4096}},
        {{WIRE_QUERY | (uint64_t)77 << 8 | (uint64_t)1 << 40 | (uint64_t)6 << 48},
         {.tag = WIRE_QUERY,
          .words = 1,
          .address = 77 | (uint64_t)1 << 32 | (uint64_t)6 << 40,
          .slot = 1,
          .level = 6,
          .count = 77}},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        check_decoded(cases[i].words, &cases[i].want);
    }
}

static void modules_and_texts_are_taken_apart(void **state)
{
    (void)state;
    const uint64_t module[] = {WIRE_MODULE | (uint64_t)0x321 << 8 | (uint64_t)3 << 24 |
                                   (uint64_t)10 << 32 | (uint64_t)WIRE_MODULE_MAIN << 48,
                               0x1000,
                               0x2000,
                               0x3000,
                               0xccbbaa,
                               0x656d6f732f62696cULL,
                               0x6f73};
    struct wire_record record;
    assert_int_equal(wire_decode(module, ARRAY_LEN(module), &record), WIRE_DECODED);
    assert_int_equal(record.words, ARRAY_LEN(module));
    struct wire_module m = wire_module_of(&record);
    assert_int_equal(m.slot, 0x321);
    assert_int_equal(m.flags, WIRE_MODULE_MAIN);
    assert_int_equal(m.bias, 0x1000);
    assert_int_equal(m.end, 0x3000);
    assert_int_equal(m.build_id.len, 3);
    assert_memory_equal(m.build_id.data, "\xaa\xbb\xcc", 3);
    assert_int_equal(m.path.len, 10);
    assert_memory_equal(m.path.data, "lib/someso", 10);
    const uint64_t text[] = {WIRE_TEXT | WIRE_TEXT_LIBC << 8 | WIRE_TEXT_MORE << 16 | 4 << 24,
                             0x36332e32};
    assert_int_equal(wire_decode(text, ARRAY_LEN(text), &record), WIRE_DECODED);
    struct wire_text t = wire_text_of(&record);
    assert_int_equal(t.kind, WIRE_TEXT_LIBC);
    assert_int_equal(t.flags, WIRE_TEXT_MORE);
    assert_int_equal(t.text.len, 4);
    assert_memory_equal(t.text.data, "2.36", 4);
}

static void what_is_no_record_is_malformed(void **state)
{
    (void)state;
    static const uint64_t heads[] = {
        0,                                             // no tag
        32,                                            // unknown
        0xff,                                          // unknown
        WIRE_PAD,                                      // of no words
        WIRE_PAD | (uint64_t)1 << 40,                  // beyond any ring
        WIRE_STACK | 129 << 8,                         // too many frames
        WIRE_MODULE | (uint64_t)4095 << 8,             // the reserved slot of a truncation
        WIRE_MODULE | 1 << 8 | (uint64_t)0xffff << 32, // longer than any record
        WIRE_TEXT | (uint64_t)4097 << 24,              // too long
        14,                                            // of an earlier version
    };
    const uint64_t zeros[64] = {0};
    for (size_t i = 0; i < ARRAY_LEN(heads); i++) {
        uint64_t words[64];
        memcpy(words, zeros, sizeof(words));
        words[0] = heads[i];
        struct wire_record record;
        assert_int_equal(wire_decode(words, 64, &record), WIRE_MALFORMED);
    }
}

static void no_record_reaches_beyond_what_was_given(void **state)
{
    (void)state;
    uint64_t random = 88172645463325252u;
    for (int i = 0; i < 300000; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        size_t count = 1 + random % 40;
        uint64_t *words = malloc(count * sizeof(*words)); // so that a sanitizer sees the end
        assert_non_null(words);
        for (size_t k = 0; k < count; k++) {
            words[k] = random * (k + 1) * 0x9e3779b97f4a7c15ULL;
        }
        words[0] = (words[0] & ~(uint64_t)0xff) | random % (WIRE_BLOCK_FREED + 1);
        words[0] &= i % 2 == 0 ? UINT64_MAX : 0x0000001f001f0fffULL;
        struct wire_record record;
        if (wire_decode(words, count, &record) == WIRE_DECODED) {
            assert_in_range(record.words, 1, count);
            if (record.tag == WIRE_MODULE) {
                struct wire_module m = wire_module_of(&record);
                assert_true(m.path.data + m.path.len <= (const uint8_t *)(words + record.words));
            } else if (record.tag == WIRE_TEXT) {
                struct wire_text t = wire_text_of(&record);
                assert_true(t.text.data + t.text.len <= (const uint8_t *)(words + record.words));
            }
        }
        free(words);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(positions_are_believed_only_if_they_make_sense),
        cmocka_unit_test(pieces_end_at_the_ring_s_end),
        cmocka_unit_test(what_was_read_gives_its_pages_back),
        cmocka_unit_test(discarding_lets_the_producer_go_on),
        cmocka_unit_test(records_are_decoded_as_wire_h_says),
        cmocka_unit_test(modules_and_texts_are_taken_apart),
        cmocka_unit_test(what_is_no_record_is_malformed),
        cmocka_unit_test(no_record_reaches_beyond_what_was_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
