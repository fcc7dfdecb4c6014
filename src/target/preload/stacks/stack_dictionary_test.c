// SPDX-License-Identifier: MIT
// Tests that a reader that follows wire.h finds at each slot the intended stack, frame by frame,
// whatever stacks are sent in whatever order.
#include "target/preload/stacks/stack_dictionary.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/test_support/random_numbers.h"
#include "session/wire.h"
#include "target/producer/entry/lane_entry.h"
#include "target/producer/session_join.h"
#include "target/unwind/unwind.h"

#define NAMES_MAX  2048u
#define FRAMES_MAX 400u
#define NODES_MAX  (1u << 20) // of the reader's table; a power of two

#define EVENTS 20000u
#define STACKS 5000u

// The reader's state of one lane, in the simplest form.
struct reader_node {
    uint64_t name;
    uint64_t parent;
    uint64_t pc;
};

struct reader {
    struct reader_node *nodes; // open addressing by name
    uint64_t slots[NAMES_MAX];
    uint64_t bias[WIRE_MODULE_SLOTS + 1];
    uint32_t resets;
    uint64_t stack_records;
    const uint64_t *names; // of the stacks of events, by their numbers
    uint32_t events;
};

struct fixture {
    void *session;
    struct session_mapping mapping;
    struct lane_header *lane;
    struct lane_producer producer;
    struct stack_dictionary dictionary;
    uint64_t *names;
    uint64_t first_names[2 * STACK_DICTIONARY_MIN];
    struct module_entry first_modules[MODULE_DICTIONARY_MIN];
    struct module_entry modules[MODULE_DICTIONARY_MAX];
    struct reader reader;
};

