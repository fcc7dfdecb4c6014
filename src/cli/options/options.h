// SPDX-License-Identifier: MIT
// options: tables describe the options of a command. The tables are parsed with getopt_long and
// printed as help.
//
// A command lists its options as `struct option_spec`. Each one names the field of the command's
// struct that takes its value. Options end at the first operand, so that the options of the program
// stay its own. After parsing, the operands are argv[*first_operand ..]. Every command also has -h,
// --help and --no-config. Failure: a sentence that names the option and the expected value.
// Context: H. getopt's state is global, so only one thread may parse.
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
    OPTION_NAME,        // const char *: the same, and not empty: of a file or a directory
    OPTION_COUNT,       // uint32_t: a whole number of at least `minimum`
    OPTION_DURATION_MS, // uint64_t: "10", "2.5s", "500ms", "1m", "1h"; seconds without a unit
    OPTION_CHOICE,      // const char *: one of `choices`
    OPTION_REGEX,       // const char *: a POSIX extended regular expression
    OPTION_COST,        // enum cost: by its name
    OPTION_SIZE,        // uint64_t: bytes: "4096", "64KiB"
    OPTION_PERCENT,     // uint64_t: in hundredths of a percent: "5%", "0.5"
    OPTION_SIZE_RANGE,  // struct value_range: "64..4096", "1KiB..", of bytes
    OPTION_TIME_RANGE,  // struct value_range: "500ms..2s", of durations
    OPTION_EACH,        // struct option_word_vec: every use is kept, in the order of the line
    OPTION_REFUSED,     // rejected; `help` is the sentence with the reason
};

struct option_spec {
    char letter;      // 0: none
    const char *name; // without the two dashes
    enum option_kind kind;
    const char *value;          // name of the value in the help, NULL for flags
    const char *when_alone;     // value of --name without "=VALUE"; NULL: a value must follow
    const char *help;           // one or more lines of words; the help wraps them
    size_t offset;              // of the field in the command's struct
    uint32_t minimum;           // for OPTION_COUNT
    const char *const *choices; // for OPTION_CHOICE, ended by NULL
    bool is_hidden;             // accepted, but not listed in the help
    const char *group;          // title in the help, of this option and those behind it; NULL: none
};

// An entry of a table: letter (0: none), name, the kind without OPTION_, name of the value (NULL
// for a flag), offset of the field, help. Other members may follow: .minimum = 1.
#define OPTION(short_name, long_name, of_kind, word, at, sentence, ...)                         \
    {                                                                                           \
        .letter = (short_name), .name = (long_name), .kind = OPTION_##of_kind, .value = (word), \
        .offset = (at), .help = (sentence), __VA_ARGS__                                         \
    }

enum {
    OPTION_GROUPS_MAX = 3
};

// Options that several commands share. Their offsets are in a struct of their own, which is at
// `offset` in the struct of each command.
struct option_group {
    const struct option_spec *specs;
    size_t count;
    size_t offset;
};

struct option_table {
    const struct option_spec *specs;
    size_t count;
    struct option_group shared[OPTION_GROUPS_MAX]; // listed after the command's own options
    bool follows_operands;                         // options may also follow operands
};

// One use of an OPTION_EACH.
struct option_word {
    const struct option_spec *spec; // borrowed
    const char *text;               // borrowed from argv
};

DEFINE_VEC(option_word_vec, struct option_word);

enum options_outcome {
    OPTIONS_OK,
    OPTIONS_HELP,  // -h or --help was given
    OPTIONS_WRONG, // `info` has the reason
};

// Parse argv[1..argc) into `fields`, which holds the defaults.
enum options_outcome options_parse(struct option_table table,
                                   int argc,
                                   char **argv,
                                   void *fields,
                                   int *first_operand,
                                   struct err_info *info) MUST_USE;

// Release what options_parse has put into `fields`.
void options_release(struct option_table table, void *fields);

// A mistake of a command line that the tables do not know, such as two options that exclude each
// other.
struct mistake {
    bool is_made;
    const char *sentence;
};

// Return ERR_INVALID with the sentence of the first mistake that is made.
enum err mistakes_check(const struct mistake *mistakes, size_t count, struct err_info *info)
    MUST_USE;

// The options of a table, shared ones included: their number, and the one at `index` below that.
size_t options_count(struct option_table table);
const struct option_spec *options_at(struct option_table table, size_t index);

// Return the option of that name, or NULL.
const struct option_spec *options_find(struct option_table table, const char *name);

// Check an option of the table with its value (NULL: none) as options_parse would, without a field.
enum err
options_check(struct option_table table, const char *name, const char *value, struct err_info *info)
    MUST_USE;

// Whether --no-config is among the options of argv[1..argc).
bool options_refuse_config(struct option_table table, int argc, char **argv);

// The options of every command; NULL ends the list.
extern const struct option_spec *const options_of_all[];

// Print the table as help, wrapped at 80 columns.
void options_print(struct option_table table, FILE *out);
