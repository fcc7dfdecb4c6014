// SPDX-License-Identifier: MIT
// sampling: see sampling.h.
#include "profile/accuracy/sampling.h"

#include <math.h>
#include <stdio.h>

#include "host/text/format.h"

struct sampling sampling_of(const struct recording *recording)
{
    const struct rec_totals *totals = &recording->totals;
    const uint64_t recorded = totals->allocations - totals->represented_allocations;
    return (struct sampling){
        .is_sampled = totals->unsampled_allocations != 0,
        .is_for_memory =
            totals->unsampled_allocations != 0 &&
            rec_counter_value(recording, "unkept_blocks") == totals->unsampled_allocations,
        .allocations = recorded + totals->unsampled_allocations,
        .allocated_bytes =
            totals->allocated_bytes - totals->represented_bytes + totals->unsampled_bytes,
        .recorded_allocations = recorded,
        .bytes = totals->sample_bytes,
        .max_weight = totals->max_weight > 1 ? totals->max_weight : 1,
        .peak_standard_error_bytes = totals->peak_standard_error_bytes,
    };
}

double sampling_error_share(const struct sampling *sampling, uint64_t sum_bytes)
{
    const double weight_spread = 9.0 / 8; // of weights that are powers of two
    return sum_bytes == 0 ? 0
                          : 2 * sqrt(weight_spread * (double)sampling->bytes / (double)sum_bytes);
}

struct sampling_rate sampling_format_rate(const struct sampling *sampling)
{
    struct sampling_rate rate = {.text = "none"};
    if (sampling->recorded_allocations != 0) {
        (void)snprintf(rate.text, sizeof(rate.text), "1 of %.3g", // fits
                       (double)sampling->allocations / (double)sampling->recorded_allocations);
    }
    return rate;
}

void sampling_append_mark(const struct recording *recording, struct strbuf *out)
{
    const struct sampling sampling = sampling_of(recording);
    if (sampling.is_sampled) {
        strbuf_printf(out, " [estimates: %s recorded]", sampling_format_rate(&sampling).text);
    }
}

void sampling_append(const struct sampling *sampling, struct strbuf *out)
{
    strbuf_printf(
        out,
        "all figures are estimates because %s: %s allocations was recorded, at times "
        "only 1 of %s; the exact totals are %s allocations ",
        sampling->bytes != 0      ? "blocks were sampled (--sample)"
        : sampling->is_for_memory ? "live blocks reached the memory limit (--max-memory)"
                                  : "the program was faster than the recorder",
        sampling->recorded_allocations != 0 ? sampling_format_rate(sampling).text : "none of the",
        format_count(sampling->max_weight).text, format_count(sampling->allocations).text);
    strbuf_printf(out, "and %s bytes", format_count(sampling->allocated_bytes).text);
}

void sampling_append_error(const struct sampling *sampling, struct strbuf *out)
{
    if (sampling->bytes != 0) {
        strbuf_printf(out, "In at least 95 of 100 cases an estimate of 100 MiB is within ±%.2g%%",
                      100 * sampling_error_share(sampling, 100 << 20));
    }
}
