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

#include "cli/options/options.h"

#define OUTPUT_UNSET UINT32_MAX

struct output_words {
    uint32_t site_limit;  // OUTPUT_UNSET: the command's default
    uint32_t stack_limit; // OUTPUT_UNSET: the command's default
    uint32_t depth_limit;
    bool use_json;
    bool use_csv;
    bool use_full_names;
    bool no_color;
};

enum {
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

// Check the options of the form against each other.
static inline MUST_USE enum err output_words_check(const struct output_words *words,
                                                   struct err_info *info)
{
    return words->use_csv && words->use_json
               ? err_set(info, ERR_INVALID, "--csv and --json cannot be combined")
               : ERR_OK;
}

#define OUTPUT_FIELD(fields, field) \
    (offsetof(struct fields, output) + offsetof(struct output_words, field))

#define OUTPUT_OPTION_LIMIT(fields, words)                                                   \
    {                                                                                        \
        .letter = 'n', .name = "limit", .kind = OPTION_COUNT, .value = "N", .help = (words), \
        .offset = OUTPUT_FIELD(fields, site_limit)                                           \
    }
#define OUTPUT_OPTION_STACKS(fields, words)                                                   \
    {                                                                                         \
        .letter = 's', .name = "stacks", .kind = OPTION_COUNT, .value = "N", .help = (words), \
        .offset = OUTPUT_FIELD(fields, stack_limit)                                           \
    }
#define OUTPUT_OPTION_MAX_DEPTH(fields)                                       \
    {                                                                         \
        .name = "max-depth", .kind = OPTION_COUNT, .value = "N",              \
        .help = "maximum frames per stack in the text; 0: all (default: 24)", \
        .offset = OUTPUT_FIELD(fields, depth_limit)                           \
    }
#define OUTPUT_OPTION_JSON(fields, document)                                                  \
    {                                                                                         \
        .name = "json", .kind = OPTION_FLAG, .help = "write JSON (docs/format/" document ")", \
        .offset = OUTPUT_FIELD(fields, use_json)                                              \
    }
#define OUTPUT_OPTION_CSV(fields, what)                                                \
    {                                                                                  \
        .name = "csv", .kind = OPTION_FLAG,                                            \
        .help = "write " what " as CSV (RFC 4180), with all lines unless -n is given", \
        .offset = OUTPUT_FIELD(fields, use_csv)                                        \
    }
#define OUTPUT_OPTION_FULL_NAMES(fields, more)                  \
    {                                                           \
        .name = "full-names", .kind = OPTION_FLAG,              \
        .help = "do not shorten function names and paths" more, \
        .offset = OUTPUT_FIELD(fields, use_full_names)          \
    }
#define OUTPUT_OPTION_NO_COLOR(fields)                             \
    {                                                              \
        .name = "no-color", .kind = OPTION_FLAG,                   \
        .help = "no colours, even on a terminal (also: NO_COLOR)", \
        .offset = OUTPUT_FIELD(fields, no_color)                   \
    }