static struct fixture *open_fixture(void)
{
    struct fixture *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->reader.nodes = calloc(NODES_MAX, sizeof(struct reader_node));
    f->names = calloc((size_t)2 * NAMES_MAX, sizeof(uint64_t));
    assert_non_null(f->reader.nodes);
    assert_non_null(f->names);
    f->session = mmap(NULL, SESSION_LANES_OFFSET + LANE_STRIDE, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(f->session, MAP_FAILED);
    f->mapping = (struct session_mapping){.header = f->session, .lane_count = 1};
    assert_int_equal(session_claim_lane(&f->mapping, 0, 1, &f->lane), ERR_OK);
    lane_producer_init(&f->producer, f->session, f->lane);
    stack_dictionary_init(&f->dictionary, &(struct stack_dictionary_memory){
                                              .first_names = f->first_names,
                                              .grown_names = f->names,
                                              .names_max = NAMES_MAX,
                                              .first_modules = f->first_modules,
                                              .grown_modules = f->modules,
                                          });
    return f;
}

static void close_fixture(struct fixture *f)
{
    munmap(f->session, SESSION_LANES_OFFSET + LANE_STRIDE);
    free(f->reader.nodes);
    free(f->names);
    free(f);
}

static struct reader_node *reader_node(struct reader *r, uint64_t name)
{
    uint64_t i = name % NODES_MAX;
    while (r->nodes[i].name != 0 && r->nodes[i].name != name) {
        i = (i + 1) % NODES_MAX;
    }
    return &r->nodes[i];
}

static void read_stack(struct reader *r, const uint64_t *word)
{
    const uint32_t count = word[0] >> 8 & 0xff;
    const uint32_t flags = word[0] >> 16 & 0xff;
    uint64_t name = word[1];
    assert_true(count <= WIRE_STACK_FRAMES_MAX);
    assert_true(name == 0 || reader_node(r, name)->name == name);
    for (uint32_t i = 0; i < count; i++) {
        const uint64_t frame = word[2 + i];
        const uint64_t slot = frame >> WIRE_OFFSET_BITS;
        uint64_t pc = frame;
        if (frame != WIRE_FRAME_CUT) {
            pc = (frame & WIRE_OFFSET_MASK) + (slot != 0 ? r->bias[slot] : 0);
        }
        const uint64_t parent = name;
        name = stack_name(parent, pc);
        *reader_node(r, name) = (struct reader_node){.name = name, .parent = parent, .pc = pc};
    }
    if ((flags & WIRE_STACK_HAS_SLOT) != 0) {
        r->slots[word[0] >> 24 & 0xffffff] = name;
    }
    r->stack_records++;
}

static size_t read_module(struct reader *r, const uint64_t *word)
{
    const uint32_t flags = word[0] >> 48 & 0xff;
    if ((flags & WIRE_MODULE_RESET) != 0) {
        memset(r->nodes, 0, NODES_MAX * sizeof(r->nodes[0]));
        memset(r->slots, 0, sizeof(r->slots));
        memset(r->bias, 0xee, sizeof(r->bias));
        r->resets++;
    }
    r->bias[word[0] >> 8 & 0xffff] = word[1];
    return 4 + ((word[0] >> 24 & 0xff) + 7) / 8 + ((word[0] >> 32 & 0xffff) + 7) / 8;
}

static void read_event(struct reader *r, uint64_t number, uint32_t slot)
{
    assert_true(number < EVENTS);
    assert_int_equal(r->slots[slot], r->names[number]);
    r->events++;
}

// Read all published records.
static void read_all(struct fixture *f)
{
    const uint64_t end = atomic_load(&f->lane->write_pos);
    uint64_t at = atomic_load(&f->lane->read_pos);
    const uint32_t ring_bytes = atomic_load(&f->lane->ring_bytes);
    while (at < end) {
        const uint64_t *word =
            (const uint64_t *)(const void *)(lane_ring(f->lane) + at % ring_bytes);
        size_t words = 1;
        switch (word[0] & 0xff) {
        case WIRE_PAD:
            words = word[0] >> 8;
            break;
        case WIRE_STACK:
            read_stack(&f->reader, word);
            words = 2 + (word[0] >> 8 & 0xff);
            break;
        case WIRE_MODULE:
            words = read_module(&f->reader, word);
            break;
        case WIRE_EVENT:
            read_event(&f->reader, word[1], wire_head_slot(word[0]));
            words = 2;
            break;
        case WIRE_TICK:
            break;
        default:
            fail_msg("tag %lu", (unsigned long)(word[0] & 0xff));
        }
        at += words * 8;
    }
    assert_int_equal(at, end);
    atomic_store(&f->lane->read_pos, at);
}

static struct stack_view
make_stack(struct unwind_frame *frames, const uint64_t *pcs, uint32_t count)
{
    uint64_t name = 0;
    for (uint32_t i = 0; i < count; i++) {
        name = stack_name(name, pcs[i]);
        frames[i] = (struct unwind_frame){.pc = pcs[i], .name = name};
    }
    return (struct stack_view){.frames = frames, .count = count, .name = name};
}

// Find or send a stack, and compare the reader's stack at its slot with it.
static void send_and_check(struct fixture *f, const struct stack_view *stack)
{
    uint32_t slot = stack_dictionary_find(&f->dictionary, stack->name);
    if (slot == STACK_SLOT_NONE) {
        assert_int_equal(stack_dictionary_define(&f->dictionary, &f->producer, stack, &slot),
                         ERR_OK);
    }
    lane_producer_publish(&f->producer);
    read_all(f);
    assert_true(slot < NAMES_MAX);
    uint64_t name = f->reader.slots[slot];
    assert_int_equal(name, stack->name);
    for (uint32_t i = stack->count; i-- > 0;) {
        const struct reader_node *node = reader_node(&f->reader, name);
        assert_int_equal(node->name, name);
        assert_int_equal(node->pc, stack->frames[i].pc);
        name = node->parent;
    }
    assert_int_equal(name, 0);
}

// Return a pc in this program, in libc, or in no module at all.
static uint64_t some_pc(uint64_t *random)
{
    const uint64_t r = next_random(random);
    const uint64_t near = r / 4 % 50;
    switch (r % 4) {
    case 0:
        return (uint64_t)&open_fixture + near;
    case 1:
        return (uint64_t)&qsort + near;
    case 2:
        return 0x10000 + near;
    default:
        return (uint64_t)&read_all + near;
    }
}

static void random_stacks_arrive_frame_by_frame(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct fixture *f = open_fixture();
        uint64_t random = seed;
        uint64_t pcs[FRAMES_MAX];
        struct unwind_frame frames[FRAMES_MAX];
        uint32_t count = 0;
        for (int round = 0; round < 20000; round++) {
            // Walk through a call tree: some frames return, some are called.
            count -= (uint32_t)(next_random(&random) % (count + 1)) / (round % 50 == 0 ? 1 : 4);
            uint32_t more = (uint32_t)(next_random(&random) % (round % 300 == 0 ? FRAMES_MAX : 8));
            while (more-- > 0 && count < FRAMES_MAX) {
                pcs[count++] = some_pc(&random);
            }
            const struct stack_view stack = make_stack(frames, pcs, count);
            send_and_check(f, &stack);
            if (round % 7000 == 6999) {
                stack_dictionary_reset(&f->dictionary);
            }
        }
        assert_in_range(f->reader.resets, 1, 2);
        assert_int_equal(f->dictionary.stacks.mask, NAMES_MAX - 1); // it grew to its bound
        close_fixture(f);
    }
}

