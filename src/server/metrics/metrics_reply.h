// SPDX-License-Identifier: MIT
// metrics_reply: answers the requests of collectors.
//
//   /metrics              Prometheus' text format
//   /debug/pprof/heap     pprof, as a Go program serves it
//   /debug/pprof/allocs   the same profile; it shows all allocations
//   /debug/pprof/         links to these
//   ...?process=PID       the same of one process
//   /ready                200 once there is a checkpoint, 503 before; needs no token
//
// Context: H; the connection's thread. Trust: requests are hostile.
#pragma once

#include <microhttpd.h>

#include "server/metrics/metrics_source.h"

// Health checks cannot send a token. The answer has one bit.
#define METRICS_REPLY_READY "/ready"

// Answer a GET or HEAD of the target.
enum MHD_Result
metrics_reply(struct metrics_source *source, struct MHD_Connection *connection, const char *target);
