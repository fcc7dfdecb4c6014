// SPDX-License-Identifier: MIT
// api: the answers of the API, one function a route. docs/format/http-api.md says what each is.
//
// An answer writes its fields into an object that is open already and holds the envelope. Errors
// are told in question->problem, or by code alone if it is memory. Context: H.
#pragma once

#include "base/err.h"
#include "host/text/json_writer.h"
#include "server/api/question.h"

enum err api_meta(struct question *q, struct json_writer *w) MUST_USE;
enum err api_health(struct question *q, struct json_writer *w) MUST_USE;
enum err api_summary(struct question *q, struct json_writer *w) MUST_USE;
enum err api_call_sites(struct question *q, struct json_writer *w) MUST_USE;
enum err api_stacks(struct question *q, struct json_writer *w) MUST_USE;
enum err api_tree(struct question *q, struct json_writer *w) MUST_USE;
enum err api_functions(struct question *q, struct json_writer *w) MUST_USE;
enum err api_function(struct question *q, struct json_writer *w) MUST_USE;
enum err api_call_graph(struct question *q, struct json_writer *w) MUST_USE;
enum err api_source(struct question *q, struct json_writer *w) MUST_USE;
enum err api_series(struct question *q, struct json_writer *w) MUST_USE;
enum err api_sizes(struct question *q, struct json_writer *w) MUST_USE;
enum err api_lifetimes(struct question *q, struct json_writer *w) MUST_USE;
enum err api_size_lifetime(struct question *q, struct json_writer *w) MUST_USE;
enum err api_leaks(struct question *q, struct json_writer *w) MUST_USE;
enum err api_ledger(struct question *q, struct json_writer *w) MUST_USE;
enum err api_adhoc(struct question *q, struct json_writer *w) MUST_USE;
enum err api_processes(struct question *q, struct json_writer *w) MUST_USE;
enum err api_threads(struct question *q, struct json_writer *w) MUST_USE;
enum err api_modules(struct question *q, struct json_writer *w) MUST_USE;

// What api_stacks says with diff=1: `limit` stacks at most.
enum err api_stack_pairs(struct question *q, uint64_t limit, struct json_writer *w) MUST_USE;

// The tree that the parameters direction, by and collapse describe; the caller has a reference.
enum err api_find_tree(struct question *q, struct cached_tree **out) MUST_USE;
