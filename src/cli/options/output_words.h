// SPDX-License-Identifier: MIT
// output_words: the options for the amount and the form of the output, for the commands that print
// call sites with their stacks: report and diff.
//
// A command has a struct output_words called `output` in its fields, and lists the options of this
// file among its own. Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include "cli/options/command.h"
#include "cli/options/options.h"

#define OUTPUT_UNSET UINT32_MAX

struct output_words {
    uint32_t site_limit;  // OUTPUT_UNSET: the command's default
    uint32_t stack_limit; // OUTPUT_UNSET: the command's default
    uint32_t depth_limit;
    uint32_t width; // 0: of the terminal
    bool use_json;
    bool use_csv;
    bool use_full_names;
    bool no_color;
};

enum {
    OUTPUT_WIDTH_MAX = 10000,
    OUTPUT_STACKS_IN_JSON = 100, // a call site may have a million stacks, and each is long
};

#define OUTPUT_DEFAULTS                                                            \
    {                                                                              \
        .site_limit = OUTPUT_UNSET, .stack_limit = OUTPUT_UNSET, .depth_limit = 24 \
    }

// Return the number of stacks per call site; `in_text` is the default in text.
static inline uint32_t output_stack_limit(const struct output_words *words, uint32_t in_text)
{
    return words->stack_limit != OUTPUT_UNSET ? words->stack_limit
           : words->use_json                  ? (uint32_t)OUTPUT_STACKS_IN_JSON
                                              : in_text;
}

// Return the maximum of lines; `in_text` is the default in text and JSON.
static inline uint32_t output_site_limit(const struct output_words *words, uint32_t in_text)
{
    const uint32_t by_default = words->use_csv ? 0 : in_text;
    return words->site_limit != OUTPUT_UNSET ? words->site_limit : by_default;
}

// Return the columns of a line on standard output.
static inline unsigned output_width(const struct output_words *words)
{
    return words->width != 0 ? words->width : command_width(STDOUT_FILENO);
}

// Check the options of the form, also against each other.
static inline MUST_USE enum err output_words_check(const struct output_words *words,
                                                   struct err_info *info)
{
    if (words->width != 0 &&
        (words->width < COMMAND_WIDTH_MIN || words->width > OUTPUT_WIDTH_MAX)) {
        return err_set(info, ERR_INVALID, "--width must be between %d and %d", COMMAND_WIDTH_MIN,
                       OUTPUT_WIDTH_MAX);
    }
    return words->use_csv && words->use_json
               ? err_set(info, ERR_INVALID, "--csv and --json cannot be combined")
               : ERR_OK;
}

#define OUTPUT_FIELD(fields, field) \
    (offsetof(struct fields, output) + offsetof(struct output_words, field))

#define OUTPUT_OPTION_LIMIT(fields, words) \
    OPTION('n', "limit", COUNT, "N", OUTPUT_FIELD(fields, site_limit), words)
#define OUTPUT_OPTION_STACKS(fields, words) \
    OPTION('s', "stacks", COUNT, "N", OUTPUT_FIELD(fields, stack_limit), words)
#define OUTPUT_OPTION_MAX_DEPTH(fields)                                   \
    OPTION(0, "max-depth", COUNT, "N", OUTPUT_FIELD(fields, depth_limit), \
           "maximum frames per stack in the text; 0: all (default: 24)")
#define OUTPUT_OPTION_JSON(fields)                                \
    OPTION(0, "json", FLAG, NULL, OUTPUT_FIELD(fields, use_json), \
           "write JSON (docs/format/json.md)")
#define OUTPUT_OPTION_CSV(fields, what)                         \
    OPTION(0, "csv", FLAG, NULL, OUTPUT_FIELD(fields, use_csv), \
           "write " what " as CSV (RFC 4180), with all lines unless -n is given")
#define OUTPUT_OPTION_FULL_NAMES(fields, more)                                \
    OPTION(0, "full-names", FLAG, NULL, OUTPUT_FIELD(fields, use_full_names), \
           "do not shorten function names and paths" more)
#define OUTPUT_OPTION_WIDTH(fields)                             \
    OPTION(0, "width", COUNT, "N", OUTPUT_FIELD(fields, width), \
           "columns of a line (default: the terminal's, else COLUMNS, else 80)")
#define OUTPUT_OPTION_NO_COLOR(fields)                                \
    OPTION(0, "no-color", FLAG, NULL, OUTPUT_FIELD(fields, no_color), \
           "no colours, even on a terminal (also: NO_COLOR)")
