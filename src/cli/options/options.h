// SPDX-License-Identifier: MIT
// options: command lines described by tables, parsed with getopt_long, explained from the same
// tables.
//
// A command lists its options as `struct option_spec`; each says where its value goes in the
// command's own struct. Options end at the first operand, so that a program's own options stay its
// own; after parsing, the operands are argv[*first_operand ..]. Every command also knows -h and
// --help. Failure: a sentence that names the option and says what was expected. Context: H;
// getopt's state is global, so one thread at a time.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "cli/options/option_values.h"
#include "host/containers/vec.h"

enum option_kind {
    OPTION_FLAG,        // bool: becomes true
    OPTION_TEXT,        // const char *: borrowed from argv
    OPTION_COUNT,       // uint32_t: a whole number of at least `minimum`
    OPTION_DURATION_MS, // uint64_t: "10", "2.5s", "500ms", "1m", "1h"; seconds without a unit
    OPTION_CHOICE,      // const char *: one of `choices`
    OPTION_REGEX,       // const char *: a POSIX extended regular expression
    OPTION_COST,        // enum cost: by its name
    OPTION_SIZE,        // uint64_t: bytes: "4096", "64KiB"
    OPTION_PERCENT,     // uint64_t: in hundredths of a percent: "5%", "0.5"
    OPTION_SIZE_RANGE,  // struct value_range: "64..4096", "1KiB..", of bytes
    OPTION_TIME_RANGE,  // struct value_range: the same of durations
    OPTION_EACH,        // struct option_word_vec: every one is kept, in the order of the line
    OPTION_REFUSED,     // `help` is the sentence that says why
};

struct option_spec {
    char letter;      // 0: none
    const char *name; // without the two dashes
    enum option_kind kind;
    const char *value;          // what the value is called in the help, NULL for flags
    const char *help;           // one or more lines' worth of words; wrapped by the help
    size_t offset;              // of the field in the command's struct
    uint32_t minimum;           // for OPTION_COUNT
    const char *const *choices; // for OPTION_CHOICE, ended by NULL
    bool is_hidden;             // accepted, but not in the help
};

enum {
    OPTION_GROUPS_MAX = 2
};

// Options that several commands have: their offsets count from a struct of their own, which lies at
// `offset` in each command's.
struct option_group {
    const struct option_spec *specs;
    size_t count;
    size_t offset;
};

struct option_table {
    const struct option_spec *specs;
    size_t count;
    struct option_group shared[OPTION_GROUPS_MAX]; // listed behind the command's own
    bool follows_operands;                         // options may also stand after operands
};

// One use of an OPTION_EACH.
struct option_word {
    const struct option_spec *spec; // borrowed
    const char *text;               // borrowed from argv
};

DEFINE_VEC(option_word_vec, struct option_word); // the command releases it

enum options_outcome {
    OPTIONS_OK,
    OPTIONS_HELP,  // -h or --help was among them
    OPTIONS_WRONG, // `info` says what
};

// Parses argv[1..argc) into `fields`, which holds the defaults.
enum options_outcome options_parse(struct option_table table,
                                   int argc,
                                   char **argv,
                                   void *fields,
                                   int *first_operand,
                                   struct err_info *info) MUST_USE;

// Prints the table for people, wrapped at 80 columns.
void options_print(struct option_table table, FILE *out);
