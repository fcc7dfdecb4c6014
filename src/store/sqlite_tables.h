// SPDX-License-Identifier: MIT
// sqlite_tables: the tables of a store in one file: made, checked, and brought to this version.
//
// A file is taken for a store only by its application id. Context: H. Failure: a sentence.
#pragma once

#include "store/engine.h"

// Check that the file at `path` is a store of this version. One of version 1, which 1.0.0 wrote,
// gets what this one has. An empty one becomes a store if `creates`.
enum err
sqlite_tables_check(struct store *engine, const char *path, bool creates, struct err_info *info)
    MUST_USE;
