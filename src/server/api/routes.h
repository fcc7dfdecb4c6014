// SPDX-License-Identifier: MIT
// routes: the table of all API paths that answer with JSON.
// Context: H; static.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/text/json_writer.h"
#include "server/api/query.h"

struct route {
    const char *path;
    uint64_t params; // PARAM_BITs
    bool has_selection;
    bool is_volatile; // depends on more than the recording, so it has no ETag
    enum err (*answer)(struct query *query);
    enum err (*view)(struct view *view); // in place of answer: a view without options
};

// Find the route of a request's target. Return NULL if there is none.
const struct route *route_find(const char *target);
