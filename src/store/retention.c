// SPDX-License-Identifier: MIT
// retention: see retention.h.
#include "store/retention.h"

#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"

// The columns of query_ages.
enum {
    AGE_ID,
    AGE_SERVICE,
    AGE_VERSION,
    AGE_HOST,
    AGE_START, // seconds
    AGE_RUNTIME_MS,
    AGE_IS_OOM,
};

// The second at which a recording ended.
static int64_t end_of(const struct store_table *ages, size_t row)
{
    return store_table_integer(ages, row, AGE_START) +
           store_table_integer(ages, row, AGE_RUNTIME_MS) / MS_PER_S;
}

// Find the step of a recording. policy->count: it is too old.
static size_t step_of(const struct retention_policy *policy, int64_t age_s)
{
    size_t step = 0;
    while (step < policy->count && age_s >= policy->steps[step].age_s) {
        step++;
    }
    return step;
}

static bool is_same_place(const struct store_table *ages, size_t row, size_t other)
{
    bool is_same = true;
    for (size_t column = AGE_SERVICE; column <= AGE_HOST; column++) {
        is_same &= strcmp(store_table_get(ages, row, column).text,
                          store_table_get(ages, other, column).text) == 0;
    }
    return is_same;
}

// Whether the next recording of the same place is in the same step and period. Recordings are in
// the order of their ends.
static bool has_later(const struct retention_policy *policy,
                      const struct store_table *ages,
                      int64_t now_s,
                      size_t step,
                      size_t row)
{
    const int64_t period_s = policy->steps[step].period_s;
    for (size_t next = row + 1; next < store_table_rows(ages); next++) {
        if (!is_same_place(ages, row, next) ||
            step_of(policy, now_s - end_of(ages, next)) != step ||
            end_of(ages, next) / period_s != end_of(ages, row) / period_s) {
            return false;
        }
        if (store_table_integer(ages, next, AGE_IS_OOM) == 0) {
            return true;
        }
    }
    return false;
}

enum err retention_select(const struct retention_policy *policy,
                          const struct store_table *ages,
                          int64_t now_s,
                          struct u64_vec *out)
{
    for (size_t row = 0; row < store_table_rows(ages); row++) {
        const size_t step = step_of(policy, now_s - end_of(ages, row));
        const bool is_kept =
            step < policy->count &&
            (policy->steps[step].period_s == 0 || store_table_integer(ages, row, AGE_IS_OOM) != 0 ||
             !has_later(policy, ages, now_s, step, row));
        if (!is_kept) {
            TRY(u64_vec_push(out, (uint64_t)store_table_integer(ages, row, AGE_ID)));
        }
    }
    return ERR_OK;
}
