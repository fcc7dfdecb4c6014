// SPDX-License-Identifier: MIT
// name_options: the options for names and wrappers, for every command that opens a recording. A
// command that shows no call sites has only those for names.
//
// Wrappers (profile/model/wrappers.h) are also named by [report] in the file cairn.toml of the
// working directory:  wrappers = "REGEX".
// The sources follow from the options and from the environment. The user's cache is used if it
// exists. The debuginfod servers in DEBUGINFOD_URLS are asked. Meanwhile a line shows the progress.
// Ctrl-C ends the requests but not the command; a second Ctrl-C ends the command. Context: H; the
// main thread, and the thread that asks the servers, in which SIGINT is blocked (quiet_thread.h).
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "cli/options/options.h"
#include "host/os/progress.h"
#include "host/text/toml.h"
#include "symbols/elf/debuginfod.h"
#include "symbols/name_cache.h"
#include "symbols/names/name_sources.h"

// A command has one of these in its fields, zeroed, and lists name_option_specs as shared options.
struct name_words {
    struct option_word_vec words;
    bool ignores_settings; // those of cairn.toml
};

enum {
    PLACE_OPTION_COUNT = 2, // the first ones: where names are looked for
    NAME_OPTION_COUNT = 3
};
extern const struct option_spec name_option_specs[NAME_OPTION_COUNT];

// The shared options of a table, for `field` of `struct fields`.
#define NAME_OPTIONS(fields, field)                                          \
    (struct option_group)                                                    \
    {                                                                        \
        name_option_specs, NAME_OPTION_COUNT, offsetof(struct fields, field) \
    }

DEFINE_VEC(folder_vec, const char *);

#define PLACE_OPTIONS(fields, field)                                          \
    (struct option_group)                                                     \
    {                                                                         \
        name_option_specs, PLACE_OPTION_COUNT, offsetof(struct fields, field) \
    }

// The sources that the words name. It must not move.
struct name_places {
    struct name_sources sources;
    struct folder_vec executable_dirs; // owned; the texts are borrowed
    struct folder_vec debug_dirs;      // owned; the texts are borrowed
    struct folder_vec wrappers;        // owned; the texts are borrowed
    struct toml settings;              // owned; of the file cairn.toml
    struct name_cache cache;           // owned
    struct debuginfod servers;         // owned
    struct progress progress;
    bool awaits_interrupts; // the command has blocked SIGINT, and reads it from a descriptor
    bool is_catching;       // the handler of Ctrl-C is installed
    uint64_t asked_ms;      // when the current request began; CLOCK_MONOTONIC
    bool has_said;          // that it takes long, where no progress is shown
};

// Fill in `places`. A command that waits for SIGINT itself has blocked it before. `words` may be
// NULL and must outlive it. Return ERR_NOT_FOUND with a sentence if a folder does not exist,
// ERR_INVALID for a malformed expression or cairn.toml.
enum err name_places_init(struct name_places *places,
                          const struct name_words *words,
                          struct err_info *info) MUST_USE;
void name_places_release(struct name_places *places); // accepts a zeroed one
