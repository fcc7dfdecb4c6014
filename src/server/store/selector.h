// SPDX-License-Identifier: MIT
// selector: reads the part of Prometheus' query language that names series.
//
//   name    name{label="text",other!="text",third=~"expression",fourth!~"expression"}    {...}
//
// Strings are in double quotes, single quotes or backquotes, with the escapes of Go that texts
// need: \\ \" \' \n \t \r. Expressions match the whole value. Operators, functions and ranges are
// refused with a sentence. Context: H; pure. Trust: the text is hostile, and has at most
// SELECTOR_TEXT_MAX bytes.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "host/text/strbuf.h"
#include "profile/select/name_regex.h"

enum {
    SELECTOR_TEXT_MAX = 4096,
    SELECTOR_MATCHERS_MAX = 16,
};

struct matcher {
    struct strbuf label; // owned
    struct strbuf value; // owned
    bool is_regex;
    bool is_negated;
    struct name_regex regex; // owned; of `value`, anchored
};

struct selector {
    struct matcher matchers[SELECTOR_MATCHERS_MAX]; // the name is a matcher of __name__
    size_t count;
};

// Read a selector. ERR_INVALID, ERR_LIMIT with a sentence.
enum err selector_parse(const char *text, struct selector *out, struct err_info *info) MUST_USE;
void selector_release(struct selector *selector); // accepts a zeroed one

// Whether a label with this value is selected. A label that a series has not is "".
bool selector_takes(struct selector *selector, const char *label, const char *value);

// Return the text that a label must equal; "" if no matcher says so.
const char *selector_equal(const struct selector *selector, const char *label);
