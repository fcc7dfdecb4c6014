// SPDX-License-Identifier: MIT
// answer_reply: sends the API's answers: "not modified", or an answer computed in its turn while
// the client waits, compressed.
// Context: H; the connection's thread.
#pragma once

#include <microhttpd.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "server/api/routes.h"
#include "server/state/current_recording.h"
#include "server/state/tree_cache.h"

// The state that all answers share.
struct answer_service {
    struct server_settings settings;
    struct served served;
    struct tree_cache trees;
    sem_t turns; // counts the answers that may still start
    // Relaxed: the sums of /api/v1/work, each valid by itself.
    atomic_uint_fast64_t begun;
    atomic_uint_fast64_t finished;  // with an answer or an error
    atomic_uint_fast64_t abandoned; // begun, then given up because no client waited
    atomic_bool is_closing;
};

enum MHD_Result answer_reply_send(struct answer_service *service,
                                  struct MHD_Connection *connection,
                                  const struct route *route,
                                  const char *target);

// Send the answer of /meta at once, for pages that show a new state.
enum MHD_Result answer_reply_send_meta(struct answer_service *service,
                                       struct MHD_Connection *connection);

// Send the sums of answers, without waiting for a turn.
enum MHD_Result answer_reply_send_work(struct answer_service *service,
                                       struct MHD_Connection *connection);
