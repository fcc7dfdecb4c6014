// SPDX-License-Identifier: MIT
#include "profile/accuracy/sampling.h"

#include <math.h>
#include <stdio.h>

#include "base/minmax.h"
#include "host/text/format.h"

struct sampling sampling_of(const struct recording *recording)
{
    const struct rec_totals *totals = &recording->totals;
    const uint64_t recorded = totals->allocations - totals->represented_allocations;
    return (struct sampling){
        .is_sampled = totals->unsampled_allocations != 0 || totals->interval_bytes != 0,
        .is_for_memory =
            totals->unsampled_allocations != 0 &&
            rec_counter_value(recording, "unkept_blocks") == totals->unsampled_allocations,
        .allocations = recorded + totals->unsampled_allocations,
        .allocated_bytes =
            totals->allocated_bytes - totals->represented_bytes + totals->unsampled_bytes,
        .recorded_allocations = recorded,
        .is_for_all = totals->sample_bytes != 0,
        .bytes = totals->interval_bytes != 0 ? totals->interval_bytes : totals->sample_bytes,
        .max_weight = totals->max_weight > 1 ? totals->max_weight : 1,
        .peak_standard_error_bytes = totals->peak_standard_error_bytes,
    };
}

bool sampling_has_errors(const struct recording *recording)
{
    return sampling_of(recording).bytes != 0;
}

struct sampled_sizes sampled_sizes_of_bucket(const struct rec_bucket *bucket)
{
    const uint64_t length = rec_bucket_low(bucket->bucket) + 1;
    return (struct sampled_sizes){.inverse_lengths = (double)bucket->count / (double)length,
                                  .shortest_length = length};
}

struct sampled_sizes sampled_sizes_of_row(const struct recording *recording, uint32_t row)
{
    struct sampled_sizes sizes = {0};
    if (!sampling_has_errors(recording)) {
        return sizes;
    }
    FOR_ENTRIES_OF_ROW (bucket, recording->size_buckets, recording->size_bucket_count, row) {
        const struct sampled_sizes part = sampled_sizes_of_bucket(bucket);
        sampled_sizes_add(&sizes, &part);
    }
    return sizes;
}

double sampling_variance(const struct sampling *sampling)
{
    const double weight_spread = 9.0 / 8; // of weights that are powers of two: version 1.0
    return weight_spread * (double)sampling->bytes;
}

// Return two standard errors of a sum whose blocks have this sum of size * size / length.
static double two_errors(const struct sampling *sampling, double squares)
{
    return 2 * sqrt(sampling_variance(sampling) * squares);
}

uint64_t sampling_error_of_bytes(const struct sampling *sampling, uint64_t bytes)
{
    return (uint64_t)ceil(two_errors(sampling, (double)bytes)); // a square is at most the size
}

// Return how many blocks may be missing because they are shorter than all that were recorded. Of
// blocks of the shortest recorded length s as many as 3 BYTES / s may be missing, as none may be
// recorded of 3 BYTES (sampling_most_unseen). Each octave below s is taken to lack no more; and of
// octaves there are as many as log2(s), or twice those between s and the mean, if they are less.
static double
unseen_blocks(const struct sampling *sampling, double sum, const struct sampled_sizes *sizes)
{
    const double shortest = (double)sizes->shortest_length;
    const double spread = sum / (sizes->inverse_lengths * shortest); // 1: all have one size
    const double octaves = fmin(2 * log2(fmax(spread, 1)), log2(shortest));
    return (double)sampling_most_unseen(sampling) / shortest * octaves;
}

// Return two standard errors of a number of blocks. They cover sizes without a recorded block, too.
// 0: no size is known.
static double
two_errors_of_number(const struct sampling *sampling, double sum, const struct sampled_sizes *sizes)
{
    if (sizes->shortest_length == 0) {
        return 0;
    }
    const double squares = fmin(sizes->inverse_lengths, sum / (double)sizes->shortest_length);
    const double seen = two_errors(sampling, squares);
    const double unseen = unseen_blocks(sampling, sum, sizes);
    return sqrt(seen * seen + unseen * unseen);
}

struct costs sampling_errors(const struct sampling *sampling, const struct costs *costs)
{
    struct costs errors = {0};
    for (int cost = 0; sampling->bytes != 0 && cost < COST_COUNT; cost++) {
        const double sum = (double)costs_get(costs, (enum cost)cost);
        const bool is_bytes = cost_get_info((enum cost)cost)->unit == COST_UNIT_BYTES;
        if (sum == 0 || cost == COST_OWN_PEAK_BYTES) {
            continue;
        }
        const double error = is_bytes // size * size / length is at most the size
                                 ? two_errors(sampling, sum)
                                 : two_errors_of_number(sampling, sum, &costs->sizes);
        errors.values[cost] = (uint64_t)ceil(error);
    }
    return errors;
}

