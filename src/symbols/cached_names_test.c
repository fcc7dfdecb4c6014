// SPDX-License-Identifier: MIT
// Tests of cached_names: written answers are found again, fresh answers win, and every damaged file
// is refused.
#include "symbols/cached_names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/compiler.h"
#include "base/hash.h"

enum {
    ADDRESSES = 300,
    ROUNDS = 20,
    NAME_BYTES = 32,
};

// The model: the right answer for each address. `version` 0: unknown.
struct model {
    uint32_t version[ADDRESSES];
};

static uint32_t depth_of(uint64_t address, uint32_t version)
{
    return (uint32_t)(hash_mix(address * 1000 + version) % 4); // an answer may have no frames
}

static void name_of(uint64_t address, uint32_t version, uint32_t depth, char *out)
{
    (void)snprintf(out, NAME_BYTES, "f%u<%u>(%u)", (unsigned)(address % 7), version, depth);
}

static void
add(struct fresh_names *fresh, struct string_table *strings, uint64_t address, uint32_t version)
{
    struct symbol_frame frames[4] = {0};
    const uint32_t depth = depth_of(address, version);
    for (uint32_t i = 0; i < depth; i++) {
        char name[NAME_BYTES];
        name_of(address, version, i, name);
        assert_int_equal(string_table_intern_text(strings, name, &frames[i].function), ERR_OK);
        assert_int_equal(
            string_table_intern_text(strings, i % 2 == 0 ? "" : "/a.c", &frames[i].file), ERR_OK);
        frames[i].line = version + i;
        frames[i].is_inlined = i + 1 < depth;
    }
    assert_int_equal(fresh_names_add(fresh, address, address * version, frames, depth), ERR_OK);
}

static void compare(const struct cached_names *names, const struct model *model)
{
    for (uint64_t address = 0; address < ADDRESSES; address++) {
        struct cached_place place = {0};
        const uint32_t version = model->version[address];
        assert_int_equal(cached_names_find(names, address, &place), version != 0);
        if (version == 0) {
            continue;
        }
        assert_int_equal(place.count, depth_of(address, version));
        assert_int_equal(place.function_start, address * version);
        for (uint32_t i = 0; i < place.count; i++) {
            char want[NAME_BYTES];
            name_of(address, version, i, want);
            const struct cached_frame frame = cached_names_frame(names, place.first + i);
            assert_string_equal(frame.function, want);
            assert_string_equal(frame.file, i % 2 == 0 ? "" : "/a.c");
            assert_int_equal(frame.line, version + i);
            assert_int_equal(frame.is_inlined, i + 1 < place.count);
        }
    }
}

static const struct cached_names_labels labels = {
    .reader = "this build", .module = "/lib/m.so", .source = "/debug/m.so"};

static void every_round_adds_to_what_was_there(void **state)
{
    (void)state;
    struct model model = {0};
    struct strbuf file = {0};
    struct cached_names names = {0};
    uint64_t random = 12;
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        CLEANUP(string_table_release) struct string_table strings = {0};
        CLEANUP(fresh_names_release) struct fresh_names fresh = {0};
        for (uint32_t i = 0; i < round * 2; i++) {
            random = hash_mix(random + i + 1);
            const uint64_t address = random % ADDRESSES;
            if (model.version[address] != round) {
                add(&fresh, &strings, address, round);
            }
            model.version[address] = round;
        }
        struct strbuf next = {0};
        assert_int_equal(
            cached_names_write(file.len > 0 ? &names : NULL, &fresh, &strings, &labels, &next),
            ERR_OK);
        strbuf_release(&file);
        file = next;
        assert_int_equal(cached_names_parse(strbuf_bytes(&file), &names), ERR_OK);
        compare(&names, &model);
    }
    assert_string_equal(names.reader, labels.reader);
    assert_string_equal(names.module, labels.module);
    assert_string_equal(names.source, labels.source);
    strbuf_release(&file);
}