// Each event is sent with its stack, also if stacks evict each other from their slots all the time.
static void events_have_their_stacks(void **state)
{
    (void)state;
    struct fixture *f = open_fixture();
    atomic_store(&f->mapping.header->clock_ms, 1);
    uint64_t random = 5;
    uint64_t names[EVENTS];
    f->reader.names = names;
    for (uint32_t i = 0; i < EVENTS; i++) {
        const uint64_t number = next_random(&random) % STACKS;
        uint64_t pcs[2] = {0x10000 + number, 0x20000};
        struct unwind_frame frames[2];
        const struct stack_view stack = make_stack(frames, pcs, 2);
        uint32_t slot = stack_dictionary_find(&f->dictionary, stack.name);
        if (slot == STACK_SLOT_NONE) {
            assert_int_equal(stack_dictionary_define(&f->dictionary, &f->producer, &stack, &slot),
                             ERR_OK);
        }
        names[i] = stack.name;
        const uint64_t words[] = {wire_word(WIRE_EVENT, slot), i};
        assert_true(lane_send(&f->producer, words, ARRAY_LEN(words)));
        if (i % 200 == 0) {
            atomic_fetch_add(&f->mapping.header->clock_ms, 1);
        }
        read_all(f);
    }
    assert_int_equal(f->reader.events, EVENTS);
    close_fixture(f);
}

static void what_is_known_is_not_sent_again(void **state)
{
    (void)state;
    struct fixture *f = open_fixture();
    const uint64_t pcs[] = {0x1001, 0x1002, 0x1003, 0x1004, 0x1005};
    struct unwind_frame frames[5];
    const struct stack_view outer = make_stack(frames, pcs, 3);
    send_and_check(f, &outer);
    const uint64_t after_first = f->producer.pos;
    send_and_check(f, &outer);
    assert_int_equal(f->producer.pos, after_first);
    const struct stack_view inner = make_stack(frames, pcs, 5);
    send_and_check(f, &inner);
    assert_int_equal(f->producer.pos, after_first + 8 * lane_stack_words(2)); // two new frames
    assert_int_equal(f->reader.stack_records, 2);
    close_fixture(f);
}

static void cut_empty_and_very_deep_stacks_are_sent(void **state)
{
    (void)state;
    struct fixture *f = open_fixture();
    uint64_t pcs[FRAMES_MAX];
    struct unwind_frame frames[FRAMES_MAX];
    for (uint32_t i = 0; i < FRAMES_MAX; i++) {
        pcs[i] = i == 100 ? WIRE_FRAME_CUT : 0x2000 + i;
    }
    static const uint32_t counts[] = {0, 1, 127, 128, 129, 256, 257, FRAMES_MAX, 0};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        const struct stack_view stack = make_stack(frames, pcs, counts[i]);
        send_and_check(f, &stack);
        stack_dictionary_reset(&f->dictionary);
    }
    close_fixture(f);
}

// The recorder has merged stacks: all of them are sent whole again, from the next new one on.
static void stacks_that_the_recorder_forgot_are_sent_again(void **state)
{
    (void)state;
    struct fixture *f = open_fixture();
    const uint64_t pcs[] = {0x1001, 0x1002, 0x1003, 0x1004, 0x1005};
    struct unwind_frame frames[5];
    struct unwind_frame leaf_frames[5];
    const struct stack_view outer = make_stack(frames, pcs, 3);
    send_and_check(f, &outer);
    atomic_store(&f->mapping.header->stack_losses, 7);
    uint64_t before = f->producer.pos;
    send_and_check(f, &outer); // known, so nothing looks at the session
    assert_int_equal(f->producer.pos, before);
    const struct stack_view inner = make_stack(frames, pcs, 5);
    send_and_check(f, &inner);
    assert_int_equal(f->producer.pos, before + 8 * lane_stack_words(5));
    assert_int_equal(stack_dictionary_find(&f->dictionary, outer.name), STACK_SLOT_NONE);
    before = f->producer.pos;
    send_and_check(f, &outer);
    assert_int_equal(f->producer.pos, before + 8 * lane_stack_words(0)); // only its slot
    atomic_store(&f->mapping.header->stack_losses, 8);
    const struct stack_view base = make_stack(leaf_frames, pcs, 4);
    uint32_t slot;
    assert_int_equal(
        stack_dictionary_define_leaf(&f->dictionary, &f->producer, base.name, 0x1009, &slot),
        ERR_LIMIT); // the base was forgotten, too
    close_fixture(f);
}

