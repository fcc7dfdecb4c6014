// SPDX-License-Identifier: MIT
// store_json: the answer of a store as JSON, one form for all faces.
//
//   "columns": ["recording_id", ...], "rows": [{"recording_id": "00...", ...}, ...], "more": 0
//
// recording_id is hexadecimal, because JSON's numbers are not exact beyond 2^53. Context: H.
#pragma once

#include "host/text/json_writer.h"
#include "store/store_table.h"

// Write the members `columns`, `rows` and `more` into an open object.
void store_json_write(const struct store_table *table, struct json_writer *w);
