// SPDX-License-Identifier: MIT
// test_snapshot: a snapshot of an aggregator with the tables that otherwise are made while it is
// written.
// Context: tests only, after cmocka.h.
#pragma once

#include <stdlib.h>

#include "recorder/output/aggregator_snapshot.h"
#include "recording/test_support/recording_check.h"

struct whole_snapshot {
    struct aggregator_snapshot snapshot;
    struct recording recording; // borrows; owns the tables of the history
};

static inline void *
made_table(const struct table_supply *supply, enum rec_table_index table, size_t *count)
{
    *count = supply->count(supply->context, table);
    void *items = calloc(*count + 1, rec_tables[table].entry_bytes);
    assert_non_null(items);
    supply->begin(supply->context, table);
    for (size_t done = 0; done < *count;) { // in pieces, as the writer does
        const size_t now = *count - done < 3 ? *count - done : 3;
        char *at = (char *)items + done * rec_tables[table].entry_bytes;
        assert_int_equal(supply->next(supply->context, table, at, now), ERR_OK);
        done += now;
    }
    return items;
}

static inline void whole_snapshot_take(struct aggregator *aggregator, struct whole_snapshot *out)
{
    static const struct aggregator_snapshot_facts facts = {
        .state = REC_STATE_FINISHED, .tool_version = "test", .program = "program"};
    *out = (struct whole_snapshot){0};
    assert_int_equal(aggregator_snapshot_take(aggregator, NULL, NULL, &facts, &out->snapshot),
                     ERR_OK);
    const struct table_supply supply = row_history_supply(&out->snapshot.history);
    struct recording *r = &out->recording;
    *r = out->snapshot.recording;
    r->cells = made_table(&supply, REC_TABLE_CELLS, &r->cell_count);
    r->size_buckets = made_table(&supply, REC_TABLE_SIZE_BUCKETS, &r->size_bucket_count);
    r->lifetime_buckets =
        made_table(&supply, REC_TABLE_LIFETIME_BUCKETS, &r->lifetime_bucket_count);
}

static inline void whole_snapshot_release(struct whole_snapshot *whole)
{
    free(whole->recording.cells);
    free(whole->recording.size_buckets);
    free(whole->recording.lifetime_buckets);
    aggregator_snapshot_release(&whole->snapshot);
}

// Assert that the recording has no findings.
static inline void whole_snapshot_check(struct aggregator *aggregator)
{
    struct whole_snapshot whole;
    struct recording_findings findings = {0};
    whole_snapshot_take(aggregator, &whole);
    assert_int_equal(recording_check(&whole.recording, &findings), ERR_OK);
    for (size_t i = 0; i < findings.items.len; i++) {
        print_message("%s\n", findings.items.items[i].text);
    }
    assert_int_equal(recording_findings_count(&findings), 0);
    recording_findings_release(&findings);
    whole_snapshot_release(&whole);
}
