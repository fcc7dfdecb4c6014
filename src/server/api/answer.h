// SPDX-License-Identifier: MIT
// answer: computes the JSON answer of a route from its arguments.
//
//   arguments --request_parse--> request --query_init--> query --route->answer--> JSON
//
// The HTTP server and the report page share it. Context: H; an answer is computed in one thread.
#pragma once

#include "base/err.h"
#include "host/os/cancel.h"
#include "host/text/strbuf.h"
#include "server/api/query.h"
#include "server/api/routes.h"
#include "server/state/snapshot.h"
#include "server/state/tree_cache.h"

// The inputs of an answer. All borrowed.
struct answer_source {
    const struct server_settings *settings;
    struct snapshot *snapshot;
    struct tree_cache *trees;
    struct cancel *cancel; // NULL: never cancelled
};

// Append the answer of `route` to these arguments. `problem` describes the error. If it has no
// text, memory ran out or the cancel stopped it.
enum err answer_write(const struct answer_source *source,
                      const struct route *route,
                      const struct request_args *args,
                      struct strbuf *out,
                      struct problem *problem) MUST_USE;
