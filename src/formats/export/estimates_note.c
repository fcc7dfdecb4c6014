// SPDX-License-Identifier: MIT
// estimates_note: see estimates_note.h.
#include "formats/export/estimates_note.h"

#include "profile/accuracy/sampling.h"

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
                  sampling.recorded_allocations != 0 ? sampling_format_rate(&sampling).text
                                                     : "none of the");
    if (sampling.bytes != 0) {
        strbuf_printf(out, ", at least one in %s", format_bytes(sampling.bytes).text);
    }
    const struct costs errors = sampling_errors(&sampling, costs);
    const char *separator = "; errors: ";
    for (size_t i = 0; i < total_count; i++) {
        const uint64_t error = costs_get(&errors, totals[i].cost);
        if (error != 0 && selection_knows(&view->selection, totals[i].cost)) {
            strbuf_printf(out, "%s%s%s", separator, totals[i].name,
                          sampling_format_error(costs_get(costs, totals[i].cost), error).text);
            separator = ", ";
        }
    }
    strbuf_append_text(out, after);
}
