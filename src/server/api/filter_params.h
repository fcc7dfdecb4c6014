// SPDX-License-Identifier: MIT
// filter_params: the parameters of the filter: read into a struct filter, and told in the envelope.
//
// They are the same on every route that has a selection; what a range makes of them, rounded
// outwards to what was recorded, stands beside them in the answer. Context: H.
#pragma once

#include "host/text/strbuf.h"
#include "server/api/question.h"

// Everything but the time range, which depends on the recording: a diff has two.
enum err filter_params_read(struct question *question, struct filter *filter) MUST_USE;

// The time range, in slices of one recording.
enum err filter_params_read_time(struct question *question,
                                 const struct recording *recording,
                                 struct filter *filter) MUST_USE;

// Says which parameter made the selection fail with `problem`, and how. Returns it.
enum err filter_params_blame(struct question *question, enum err problem);

// Members of the open object "selection": filter, range, size_bytes, lifetime_ms.
void filter_params_write(const struct question *question, struct json_writer *w);

// All of them as they were given, so that texts differ if filters do.
void filter_params_append(const struct request *request, struct strbuf *out);