// No further module can be introduced: both sides forget all modules, and the stack is sent whole.
// Stacks known before have to be sent again.
static void a_full_table_of_modules_forgets_every_stack(void **state)
{
    (void)state;
    struct fixture *f = open_fixture();
    const uint64_t old_pcs[] = {0x5001, 0x5002};
    const uint64_t new_pcs[] = {0x5001, (uint64_t)&open_fixture, (uint64_t)&qsort};
    struct unwind_frame old_frames[2];
    struct unwind_frame new_frames[3];
    const struct stack_view old = make_stack(old_frames, old_pcs, 2);
    const struct stack_view new = make_stack(new_frames, new_pcs, 3);
    send_and_check(f, &old);
    // As if that many modules were above all addresses of this process.
    struct module_dictionary *modules = &f->dictionary.modules;
    modules->entries = modules->grown;
    modules->count = MODULE_DICTIONARY_MAX;
    modules->last = 0;
    for (uint64_t i = 0; i < MODULE_DICTIONARY_MAX; i++) {
        const uint64_t start = UINT64_MAX - MODULE_DICTIONARY_MAX - 1 + i;
        f->modules[i] = (struct module_entry){.start = start, .end = start + 1, .slot = i + 1};
    }
    send_and_check(f, &new);
    assert_int_equal(f->reader.resets, 1);
    assert_int_equal(stack_dictionary_find(&f->dictionary, old.name), STACK_SLOT_NONE);
    const uint64_t sent = f->reader.stack_records;
    send_and_check(f, &old);
    send_and_check(f, &new);
    assert_int_equal(f->reader.stack_records, sent + 1);
    assert_int_equal(f->reader.resets, 1);
    close_fixture(f);
}

static void each_note_is_counted_once_for_a_stack(void **state)
{
    (void)state;
    struct fixture *f = open_fixture();
    const uint64_t pcs[] = {0x3001, WIRE_FRAME_CUT};
    struct unwind_frame frames[2];
    struct stack_view stack = make_stack(frames, pcs, 2);
    stack.flags = UNWIND_CUT | UNWIND_UNFINISHED | UNWIND_USED_FRAME_POINTER;
    send_and_check(f, &stack);
    send_and_check(f, &stack);
    const struct session_header *session = f->mapping.header;
    assert_int_equal(session->counters[NOTE_cut_stacks], 1);
    assert_int_equal(session->counters[NOTE_unfinished_stacks], 1);
    assert_int_equal(session->counters[NOTE_frame_pointer_walks], 1);
    close_fixture(f);
}

static void a_dead_recorder_is_reported(void **state)
{
    (void)state;
    struct fixture *f = open_fixture();
    atomic_store(&f->mapping.header->state, SESSION_ENDED);
    const uint64_t pcs[] = {0x4001, 0x4002};
    struct unwind_frame frames[2];
    enum err result = ERR_OK;
    uint32_t slot = 77;
    for (int i = 0; i < (int)(LANE_RING_BYTES_MAX / 16) && result == ERR_OK; i++) {
        const uint64_t own[] = {pcs[0], pcs[1] + (uint64_t)i};
        const struct stack_view stack = make_stack(frames, own, 2);
        slot = 77;
        result = stack_dictionary_define(&f->dictionary, &f->producer, &stack, &slot);
    }
    assert_int_equal(result, ERR_DEAD);
    assert_int_equal(slot, 77);
    close_fixture(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_known_is_not_sent_again),
        cmocka_unit_test(cut_empty_and_very_deep_stacks_are_sent),
        cmocka_unit_test(random_stacks_arrive_frame_by_frame),
        cmocka_unit_test(events_have_their_stacks),
        cmocka_unit_test(stacks_that_the_recorder_forgot_are_sent_again),
        cmocka_unit_test(a_full_table_of_modules_forgets_every_stack),
        cmocka_unit_test(each_note_is_counted_once_for_a_stack),
        cmocka_unit_test(a_dead_recorder_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
