// SPDX-License-Identifier: MIT
// name_options: the options that say where names are looked for, for every command that opens a
// recording; and what follows from them and from the environment.
//
// The user's cache is used where there is one, and debuginfod's servers are asked where
// DEBUGINFOD_URLS names some. While they are asked there is a line of progress, and Ctrl-C ends the
// asking, not the command; a second Ctrl-C ends that. Context: H; the main thread.
#pragma once

#include <stdbool.h>

#include "base/err.h"
#include "cli/options/options.h"
#include "host/os/progress.h"
#include "symbols/elf/debuginfod.h"
#include "symbols/name_cache.h"
#include "symbols/names/name_sources.h"

// A command has one of these in its fields, zeroed, and name_option_specs as shared options.
struct name_words {
    struct option_word_vec words; // owned
};

enum {
    NAME_OPTION_COUNT = 2
};
extern const struct option_spec name_option_specs[NAME_OPTION_COUNT];

// `field` of `struct fields` as the shared options of a table.
#define NAME_OPTIONS(fields, field)                                          \
    (struct option_group)                                                    \
    {                                                                        \
        name_option_specs, NAME_OPTION_COUNT, offsetof(struct fields, field) \
    }

void name_words_release(struct name_words *words);

DEFINE_VEC(folder_vec, const char *);

// The words turned into sources. It must stay where it is.
struct name_places {
    struct name_sources sources;
    struct folder_vec executable_dirs; // owned; the texts are borrowed
    struct folder_vec debug_dirs;      // the same
    struct name_cache cache;           // owned
    struct debuginfod servers;         // owned
    struct progress progress;
    bool is_catching; // Ctrl-C
};

// `words` may be NULL and must outlive it. ERR_NOT_FOUND with a sentence for a folder that is none.
enum err name_places_init(struct name_places *places,
                          const struct name_words *words,
                          struct err_info *info) MUST_USE;
void name_places_release(struct name_places *places); // accepts a zeroed one
