// SPDX-License-Identifier: MIT
// exporter: a profile in the words of another tool.
//
// Each format is one file, export_<name>.c, with one const struct exporter; exporter.c lists them.
// All of them write the same view of a profile: the selected rows, their top-down tree by location,
// and what was asked for. Exporters only write, src/profile computes, so that the totals of every
// export are those of `cairn report` with the same filter. What the selection does not know
// (selection_knows) is no 0: a format without which it means nothing is refused, and a writer
// leaves the rest out. Failure: a writer returns ERR_NO_MEMORY and what src/profile returns; a
// stream that cannot be written to keeps its error, which whoever closes it finds. Trust: names in
// a recording are hostile, so each writer keeps them from being read as its format's syntax.
// Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "formats/codec/packed_stream.h"
#include "profile/calls/call_tree.h"
#include "profile/model/cost.h"
#include "profile/model/profile.h"
#include "profile/select/filter.h"

// Which live blocks a format with one figure for them means.
enum export_moment {
    EXPORT_AT_PEAK,
    EXPORT_AT_END,
    EXPORT_AT_ANY, // none was named: the peak if it is known
};

struct exporter;

// What is wanted.
struct export_request {
    const struct exporter *exporter;
    enum cost cost; // COST_COUNT: none was named
    enum export_moment moment;
    enum packing packing; // as the name of the output asks for
};

struct export_view {
    const char *path;              // borrowed; of the recording, as it was given
    const struct profile *profile; // borrowed
    const struct filter *filter;   // borrowed; what `selection` comes from
    struct selection selection;    // owned
    struct call_tree tree;         // owned; top-down, by location, added up
    enum cost cost;                // COST_COUNT: none was named
    enum cost usual_cost;          // that, or the first known one of those that people ask for
    enum export_moment moment;     // at the peak or at the end
    enum packing packing;          // of a format that is packed
};

enum export_uses {
    EXPORT_USES_COST = 1 << 0,   // --cost means something to it
    EXPORT_USES_MOMENT = 1 << 1, // --at does
    EXPORT_USES_SERIES = 1 << 2, // it is a series over time
    EXPORT_USES_SLICES = 1 << 3, // and nothing without one
    EXPORT_USES_EVENTS = 1 << 4, // it is of the events that the program reported, and nothing else
};

struct exporter {
    const char *name;
    const char *file_suffix; // with its dot
    bool goes_by_name;       // its readers tell by .gz or .zst how a file is packed
    const char *help;        // one line: what reads it, and what is in it
    bool is_binary;          // not for terminals
    uint32_t uses;           // enum export_uses
    uint32_t needs;          // bit n: without enum cost n the format says nothing
    enum err (*write)(const struct export_view *view, FILE *out);
};

// The exporters, ended by NULL.
extern const struct exporter *const exporters[];

// The exporter of that name, NULL if there is none.
const struct exporter *exporter_find(const char *name);

// Selects and adds up. Errors as of profile_select, ERR_UNSUPPORTED if what was asked for is not
// known, or ERR_NO_MEMORY, each with a sentence.
enum err export_view_build(const struct profile *profile,
                           const struct filter *filter,
                           const struct export_request *request,
                           struct export_view *out,
                           struct err_info *info) MUST_USE;
void export_view_release(struct export_view *view);
