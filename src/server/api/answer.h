// SPDX-License-Identifier: MIT
// answer: from the arguments of a route to the JSON that answers it.
//
//   arguments --request_parse--> request --question_init--> question --route->answer--> JSON
//
// The same for a client of the server and for a report file. Context: H; an answer is made in one
// thread.
#pragma once

#include "base/err.h"
#include "host/os/cancel.h"
#include "host/text/strbuf.h"
#include "server/api/question.h"
#include "server/api/routes.h"
#include "server/state/snapshot.h"
#include "server/state/tree_cache.h"

// What an answer is made from. All borrowed.
struct answer_source {
    const struct server_settings *settings;
    struct snapshot *snapshot;
    struct tree_cache *trees;
    struct cancel *cancel; // NULL: nobody stops it
};

// Appends the answer of `route` to these arguments. The error is told in `problem`; without
// words it is memory, or what the cancel said.
enum err answer_write(const struct answer_source *source,
                      const struct route *route,
                      const struct request_args *args,
                      struct strbuf *out,
                      struct problem *problem) MUST_USE;
