// SPDX-License-Identifier: MIT
// api: the answers of the API, one function for each route. docs/format/http-api.md describes them.
//
// An answer writes its fields to question->view, into an open object that has the envelope already.
// question->problem describes an error, except when memory ran out.
// Context: H.
#pragma once

#include "base/err.h"
#include "server/api/question.h"

enum err api_meta(struct question *q) MUST_USE;
enum err api_health(struct question *q) MUST_USE;
enum err api_summary(struct question *q) MUST_USE;
enum err api_call_sites(struct question *q) MUST_USE;
enum err api_stacks(struct question *q) MUST_USE;
enum err api_tree(struct question *q) MUST_USE;
enum err api_functions(struct question *q) MUST_USE;
enum err api_function(struct question *q) MUST_USE;
enum err api_call_graph(struct question *q) MUST_USE;
enum err api_source(struct question *q) MUST_USE;
enum err api_series(struct question *q) MUST_USE;
enum err api_sizes(struct question *q) MUST_USE;
enum err api_lifetimes(struct question *q) MUST_USE;
enum err api_size_lifetime(struct question *q) MUST_USE;
enum err api_leaks(struct question *q) MUST_USE;
enum err api_rss(struct question *q) MUST_USE;
enum err api_adhoc(struct question *q) MUST_USE;
enum err api_processes(struct question *q) MUST_USE;
enum err api_threads(struct question *q) MUST_USE;
enum err api_modules(struct question *q) MUST_USE;
