// SPDX-License-Identifier: MIT
#include "formats/export/estimates_note.h"

#include "profile/accuracy/sampling.h"

// Append the error of a total; of one of 0 bytes, how much may have passed unseen.
static void append_error(const struct sampling *sampling,
                         const struct costs *costs,
                         const struct costs *errors,
                         enum cost cost,
                         struct strbuf *out)
{
    if (costs_get(costs, cost) == 0) {
        strbuf_printf(out, " at most %s", format_bytes(sampling_most_unseen(sampling)).text);
    } else {
        strbuf_append_text(
            out, sampling_format_error(costs_get(costs, cost), costs_get(errors, cost)).text);
    }
}

void estimates_note_append(const struct export_view *view,
                           const struct costs *costs,
                           const struct estimated_total *totals,
                           size_t total_count,
                           const char *before,
                           const char *after,
                           struct strbuf *out)
{
    const struct sampling sampling = sampling_of(&view->profile->recording);
    if (!sampling.is_sampled) {
        return;
    }
    strbuf_printf(out, "%sall figures are estimates: %s allocations was recorded", before,
                  sampling_format_rate(&sampling).text);
    if (sampling.bytes != 0) {
        strbuf_printf(out, ", at least one in %s", format_bytes(sampling.bytes).text);
    }
    const struct costs errors = sampling_errors(&sampling, costs);
    const char *separator = "; errors: ";
    for (size_t i = 0; i < total_count && sampling.bytes != 0; i++) {
        const enum cost cost = totals[i].cost;
        const bool is_bytes = cost_get_info(cost)->unit == COST_UNIT_BYTES;
        if (selection_knows(&view->selection, cost) && (is_bytes || costs_get(costs, cost) != 0)) {
            strbuf_printf(out, "%s%s", separator, totals[i].name);
            append_error(&sampling, costs, &errors, cost, out);
            separator = ", ";
        }
    }
    strbuf_append_text(out, after);
}
