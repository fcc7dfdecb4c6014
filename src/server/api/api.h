// SPDX-License-Identifier: MIT
// api: the answers of the API, one function for each route, except for routes that are a view
// without options (routes.c). docs/format/http-api.md describes them.
//
// An answer writes its fields to query->view, into an open object that has the envelope already.
// query->problem describes an error, except when memory ran out.
// Context: H.
#pragma once

#include "base/err.h"
#include "server/api/query.h"

enum err api_meta(struct query *q) MUST_USE;
enum err api_summary(struct query *q) MUST_USE;
enum err api_call_sites(struct query *q) MUST_USE;
enum err api_stacks(struct query *q) MUST_USE;
enum err api_tree(struct query *q) MUST_USE;
enum err api_functions(struct query *q) MUST_USE;
enum err api_function(struct query *q) MUST_USE;
enum err api_call_graph(struct query *q) MUST_USE;
enum err api_source(struct query *q) MUST_USE;
enum err api_series(struct query *q) MUST_USE;
enum err api_sizes(struct query *q) MUST_USE;
enum err api_lifetimes(struct query *q) MUST_USE;
enum err api_size_lifetime(struct query *q) MUST_USE;
enum err api_leaks(struct query *q) MUST_USE;
enum err api_rss(struct query *q) MUST_USE;
enum err api_adhoc(struct query *q) MUST_USE;
enum err api_blocks(struct query *q) MUST_USE;
enum err api_files(struct query *q) MUST_USE;
