// SPDX-License-Identifier: MIT
// view_findings: what deserves attention, and what the call sites gained before the peak.
#include "base/compiler.h"
#include "base/order.h"
#include "profile/accuracy/sampling.h"
#include "profile/findings/findings.h"
#include "views_json/views/views.h"

enum {
    GAINS_MAX = 20
};

struct finding_row {
    const char *kind;
    const char *sentence;
    const char *confidence;
    struct place place;
    struct finding finding;
};

DEFINE_VEC(finding_row_vec, struct finding_row);

#define ERROR_COLUMN(key, kind, field) COLUMN_AS_WHEN(key, WHEN_SAMPLED, kind, finding_row, field)

static const struct column finding_columns[] = {
    COLUMN(CELL_TEXT, finding_row, kind),
    COLUMN(CELL_TEXT, finding_row, sentence),
    COLUMN(CELL_TEXT, finding_row, confidence),
    COLUMN(CELL_LOCATION, finding_row, place),
    COLUMN_AS("bytes", CELL_U64, finding_row, finding.bytes),
    COLUMN_AS("whole_bytes", CELL_U64, finding_row, finding.whole_bytes),
    COLUMN_AS("blocks", CELL_U64, finding_row, finding.blocks),
    COLUMN_AS("bytes_per_s", CELL_DOUBLE, finding_row, finding.bytes_per_s),
    COLUMN_AS("look", CELL_TEXT, finding_row, finding.look),
    COLUMN_AS("pid", CELL_U32, finding_row, finding.pid),
    COLUMN_AS("thread_id", CELL_U32, finding_row, finding.thread_id),
    ERROR_COLUMN("bytes_error", CELL_U64, finding.bytes_error),
    ERROR_COLUMN("whole_bytes_error", CELL_U64, finding.whole_bytes_error),
    ERROR_COLUMN("blocks_error", CELL_U64, finding.blocks_error),
    ERROR_COLUMN("bytes_per_s_error", CELL_DOUBLE, finding.bytes_per_s_error),
    ERROR_COLUMN("lower_limit", CELL_BOOL, finding.is_lower_limit),
};

struct gain_row {
    struct place place;
    uint64_t gained_bytes;
    uint64_t without_bytes; // the peak without this gain
    uint64_t gained_bytes_error;
    uint64_t without_bytes_error;
    uint32_t thread;         // index, or REC_NONE
    const char *thread_name; // NULL without a thread
};

DEFINE_VEC(gain_row_vec, struct gain_row);

static const struct column gain_columns[] = {
    COLUMN(CELL_LOCATION, gain_row, place),
    COLUMN(CELL_U64, gain_row, gained_bytes),
    COLUMN(CELL_U64, gain_row, without_bytes),
    COLUMN(CELL_POSITION, gain_row, thread),
    COLUMN(CELL_TEXT, gain_row, thread_name),
    COLUMN_WHEN(WHEN_SAMPLED, CELL_U64, gain_row, gained_bytes_error),
    COLUMN_WHEN(WHEN_SAMPLED, CELL_U64, gain_row, without_bytes_error),
};

static int compare_gains(const void *left, const void *right)
{
    const struct gain_row *a = left;
    const struct gain_row *b = right;
    return order_u64(b->gained_bytes, a->gained_bytes)
               ?: order_u64(a->place.location, b->place.location);
}

// List the call sites that gained, without order.
static MUST_USE enum err
collect_gains(const struct view *view, const struct findings *findings, struct gain_row_vec *out)
{
    const struct recording *recording = &view->profile->recording;
    const struct peak_rise *rise = &findings->rise;
    const struct sampling sampling = sampling_of(recording);
    const uint64_t peak_bytes = recording->totals.peak_bytes;
    for (uint32_t i = 0; i < rise->gained.len; i++) {
        const uint64_t gained_bytes = rise->gained.items[i];
        const uint32_t thread = rise->threads.items[i];
        const uint64_t held_bytes =
            costs_get(&findings->groups.groups.items[i].costs, COST_PEAK_BYTES);
        struct gain_row row = {
            .place = {SIDE_NEW, row_groups_location(&findings->groups, i)},
            .gained_bytes = gained_bytes,
            .without_bytes = peak_bytes > gained_bytes ? peak_bytes - gained_bytes : 0,
            .thread = thread,
            .thread_name = thread != REC_NONE
                               ? profile_string(view->profile, recording->threads[thread].name)
                               : NULL,
        };
        row.gained_bytes_error =
            sampling_error_of_bytes(&sampling, peak_rise_error_bytes(held_bytes, gained_bytes));
        row.without_bytes_error = sampling_error_of_bytes(&sampling, row.without_bytes);
        TRY(gained_bytes > 0 ? gain_row_vec_push(out, row) : ERR_OK);
    }
    return ERR_OK;
}

static void write_bytes(struct view *view, const char *key, const char *error_key, uint64_t bytes)
{
    const struct sampling sampling = sampling_of(&view->profile->recording);
    json_key_u64(view->w, key, bytes);
    if (sampling.bytes != 0) {
        json_key_u64(view->w, error_key, sampling_error_of_bytes(&sampling, bytes));
    }
}

static MUST_USE enum err write_rise(struct view *view, const struct findings *findings)
{
    const struct recording *recording = &view->profile->recording;
    const struct peak_rise *rise = &findings->rise;
    CLEANUP(gain_row_vec_release) struct gain_row_vec rows = {0};
    if (rise->peak_ms == 0) {
        json_key_null(view->w, "peak_rise");
        return ERR_OK;
    }
    TRY(collect_gains(view, findings, &rows));
    gain_row_vec_sort(&rows, compare_gains);
    json_key_object(view->w, "peak_rise");
    json_key_u64(view->w, "trough_ms", rise->trough_ms);
    write_bytes(view, "trough_bytes", "trough_bytes_error", rise->trough_bytes);
    json_key_u64(view->w, "peak_ms", rise->peak_ms);
    write_bytes(view, "peak_bytes", "peak_bytes_error", recording->totals.peak_bytes);
    json_key_string(view->w, "mark",
                    rise->mark != REC_NONE
                        ? profile_string(view->profile, recording->marks[rise->mark].text)
                        : NULL);
    write_bytes(view, "freed_bytes", "freed_bytes_error", rise->freed_bytes);
    json_key_u64(view->w, "total_count", rows.len);
    rows.len = rows.len > GAINS_MAX ? GAINS_MAX : rows.len;
    view_table(view, &TABLE("sites", gain_columns, rows.items, rows.len));
    json_end_object(view->w);
    return ERR_OK;
}

enum err view_findings(struct view *view, const struct summary *summary)
{
    CLEANUP(findings_release) struct findings findings = {0};
    CLEANUP(finding_row_vec_release) struct finding_row_vec rows = {0};
    TRY(findings_of(view->selection, summary, &findings));
    for (size_t i = 0; i < findings.items.len; i++) {
        const struct finding *finding = &findings.items.items[i];
        const struct finding_row row = {
            .kind = finding_kind_name(finding->kind),
            .sentence = findings_sentence(&findings, finding),
            .confidence = growth_confidence_name(finding->confidence),
            .place = {SIDE_NEW, finding->location},
            .finding = *finding,
        };
        TRY(finding_row_vec_push(&rows, row));
    }
    view_table(view, &TABLE("items", finding_columns, rows.items, rows.len));
    TRY(view_findings_compared(view, "changes"));
    return write_rise(view, &findings);
}
