// SPDX-License-Identifier: MIT
// json_writer: JSON (RFC 8259) as a stream, in constant memory.
//
// A document is an object, which the first call begins and json_finish ends. The caller opens and
// closes objects and arrays in it; the writer adds commas, quotes and, if requested,
// line breaks. Of the nesting it stores only the depth: the parent of a closed container is not
// empty, so one flag is enough for commas, and the depth is unlimited. Keys and strings may hold
// any bytes: what a terminal would obey is escaped (visible_text.h), bytes that are not UTF-8
// become U+FFFD. After the sink fails, later calls do nothing, and json_finish reports the failure.
//
//   struct json_writer w;
//   json_to_stream(&w, stdout, JSON_INDENTED);
//   json_key_u64(&w, "peak_bytes", peak);
//   TRY(json_finish(&w));
//
// Context: H; one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "host/text/strbuf.h"

// Takes the next bytes. Returns false on failure; it is not called again then.
typedef bool json_sink(void *context, const char *data, size_t len);

enum json_style {
    JSON_COMPACT,
    JSON_INDENTED, // indented by two spaces a level
    JSON_BARE,     // one value without quotes and escapes, null as nothing: for cells of a table
};

struct json_writer {
    json_sink *sink;
    void *context; // borrowed, passed to the sink
    enum json_style style;
    size_t depth;
    bool has_sibling; // the innermost open container already has a member
    bool after_key;
    bool failed;
    size_t buffered;
    char buffer[4096]; // small: answers are written deep in the stack
};

void json_to_sink(struct json_writer *w, json_sink *sink, void *context, enum json_style style);

// Write to `stream`. The caller keeps and closes it; json_finish flushes it.
void json_to_stream(struct json_writer *w, FILE *stream, enum json_style style);
void json_to_strbuf(struct json_writer *w, struct strbuf *out, enum json_style style);

void json_begin_object(struct json_writer *w);
void json_end_object(struct json_writer *w);
void json_begin_array(struct json_writer *w);
void json_end_array(struct json_writer *w);

// Write a key. Its value must follow.
void json_key(struct json_writer *w, const char *key);

void json_value_u64(struct json_writer *w, uint64_t value); // exact: all digits
void json_value_i64(struct json_writer *w, int64_t value);
void json_value_double(struct json_writer *w, double value); // the shortest text that reads back
                                                             // equal; NaN: null
void json_value_bool(struct json_writer *w, bool value);
void json_value_null(struct json_writer *w);
void json_known_u64(struct json_writer *w, uint64_t value, bool is_known); // else null
void json_value_string(struct json_writer *w, const char *text);           // NULL counts as null
void json_value_string_bytes(struct json_writer *w, const char *text, size_t len);

// Write a key with its value.
void json_key_u64(struct json_writer *w, const char *key, uint64_t value);
void json_key_known_u64(struct json_writer *w, const char *key, uint64_t value, bool is_known);
void json_key_double(struct json_writer *w, const char *key, double value);
void json_key_bool(struct json_writer *w, const char *key, bool value);
void json_key_string(struct json_writer *w, const char *key, const char *text);
void json_key_null(struct json_writer *w, const char *key);

// Write a key and begin its value.
void json_key_object(struct json_writer *w, const char *key);
void json_key_array(struct json_writer *w, const char *key);

// End the document, with a line feed if it is indented, and flush. ERR_IO if the sink ever failed.
enum err json_finish(struct json_writer *w) MUST_USE;
