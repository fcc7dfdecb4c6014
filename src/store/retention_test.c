// SPDX-License-Identifier: MIT
// Tests of retention: what a policy keeps of drawn recordings is what a plain count says, a second
// run changes nothing, and a year of hourly recordings stays in its bound on each day.
#include "store/retention.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/compiler.h"

#define HOUR_S INT64_C(3600)
#define DAY_S  (24 * HOUR_S)

enum {
    YEAR_DAYS = 365,
};

static void add_column(struct store_table *table)
{
    assert_int_equal(store_table_add_column(table, ""), ERR_OK);
}

static void add_value(struct store_table *table, struct store_value value, size_t len)
{
    assert_int_equal(store_table_add(table, &value, len), ERR_OK);
}

static void
add_recording(struct store_table *table, int64_t id, const char *host, int64_t end_s, bool is_oom)
{
    for (size_t i = table->names.len; i < 7; i++) {
        add_column(table);
    }
    add_value(table, store_integer(id), 0);
    add_value(table, store_text("web"), 3);
    add_value(table, store_text("1"), 1);
    add_value(table, store_text(host), 1);
    add_value(table, store_integer(end_s - 100), 0);
    add_value(table, store_integer(100000), 0);
    add_value(table, store_integer(is_oom), 0);
}

static bool holds(const struct u64_vec *ids, int64_t id)
{
    for (size_t i = 0; i < ids->len; i++) {
        if (ids->items[i] == (uint64_t)id) {
            return true;
        }
    }
    return false;
}

static void the_last_of_each_period_and_host_stays(void **state)
{
    (void)state;
    const struct retention_policy policy = {.steps = {{DAY_S, 0}, {3 * DAY_S, DAY_S}}, .count = 2};
    struct store_table ages = {0};
    struct u64_vec removed = {0};
    const int64_t now_s = 1000 * DAY_S;
    add_recording(&ages, 1, "a", 900 * DAY_S, false);              // too old
    add_recording(&ages, 2, "a", 998 * DAY_S + HOUR_S, false);     // a later one of its day
    add_recording(&ages, 3, "a", 998 * DAY_S + 2 * HOUR_S, true);  // memory ran out
    add_recording(&ages, 4, "a", 998 * DAY_S + 3 * HOUR_S, false); // the last but an OOM
    add_recording(&ages, 5, "a", 998 * DAY_S + 4 * HOUR_S, true);
    add_recording(&ages, 6, "a", 999 * DAY_S + HOUR_S, false); // young
    add_recording(&ages, 7, "a", 999 * DAY_S + 2 * HOUR_S, false);
    add_recording(&ages, 8, "b", 998 * DAY_S + HOUR_S, false); // of another host
    add_recording(&ages, 9, "b", 1001 * DAY_S, false);         // of a wrong clock
    assert_int_equal(retention_select(&policy, &ages, now_s, &removed), ERR_OK);
    assert_int_equal(removed.len, 2);
    assert_true(holds(&removed, 1) && holds(&removed, 2));
    store_table_release(&ages);
    u64_vec_release(&removed);
}

// A host adds a recording each hour, and the policy is applied each day.
static void a_year_stays_in_its_bound(void **state)
{
    (void)state;
    const struct retention_policy policy = {
        .steps = {{7 * DAY_S, 0}, {30 * DAY_S, DAY_S}, {90 * DAY_S, 7 * DAY_S}}, .count = 3};
    struct u64_vec kept = {0}; // ids are hours
    for (int64_t day = 1; day <= YEAR_DAYS; day++) {
        struct store_table ages = {0};
        struct u64_vec removed = {0};
        const int64_t now_s = day * DAY_S;
        for (int64_t hour = (day - 1) * 24; hour < day * 24; hour++) {
            assert_int_equal(u64_vec_push(&kept, (uint64_t)hour + 1), ERR_OK);
        }
        for (size_t i = 0; i < kept.len; i++) {
            add_recording(&ages, (int64_t)kept.items[i], "a", (int64_t)kept.items[i] * HOUR_S,
                          false);
        }
        assert_int_equal(retention_select(&policy, &ages, now_s, &removed), ERR_OK);
        size_t left = 0;
        for (size_t i = 0; i < kept.len; i++) {
            if (!holds(&removed, (int64_t)kept.items[i])) {
                kept.items[left++] = kept.items[i];
            }
        }
        kept.len = left;
        // 7 days of 24, the days up to the 30th, the weeks up to the 90th, and one where each ends.
        assert_true(left <= 7 * 24 + 1 + 24 + 10);
        assert_true(day < 90 || left >= 7 * 24 + 22 + 8);
        store_table_release(&ages);
        u64_vec_release(&removed);
    }
    u64_vec_release(&kept);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_last_of_each_period_and_host_stays),
        cmocka_unit_test(a_year_stays_in_its_bound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
