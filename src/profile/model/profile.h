// SPDX-License-Identifier: MIT
// profile: one recording, ready for questions. The only place that computes; every face asks here.
//
//   recording
//       | profile_take_recording()
//       v
//   struct profile
//       | profile_select(filter)
//       v
//   struct selection --> totals, call_sites, call_tree, groups, timeline
//
// Making one gives names to frames that have none yet (a checkpoint's have not) and indexes code
// (code_index.h). Files are opened by formats/import/input_file.h, which knows what they can be.
// After that a profile never changes: any number of threads may ask.
// Answers own their memory and borrow from the profile; they are valid until it is closed.
// Failure: said in err_info; of a file that was damaged, `damage` says what is missing.
// Context: H.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "host/os/progress.h"
#include "profile/model/code_index.h"
#include "profile/model/cost.h"
#include "profile/model/deferred_symbols.h"
#include "profile/model/process_lives.h"
#include "recording/format/tables.h"
#include "recording/read/recording_reader.h"

struct profile {
    struct recording recording;   // owned if it was opened, else it borrows
    struct code_index code;       // owned
    struct deferred_symbols late; // owned; empty for a recording that has its symbols
    struct process_lives lives;   // owned
    bool owns_recording;
    char damage[512]; // a sentence on what the file lacks, "" for a whole one
};

// A profile of what was read from a file. It takes the recording, which is then zeroed, but leaves
// it on failure. `result` says what the file lacked; `sources`, where names may come from beside
// the standard places, and `progress` may be NULL. ERR_NO_MEMORY.
enum err profile_take_recording(struct recording *recording,
                                const struct recording_open_result *result,
                                const struct name_sources *sources,
                                struct progress *progress,
                                struct profile **out,
                                struct err_info *info) MUST_USE;

// A profile of a recording in memory, which must obey the invariants of tables.h and outlive it.
enum err profile_from_recording(const struct recording *recording,
                                const struct name_sources *sources,
                                struct progress *progress,
                                struct profile **out,
                                struct err_info *info) MUST_USE;

void profile_close(struct profile *profile);
void profile_closep(struct profile **profile); // for CLEANUP

// A string of the recording. Never NULL.
const char *profile_string(const struct profile *profile, rec_string id);

// The state of the recording: "running", "finished", "stopped" or "unknown".
const char *profile_state_name(const struct profile *profile);

// Where a module's names came from, and what would give better ones; "" if there is nothing to say.
// `module` is an index in the recording.
const char *profile_module_source(const struct profile *profile, uint32_t module);
const char *profile_module_advice(const struct profile *profile, uint32_t module);

// What its names lack, as far as it was looked for when the recording was opened; else
// SYMBOL_GAP_NOT_RESOLVED.
enum symbol_gap profile_module_gap(const struct profile *profile, uint32_t module);

// Whether the recording's source knew what this cost is made of. What it did not is 0, or follows
// from what it did, and is not to be shown as a figure. Recordings of our own know everything.
bool profile_knows(const struct profile *profile, enum cost cost);

// The process of a row.
uint32_t profile_process_of_row(const struct profile *profile, uint32_t row);

// The parts of a location. `location` must come from this profile. Texts are never NULL; those that
// are not known are "".
const char *profile_location_function(const struct profile *profile, uint32_t location);
const char *profile_location_file(const struct profile *profile, uint32_t location);
const char *profile_location_module(const struct profile *profile, uint32_t location); // its path
const struct code_location *profile_location_get(const struct profile *profile, uint32_t location);

// Where a stack's allocations are attributed: its innermost location that is not wrapper_frames, or
// the innermost of all if every one is. REC_NONE for the root, which has no location.
struct call_site_location {
    uint32_t location;
    uint32_t frame; // of the recording
    bool is_inlined;
};
struct call_site_location profile_call_site(const struct profile *profile, uint32_t node);
