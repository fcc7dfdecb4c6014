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
#include "server/state/requests_in_flight.h"
#include "server/state/tree_cache.h"

// The state that all answers share.
struct answer_service {
    struct server_settings settings;
    struct served served;
    struct tree_cache trees;
    struct requests_in_flight requests;
    sem_t turns; // counts the answers that may still start
    atomic_bool is_closing;
};

enum MHD_Result answer_reply_send(struct answer_service *service,
                                  struct MHD_Connection *connection,
                                  const struct route *route,
                                  const char *target);

// Send the answer of /meta at once, for pages that show a new state.
enum MHD_Result answer_reply_send_meta(struct answer_service *service,
                                       struct MHD_Connection *connection);

// Send the progress of all requests in flight, without waiting for a turn.
enum MHD_Result answer_reply_send_work(struct answer_service *service,
                                       struct MHD_Connection *connection);
