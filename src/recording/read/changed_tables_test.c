// SPDX-License-Identifier: MIT
// A recording with each field of each table changed: what recording_repair makes of it and what
// recording_verify says of it follow from the change alone (changed_bytes.h).
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "recording/read/recording_repair.h"
#include "recording/read/recording_verify.h"
#include "recording/test_support/recording_outcome.h"
#include "recording/test_support/recording_random.h"
#include "recording/test_support/recording_text.h"

static const char text[] =
    "process server\n"
    "thread main\n"
    "app!main(a.c:1);lib!load(l.c:3)=>grow(v.h:9) 10 640 4 256 1 64 6 384 400\n"
    "  @0 4 256\n"
    "  @3 6 384 4 256 1\n"
    "  size 14 10 640\n"
    "  life 3 4 256\n"
    "  cohort 0 3 4 256\n"
    "  realloc 2 8192 4096 8192\n"
    "  event app!main(a.c:1);[event sent] 3 512\n"
    "thread worker\n"
    "app!main(a.c:1);app!work 3 30 3 30 3 30\n"
    "  @1 3 30 3 30 3\n"
    "  size 8 2 20\n"
    "  size 9 1 10\n"
    "  life 1 3 30\n"
    "process child\n"
    "left 150\n"
    "app!main(a.c:1);lib!load(l.c:3) 1 8\n"
    "  @1 1 8\n"
    "  size 8 1 8\n"
    "  cohort 1 - 1 8\n";

static void make(bool is_random, struct recording *out)
{
    struct err_info info = {0};
    const enum err err =
        is_random ? recording_random_realistic(7, 24, out) : recording_from_text(text, out, &info);
    if (err != ERR_OK) {
        fail_msg("%s: %s", err_name(err), info.text);
    }
}

// What a field may be instead.
static uint64_t other_value(uint64_t value, unsigned change, unsigned width_bytes)
{
    const uint64_t highest = width_bytes == 4 ? UINT32_MAX : UINT64_MAX;
    switch (change) {
    case 0:
        return value == highest ? value - 1 : value + 1;
    case 1:
        return value == 0 ? 2 : value - 1;
    case 2:
        return value == 0 ? 1000 : 0;
    default:
        return highest;
    }
}

static void
change_and_add(bool is_random, size_t index, size_t field, unsigned change, struct outcome_sum *sum)
{
    const struct rec_table *table = &rec_tables[index];
    const struct rec_column *column = &table->columns[field % table->column_count];
    CLEANUP(recording_release) struct recording r = {0};
    CLEANUP(recording_findings_release) struct recording_findings findings = {0};
    struct repair_tally tally = {0};
    make(is_random, &r);
    uint8_t *entry = (uint8_t *)rec_table_array(table, &r);
    if (table->is_single) {
        entry = (uint8_t *)&r + table->items_offset;
    }
    entry += field / table->column_count * table->entry_bytes;
    const uint64_t value = other_value(rec_column_get(column, entry), change, column->width_bytes);
    if (!rec_column_scatter(column, entry, table->entry_bytes, &value, 1)) {
        return; // a signed field, say
    }
    const enum err err = recording_repair(&r, change % 2 == 0, &tally);
    outcome_add_text(sum, err_name(err));
    outcome_add_number(sum, tally.dropped);
    outcome_add_number(sum, tally.repaired);
    if (err == ERR_OK) {
        outcome_add_recording(sum, &r);
        assert_int_equal(recording_verify(&r, &findings), ERR_OK);
    }
    for (size_t i = 0; i < findings.items.len; i++) {
        outcome_add_text(sum, findings.items.items[i].text);
    }
    outcome_add_number(sum, recording_findings_count(&findings));
}

static void each_changed_field_is_repaired_and_reported_alike_each_time(void **state)
{
    static const struct {
        const char *name;
        enum rec_table_index index;
    } tables[] = {
        {"meta", REC_TABLE_META},
        {"totals", REC_TABLE_TOTALS},
        {"counters", REC_TABLE_COUNTERS},
        {"processes", REC_TABLE_PROCESSES},
        {"threads", REC_TABLE_THREADS},
        {"modules", REC_TABLE_MODULES},
        {"slices", REC_TABLE_SLICES},
        {"rss_samples", REC_TABLE_RSS_SAMPLES},
        {"frames", REC_TABLE_FRAMES},
        {"nodes", REC_TABLE_NODES},
        {"rows", REC_TABLE_ROWS},
        {"symbols", REC_TABLE_SYMBOLS},
        {"cohorts", REC_TABLE_COHORTS},
        {"cells", REC_TABLE_CELLS},
        {"size_buckets", REC_TABLE_SIZE_BUCKETS},
        {"lifetime_buckets", REC_TABLE_LIFETIME_BUCKETS},
        {"adhoc", REC_TABLE_ADHOC},
        {"reallocs", REC_TABLE_REALLOCS},
        {"marks", REC_TABLE_MARKS},
        {"unrecorded", REC_TABLE_UNRECORDED},
        {"hooks", REC_TABLE_HOOKS},
    };
    (void)state;
    unsigned changed = 0;
    for (size_t i = 0; i < ARRAY_LEN(tables); i++) {
        struct outcome_sum sums[2] = {0};
        const struct rec_table *table = &rec_tables[tables[i].index];
        for (unsigned which = 0; which < 2; which++) {
            enum {
                ENTRIES_MAX = 5
            };
            CLEANUP(recording_release) struct recording r = {0};
            make(which == 1, &r);
            const size_t all = table->is_single ? 1 : rec_table_count(table, &r);
            const size_t count = all < ENTRIES_MAX ? all : ENTRIES_MAX;
            for (size_t k = 0; k < 2 * count * table->column_count * 4; k++) {
                change_and_add(which == 1, tables[i].index, k / 8, (unsigned)(k / 2 % 4),
                               &sums[k % 2]);
            }
        }
        changed += !outcomes_agree(sums, tables[i].name);
    }
    assert_int_equal(changed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_changed_field_is_repaired_and_reported_alike_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