uint64_t sampling_most_unseen(const struct sampling *sampling)
{
    const uint64_t lengths = 3; // exp(-3) is just below 5 of 100
    return lengths * sampling->bytes;
}

static double squared(double number)
{
    return number * number;
}

// A block of the part moves the share by (1 - share) / all, one of the rest by -share / all. The
// errors of both are upper limits, but together they have the error of the whole at most: the one
// that moves the share more takes its limit.
double sampling_error_of_share(const struct sampling *sampling,
                               const struct costs *costs,
                               enum cost part,
                               enum cost whole)
{
    const double all = (double)costs_get(costs, whole);
    const uint64_t taken = min_u64(costs_get(costs, part), costs_get(costs, whole));
    if (all == 0) {
        return 0;
    }
    struct costs rest = *costs;
    rest.values[part] = costs_get(costs, whole) - taken;
    const struct costs errors = sampling_errors(sampling, costs);
    const struct costs rest_errors = sampling_errors(sampling, &rest);
    const double share = (double)taken / all;
    const double all_squares = squared((double)costs_get(&errors, whole));
    double part_squares = squared((double)costs_get(&errors, part));
    double rest_squares = squared((double)costs_get(&rest_errors, part));
    if (share < 0.5) {
        rest_squares = fmin(rest_squares, fmax(all_squares - part_squares, 0));
    } else {
        part_squares = fmin(part_squares, fmax(all_squares - rest_squares, 0));
    }
    return sqrt(squared(1 - share) * part_squares + squared(share) * rest_squares) / all;
}

double sampling_change_error(double new_error, double old_error)
{
    return hypot(new_error, old_error);
}

struct human sampling_format_rate_error(double rate, double error)
{
    const struct human share = format_percent_error(rate, error);
    struct human out = {.text = ""};
    if (share.text[0] != '\0') {
        (void)snprintf(out.text, sizeof(out.text), " %.40s", share.text); // fits
    }
    return out;
}

struct human sampling_format_error(uint64_t figure, uint64_t error)
{
    return sampling_format_rate_error((double)figure, (double)error);
}

struct sampling_rate sampling_format_rate(const struct sampling *sampling)
{
    const double whole_from = 999.5; // where %.3g goes over to powers of ten
    struct sampling_rate rate = {.text = "none of the"};
    if (sampling->recorded_allocations == 0) {
        return rate;
    }
    const double inverse = (double)sampling->allocations / (double)sampling->recorded_allocations;
    if (inverse < whole_from) {
        (void)snprintf(rate.text, sizeof(rate.text), "1 of %.3g", inverse); // fits
    } else {
        (void)snprintf(rate.text, sizeof(rate.text), "1 of %.26s", // fits
                       format_count((uint64_t)(inverse + 0.5)).text);
    }
    return rate;
}

void sampling_append_mark(const struct recording *recording, struct strbuf *out)
{
    const struct sampling sampling = sampling_of(recording);
    if (sampling.is_sampled) {
        strbuf_printf(out, " [estimates: %s recorded]",
                      sampling.recorded_allocations != 0 ? sampling_format_rate(&sampling).text
                                                         : "none");
    }
}

void sampling_append(const struct sampling *sampling, struct strbuf *out)
{
    strbuf_printf(out, "all figures are estimates because %s: %s allocations was recorded",
                  sampling->is_for_all      ? "blocks were sampled (--sample)"
                  : sampling->is_for_memory ? "live blocks reached the memory limit (--max-memory)"
                                            : "the program was faster than the recorder",
                  sampling_format_rate(sampling).text);
    if (sampling->max_weight > 1) {
        strbuf_printf(out, ", at times only 1 of %s", format_count(sampling->max_weight).text);
    }
    strbuf_printf(out, "; the exact totals are %s and ",
                  format_things(sampling->allocations, "allocation", "allocations").text);
    strbuf_append_text(out, format_things(sampling->allocated_bytes, "byte", "bytes").text);
}

void sampling_append_error(const struct sampling *sampling, struct strbuf *out)
{
    enum {
        EXAMPLE_BYTES = 100 << 20
    };
    if (sampling->bytes != 0) {
        const double whole_from = 9.95; // as in sampling_format_rate(), for %.2g
        const double percent = 100 * two_errors(sampling, EXAMPLE_BYTES) / EXAMPLE_BYTES;
        strbuf_append_text(out, "In about 95 of 100 cases an estimate of 100 MiB is within ±");
        strbuf_printf(out, percent < whole_from ? "%.2g" : "%.0f", percent);
        strbuf_append_text(out, "%, and others are within their ±; a number of blocks may lack "
                                "rare small ones beyond that; errors do not add up");
    }
}
