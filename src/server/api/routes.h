// SPDX-License-Identifier: MIT
// routes: every path of the API that is answered with JSON, as one table.
// Context: H; static.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/text/json_writer.h"
#include "server/api/question.h"

struct route {
    const char *path;
    uint64_t params; // PARAM_BITs
    bool has_selection;
    bool is_volatile; // depends on more than the recording: no ETag
    enum err (*answer)(struct question *question);
};

// The route of a request's target, NULL if there is none.
const struct route *route_find(const char *target);