static void one_file(struct strbuf *out)
{
    CLEANUP(string_table_release) struct string_table strings = {0};
    CLEANUP(fresh_names_release) struct fresh_names fresh = {0};
    for (uint64_t address = 0; address < 10; address++) {
        add(&fresh, &strings, address, 1);
    }
    assert_int_equal(cached_names_write(NULL, &fresh, &strings, &labels, out), ERR_OK);
}

static void no_cut_and_no_changed_byte_is_believed(void **state)
{
    (void)state;
    CLEANUP(strbuf_release) struct strbuf file = {0};
    struct cached_names names;
    one_file(&file);
    for (size_t len = 0; len < file.len; len++) {
        const struct bytes cut = {.data = (const uint8_t *)file.data, .len = len};
        assert_int_not_equal(cached_names_parse(cut, &names), ERR_OK);
    }
    for (size_t at = 0; at < file.len; at++) {
        file.data[at] ^= 0x10;
        assert_int_not_equal(cached_names_parse(strbuf_bytes(&file), &names), ERR_OK);
        file.data[at] ^= 0x10;
    }
    assert_int_equal(cached_names_parse(strbuf_bytes(&file), &names), ERR_OK);
}

// Three labels are offsets into the texts, after the counts of places, frames and text bytes.
static void labels_beyond_the_texts_are_refused(void **state)
{
    (void)state;
    enum {
        CHECKSUM_AT = 16,
        SUMMED_AT = 24,
        TEXT_BYTES_AT = 28,
        LABELS_AT = 32,
        LABELS = 3
    };
    CLEANUP(strbuf_release) struct strbuf file = {0};
    struct cached_names names;
    one_file(&file);
    uint8_t *data = (uint8_t *)file.data;
    const uint32_t text_bytes = get_u32(data + TEXT_BYTES_AT);
    for (uint8_t *label = data + LABELS_AT; label < data + LABELS_AT + (size_t)LABELS * 4;
         label += 4) {
        const uint32_t offset = get_u32(label);
        for (uint32_t beyond = 0; beyond < 2; beyond++) {
            put_u32(label, text_bytes - 1 + beyond);
            put_u64(data + CHECKSUM_AT, XXH3_64bits(data + SUMMED_AT, file.len - SUMMED_AT));
            assert_int_equal(cached_names_parse(strbuf_bytes(&file), &names),
                             beyond ? ERR_CORRUPT : ERR_OK);
        }
        put_u32(label, offset);
    }
}

static void more_than_can_be_kept_is_not_kept(void **state)
{
    (void)state;
    CLEANUP(string_table_release) struct string_table strings = {0};
    CLEANUP(fresh_names_release) struct fresh_names fresh = {0};
    CLEANUP(fresh_names_release) struct fresh_names one = {0};
    CLEANUP(strbuf_release) struct strbuf file = {0};
    CLEANUP(strbuf_release) struct strbuf next = {0};
    struct cached_names names;
    struct cached_place place;
    for (uint64_t i = 0; i < CACHED_PLACES_MAX + 10; i++) {
        assert_int_equal(fresh_names_add(&fresh, i, 0, NULL, 0), ERR_OK);
    }
    assert_int_equal(cached_names_write(NULL, &fresh, &strings, &labels, &file), ERR_OK);
    assert_int_equal(cached_names_parse(strbuf_bytes(&file), &names), ERR_OK);
    assert_int_equal(names.place_count, CACHED_PLACES_MAX);
    // Answers for this run take precedence over earlier ones.
    assert_int_equal(fresh_names_add(&one, CACHED_PLACES_MAX + 5, 0, NULL, 0), ERR_OK);
    assert_int_equal(cached_names_write(&names, &one, &strings, &labels, &next), ERR_OK);
    assert_int_equal(cached_names_parse(strbuf_bytes(&next), &names), ERR_OK);
    assert_int_equal(names.place_count, 1);
    assert_true(cached_names_find(&names, CACHED_PLACES_MAX + 5, &place));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_round_adds_to_what_was_there),
        cmocka_unit_test(labels_beyond_the_texts_are_refused),
        cmocka_unit_test(no_cut_and_no_changed_byte_is_believed),
        cmocka_unit_test(more_than_can_be_kept_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
