// SPDX-License-Identifier: MIT
// prometheus_reply: answers about a store in the format of Prometheus' HTTP API, so that Grafana
// and promtool read it as a data source.
//
//   GET /api/v1/query          ?query ?time              a vector
//   GET /api/v1/query_range    ?query ?start ?end ?step  a matrix
//   GET /api/v1/series         ?match[] ?start ?end
//   GET /api/v1/labels         /api/v1/label/NAME/values
//   GET /api/v1/status/buildinfo
//
// Series: cairn_store_COST{service,version,host}, the totals of recordings, and
// cairn_store_function_COST{...,function}, of the functions with the highest values. A recording is
// a point at its end; the states of one run are points of one series. A point counts for
// LOOKBACK_S, or one step if that is longer.
// A query is one selector (selector.h), or 1+1, with which Grafana tries a data source.
// Context: H; the connection's thread. Trust: requests and the store are hostile; answers are
// bounded in series, steps and points (prometheus_series.h), and `warnings` say what is left out.
#pragma once

#include <microhttpd.h>
#include <stdbool.h>

// Whether the target is one of this module.
bool prometheus_has(const char *target);

// Answer a request. `place` names the store.
enum MHD_Result
prometheus_reply(const char *place, struct MHD_Connection *connection, const char *target);
