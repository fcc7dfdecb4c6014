// SPDX-License-Identifier: MIT
// profile_json: see profile_json.h.
#include "profile/tables/profile_json.h"

#include "base/compiler.h"
#include "profile/accuracy/sampling.h"

const char *profile_state_name(const struct profile *profile)
{
    static const char *const names[] = {
        [REC_STATE_RUNNING] = "running",
        [REC_STATE_FINISHED] = "finished",
        [REC_STATE_STOPPED] = "stopped",
    };
    uint32_t state = profile->recording.meta.state;
    return state < ARRAY_LEN(names) ? names[state] : "unknown";
}

void profile_json_wait_status(struct json_writer *w, int32_t status)
{
    if (status < 0) {
        json_null(w);
    } else {
        json_i64(w, status);
    }
}

void profile_json_run(struct json_writer *w, const struct profile *profile)
{
    const struct rec_meta *meta = &profile->recording.meta;
    json_key(w, "run");
    json_begin_object(w);
    json_key_string(w, "program", profile_string(profile, meta->program));
    json_key_string(w, "command_line", profile_string(profile, meta->command_line));
    json_key_u64(w, "pid", meta->pid);
    json_key_string(w, "host", profile_string(profile, meta->host));
    json_key_string(w, "kernel", profile_string(profile, meta->kernel));
    json_key_string(w, "libc", profile_string(profile, meta->libc));
    json_key_u64(w, "memory_bytes", meta->memory_bytes);
    json_key_u64(w, "cpu_count", meta->cpu_count);
    json_key_u64(w, "start_unix_ms", meta->start_unix_ns / 1000000);
    json_key_string(w, "state", profile_state_name(profile));
    json_key(w, "wait_status");
    profile_json_wait_status(w, meta->exit_status);
    json_key_u64(w, "checkpoint_interval_ms", meta->checkpoint_interval_ms);
    json_key_u64(w, "max_frames", meta->max_frames);
    json_key_string(w, "recorded_by", profile_string(profile, meta->tool_version));
    json_key_string(w, "source_format", profile_string(profile, meta->source_format));
    json_key(w, "unknown");
    json_begin_array(w);
    for (int cost = 0; cost < COST_COUNT; cost++) {
        if (!profile_knows(profile, (enum cost)cost)) {
            json_string(w, cost_get_info((enum cost)cost)->key);
        }
    }
    json_end_array(w);
    sampling_json(w, &profile->recording);
    json_end_object(w);
}

void profile_json_totals(struct json_writer *w, const char *key, const struct summary *summary)
{
    json_key(w, key);
    json_begin_object(w);
    for (int cost = 0; cost < COST_COUNT; cost++) {
        // Rows' own peaks do not add up to anything that was ever held at once.
        if (cost != COST_OWN_PEAK_BYTES) {
            json_key_u64(w, cost_get_info((enum cost)cost)->key, summary->costs.values[cost]);
        }
    }
    json_key_u64(w, "peak_error_bytes", summary->peak_error_bytes);
    json_key_u64(w, "peak_at_least_bytes", summary_peak_at_least(summary));
    json_key_u64(w, "peak_at_most_bytes", summary_peak_at_most(summary));
    json_key_u64(w, "peak_time_ms", summary->peak_time_ms);
    json_key_u64(w, "peak_rss_bytes", summary->peak_rss_bytes);
    json_key_u64(w, "runtime_ms", summary->runtime_ms);
    json_key_u64(w, "counted_ms", summary->counted_ms);
    json_key_u64(w, "processes", summary->processes);
    json_key_u64(w, "threads", summary->threads);
    json_key_u64(w, "stacks", summary->stacks);
    json_key_u64(w, "unknown_frees", summary->unknown_frees);
    json_key_u64(w, "events", summary->events);
    json_key_u64(w, "allocations_per_second", (uint64_t)summary->allocations_per_s);
    json_end_object(w);
}
