// SPDX-License-Identifier: MIT
// profile_json: the objects that the JSON report and the viewer's API have in common.
// docs/format/report-json.md describes their fields. Context: H.
#pragma once

#include "host/text/json_writer.h"
#include "profile/model/profile.h"
#include "profile/tables/summary.h"

// "run": what was recorded.
void profile_json_run(struct json_writer *w, const struct profile *profile);

// The totals of a selection, under `key`.
void profile_json_totals(struct json_writer *w, const char *key, const struct summary *summary);

// "running", "finished", "stopped", or "unknown".
const char *profile_state_name(const struct profile *profile);

// A wait status as a value; null if it is not known.
void profile_json_wait_status(struct json_writer *w, int32_t status);
