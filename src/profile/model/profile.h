// SPDX-License-Identifier: MIT
// profile: one recording in memory, ready for queries. It alone computes; every face queries it.
//
//   recording
//       | profile_take_recording()
//       v
//   struct profile
//       | profile_select(filter)
//       v
//   struct selection --> totals, call_sites, call_tree, groups, timeline
//
// Creation names the frames that have no name yet, as those of a checkpoint, and indexes the code
// (code_index.h). formats/import/input_file.h opens files of all formats.
// A profile never changes after creation, so any number of threads may query it.
// Answers own their memory and borrow from the profile; they are valid until it is closed.
// Failure: err_info has the sentence; `damage` lists what a damaged file lacks.
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
#include "profile/model/wrappers.h"
#include "recording/format/tables.h"
#include "recording/read/recording_reader.h"

// The sides of a comparison; a single recording is SIDE_NEW.
enum side {
    SIDE_NEW,
    SIDE_OLD,
    SIDE_COUNT,
};

struct profile {
    struct recording recording;   // owned if it was taken, else borrowed
    struct code_index code;       // owned
    struct deferred_symbols late; // owned; empty for a recording with symbols
    struct process_lives lives;   // owned
    struct wrapper_vec wrappers;  // owned; functions that are wrappers here, but not by name
    bool owns_recording;
    char damage[512]; // a sentence on what the file lacks, "" if it is whole
};

// Create a profile of a recording that was read from a file. It takes the recording and zeroes it;
// on failure the caller keeps it. `result` says what the file lacks. `sources` are name sources in
// addition to the standard places; they and `progress` may be NULL. ERR_NO_MEMORY.
enum err profile_take_recording(struct recording *recording,
                                const struct recording_open_result *result,
                                const struct name_sources *sources,
                                struct progress *progress,
                                struct profile **out,
                                struct err_info *info) MUST_USE;

// Create a profile of a borrowed recording, which must obey the invariants of tables.h and outlive
// it.
enum err profile_from_recording(const struct recording *recording,
                                const struct name_sources *sources,
                                struct progress *progress,
                                struct profile **out,
                                struct err_info *info) MUST_USE;

void profile_close(struct profile *profile);
void profile_closep(struct profile **profile); // for CLEANUP

// A string of the recording. Never NULL.
const char *profile_string(const struct profile *profile, rec_string id);

// The path of a module of the recording; "" for REC_NONE, code outside any file.
const char *profile_module_path(const struct profile *profile, uint32_t module);

// The state of the recording: "running", "finished", "stopped" or "unknown".
const char *profile_state_name(const struct profile *profile);

// Whether a process had ended when the recording did, and whether all had. Otherwise the leaked
// costs count what is live, and may still be freed.
bool profile_process_has_ended(const struct profile *profile, uint32_t process);
bool profile_has_ended(const struct profile *profile);

// A cost as the recording needs it called: the leaked ones are live if a process still runs.
struct cost_info profile_cost_info(const struct profile *profile, enum cost cost);

// Where a module's names came from, and what would give better ones; "" if unknown. `module` is an
// index in the recording.
const char *profile_module_source(const struct profile *profile, uint32_t module);
const char *profile_module_advice(const struct profile *profile, uint32_t module);

// Which names the module lacks, as found when the recording was opened, else
// SYMBOL_GAP_NOT_RESOLVED.
enum symbol_gap profile_module_gap(const struct profile *profile, uint32_t module);

// Whether the recording's source measured this cost. A cost that it did not measure is 0 or
// derived, and must not be shown as a figure. Recordings of cairn know every cost.
bool profile_knows(const struct profile *profile, enum cost cost);

// The costs that are unknown: bit n for enum cost n.
uint32_t profile_unknown_costs(const struct profile *profile);

// The process of a row.
uint32_t profile_process_of_row(const struct profile *profile, uint32_t row);

// The parts of a location. `location` must come from this profile. Texts are never NULL; unknown
// ones are "".
const char *profile_location_function(const struct profile *profile, uint32_t location);
const char *profile_location_file(const struct profile *profile, uint32_t location);
const char *profile_location_module(const struct profile *profile, uint32_t location); // its path
const struct code_location *profile_location_get(const struct profile *profile, uint32_t location);

// The call site of a stack (wrappers.h). REC_NONE for the root, which has no location.
struct call_site_location profile_call_site(const struct profile *profile, uint32_t node);

// Whether the location only passes allocations on.
static inline bool profile_is_wrapper(const struct profile *profile, uint32_t location)
{
    return (profile->code.locations.items[location].flags & CODE_WRAPPER) != 0;
}

// The function at a location: id in the code index.
static inline uint32_t profile_function_at(const struct profile *profile, uint32_t location)
{
    return profile->code.locations.items[location].function;
}
