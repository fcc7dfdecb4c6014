// SPDX-License-Identifier: MIT
// exporter: write a profile in the format of another tool.
//
// Each format is one file, export_<name>.c, with one const struct exporter; exporter.c lists them.
// All of them write the same view of a profile: the selected rows, their top-down tree by location,
// and the request. Formats whose readers draw stacks have the frames of `cairn report --tree`,
// unless the request shows wrappers; the others have every frame. Exporters only write and
// src/profile computes, so the totals of every export equal those of `cairn report` with the same
// filter. A figure that the selection does not know (selection_knows) is never written as 0: a
// format that needs it is refused, and other writers omit it. Failure: a writer returns
// ERR_NO_MEMORY or an error of src/profile; an unwritable stream keeps its error for the code that
// closes it. Trust: names in a recording are hostile, so each writer keeps them from acting as
// syntax of its format.
// Context: H.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "formats/codec/packed_stream.h"
#include "formats/export/exporter.h"
#include "host/text/strbuf.h"
#include "profile/calls/call_tree.h"
#include "profile/compare/row_changes.h"
#include "profile/model/cost.h"
#include "profile/model/profile.h"
#include "profile/select/filter.h"

// The live blocks for a format with one live figure.
enum export_moment {
    EXPORT_AT_PEAK,
    EXPORT_AT_END,
    EXPORT_AT_ANY, // unspecified: the peak if it is known
};

struct exporter;

// What becomes of a row in a profile for a collector with limits.
enum export_fate {
    EXPORT_ALONE,    // a sample of its own
    EXPORT_IN_OTHER, // a part of the sample [other]
    EXPORT_NOWHERE,  // a part of another profile
};

// What was allocated between two checkpoints of one run, for collectors that add profiles up.
struct export_changes {
    struct row_change_vec rows; // owned by the caller; by row of the recording
    struct flag_vec fates;      // owned by the caller; enum export_fate by row; empty: all alone
    uint64_t from_unix_ns;
    uint64_t until_unix_ns;
};

// How large a written profile is.
struct export_size {
    size_t sample_count;
    size_t other_count; // rows that are in [other]
    uint64_t unpacked_bytes;
};

// Appends labels of a process that exists, in the syntax of Prometheus, each after a comma.
typedef void export_append_labels(uint32_t pid, struct strbuf *out);

// The options of an export.
struct export_request {
    const struct exporter *exporter;
    enum cost cost; // COST_COUNT: unspecified
    enum export_moment moment;
    enum packing packing;                 // from the suffix of the output's name
    bool shows_wrappers;                  // for a format that folds them
    bool is_now;                          // the state of a program that runs, for collectors
    const struct export_changes *changes; // with is_now, for pprof: allocations since then; or NULL
    struct export_size *size;             // for pprof: set when it is written; or NULL
    export_append_labels *append_labels;  // for prometheus; NULL: there are no more
};

struct export_view {
    const char *path;                     // borrowed; path of the recording, as given
    const struct profile *profile;        // borrowed
    const struct filter *filter;          // borrowed; source of `selection`
    struct selection selection;           // owned
    struct call_tree tree;                // owned; top-down, by location, with inclusive costs;
                                          // empty for an exporter that is flat
    enum call_tree_frames frames;         // which ones trees of the export have
    enum cost cost;                       // COST_COUNT: unspecified
    enum cost usual_cost;                 // `cost`, or the first known default cost
    enum export_moment moment;            // at the peak or at the end
    enum packing packing;                 // for a format that may be packed
    const struct export_changes *changes; // borrowed; NULL: allocations since the start
    struct export_size *size;             // borrowed; may be NULL
    export_append_labels *append_labels;  // may be NULL
    bool is_now; // blocks of ended processes are not in use; the time is that of the checkpoint
};

enum export_uses {
    EXPORT_USES_COST = 1 << 0,    // it uses --cost
    EXPORT_USES_MOMENT = 1 << 1,  // it uses --at
    EXPORT_USES_SERIES = 1 << 2,  // it contains a series over time
    EXPORT_USES_SLICES = 1 << 3,  // it needs a series over time
    EXPORT_USES_EVENTS = 1 << 4,  // it contains the program's own events and nothing else
    EXPORT_JUDGES_LEAKS = 1 << 5, // it leaves out leaks by rules, as cairn report does
    EXPORT_FOLDS = 1 << 6,        // it folds wrapper frames, as cairn report does
};

struct exporter {
    const char *name;
    const char *file_suffix; // with the dot
    bool goes_by_name;       // its readers detect the packing by .gz or .zst
    const char *help;        // one line: its readers and its content
    bool is_binary;          // unsuitable for terminals
    bool is_flat;            // it needs no tree, which is large
    uint32_t uses;           // enum export_uses
    uint32_t needs;          // bit n: the format needs enum cost n
    enum err (*write)(const struct export_view *view, FILE *out);
};

// Write the view in its format. ERR_NO_MEMORY also if memory ended anywhere since memory_end_forget
// (host/containers/memory_end.h): exporters need not hand it on.
enum err export_write(const struct exporter *exporter, const struct export_view *view, FILE *out)
    MUST_USE;

// Select the rows and build the tree. Fails as profile_select does, with ERR_UNSUPPORTED if a
// requested figure is unknown, or with ERR_NO_MEMORY, each with a sentence.
enum err export_view_build(const struct profile *profile,
                           const struct filter *filter,
                           const struct export_request *request,
                           struct export_view *out,
                           struct err_info *info) MUST_USE;
void export_view_release(struct export_view *view);

extern const struct exporter exporter_folded;
extern const struct exporter exporter_heaptrack;
extern const struct exporter exporter_perfetto;
extern const struct exporter exporter_pprof;
extern const struct exporter exporter_prometheus;
extern const struct exporter exporter_sarif;
extern const struct exporter exporter_speedscope;
extern const struct exporter exporter_massif;
extern const struct exporter exporter_dhat;
extern const struct exporter exporter_dhat_adhoc;
extern const struct exporter exporter_callgrind;
extern const struct exporter exporter_csv;
extern const struct exporter exporter_json;
extern const struct exporter exporter_sqlite;
extern const struct exporter exporter_svg;

// All exporters, ended by NULL.
extern const struct exporter *const exporters[];

// Return the exporter of that name, NULL if there is none.
const struct exporter *exporter_find(const char *name);
