// SPDX-License-Identifier: MIT
#include "formats/export/process_metrics.h"

#include <inttypes.h>

#include "base/compiler.h"
#include "base/order.h"
#include "formats/codec/clean_text.h"

static const struct {
    enum cost cost;
    const char *name;
    const char *type;
    const char *help;
} metrics[] = {
    {COST_LEAKED_BYTES, "cairn_process_live_bytes", "gauge",
     "Bytes of live blocks of the largest processes."},
    {COST_LEAKED_ALLOCATIONS, "cairn_process_live_blocks", "gauge",
     "Live blocks of the same processes."},
    {COST_ALLOCATIONS, "cairn_process_allocations_total", "counter",
     "Allocations of the same processes."},
    {COST_ALLOCATED_BYTES, "cairn_process_allocated_bytes_total", "counter",
     "Requested bytes of all allocations of the same processes."},
};

// What processes have, by process of the recording.
struct tally {
    struct costs_vec costs;   // owned
    struct flag_vec is_there; // owned
    struct u32_vec shown;     // owned; the largest first
};

static void tally_release(struct tally *tally)
{
    costs_vec_release(&tally->costs);
    flag_vec_release(&tally->is_there);
    u32_vec_release(&tally->shown);
}

static int by_live_bytes(const void *left, const void *right, void *context)
{
    const uint32_t a = *(const uint32_t *)left;
    const uint32_t b = *(const uint32_t *)right;
    const struct costs_vec *costs = context;
    const uint64_t of_a = costs->items[a].values[COST_LEAKED_BYTES];
    const uint64_t of_b = costs->items[b].values[COST_LEAKED_BYTES];
    return order_u64(of_b, of_a) ?: order_u64(a, b);
}

// Return whether no later process has the same number: a series must not occur twice.
static bool is_latest(const struct profile *profile, uint32_t process)
{
    const struct recording *recording = &profile->recording;
    bool is_latest = true;
    for (size_t i = process + 1; i < recording->process_count && is_latest; i++) {
        is_latest = recording->processes[i].pid != recording->processes[process].pid;
    }
    return is_latest;
}

static MUST_USE enum err tally_up(const struct selection *live, struct tally *tally)
{
    const struct profile *profile = live->profile;
    TRY(costs_vec_resize(&tally->costs, profile->recording.process_count));
    TRY(flag_vec_resize(&tally->is_there, profile->recording.process_count));
    for (size_t i = 0; i < live->rows.len; i++) {
        const uint32_t process = profile_process_of_row(profile, live->rows.items[i]);
        const struct costs costs = selection_costs(live, i);
        costs_add(&tally->costs.items[process], &costs);
        tally->is_there.items[process] = 1;
    }
    for (uint32_t i = 0; i < tally->is_there.len; i++) {
        if (tally->is_there.items[i] != 0 && is_latest(profile, i)) {
            TRY(u32_vec_push(&tally->shown, i));
        }
    }
    u32_vec_sort_by(&tally->shown, by_live_bytes, &tally->costs);
    if (tally->shown.len > PROCESS_METRICS_MAX) {
        tally->shown.len = PROCESS_METRICS_MAX;
    }
    return ERR_OK;
}

static MUST_USE enum err
append_labels(const struct export_view *view, uint32_t process, struct strbuf *out)
{
    const struct rec_process *record = &view->profile->recording.processes[process];
    strbuf_printf(out, "pid=\"%" PRIu32 "\"", record->pid);
    metric_label_append_text(out, "executable", profile_string(view->profile, record->executable));
    if (view->append_labels != NULL) {
        view->append_labels(record->pid, out);
    }
    return strbuf_result(out);
}

enum err
process_metrics_write(const struct export_view *view, const struct selection *live, FILE *out)
{
    CLEANUP(tally_release) struct tally tally = {0};
    TRY(tally_up(live, &tally));
    for (size_t m = 0; m < ARRAY_LEN(metrics) && tally.shown.len > 0; m++) {
        if (!selection_knows(live, metrics[m].cost)) {
            continue;
        }
        (void)fprintf(out, "# HELP %s %s\n# TYPE %s %s\n", metrics[m].name, metrics[m].help,
                      metrics[m].name, metrics[m].type);
        for (size_t i = 0; i < tally.shown.len; i++) {
            const uint32_t process = tally.shown.items[i];
            CLEANUP(strbuf_release) struct strbuf labels = {0};
            TRY(append_labels(view, process, &labels));
            (void)fprintf(out, "%s{%s} %" PRIu64 "\n", metrics[m].name, strbuf_text(&labels),
                          costs_get(&tally.costs.items[process], metrics[m].cost));
        }
    }
    return ERR_OK;
}

void metric_label_append(struct strbuf *out, const char *name, const struct strbuf *text)
{
    strbuf_printf(out, "%s%s=\"", out->len > 0 ? "," : "", name);
    for (const char *at = strbuf_text(text); *at != '\0'; at++) {
        strbuf_append_text(out, *at == '"' || *at == '\\' ? "\\" : "");
        strbuf_append_char(out, *at);
    }
    strbuf_append_char(out, '"');
}

void metric_label_append_text(struct strbuf *out, const char *name, const char *text)
{
    CLEANUP(strbuf_release) struct strbuf clean = {0};
    clean_append(&clean, text, (struct clean_rule){0});
    metric_label_append(out, name, &clean);
}
