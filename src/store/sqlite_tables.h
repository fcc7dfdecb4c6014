// SPDX-License-Identifier: MIT
// sqlite_tables: the tables of a store in one file: made, checked, and brought to this version.
//
// A file is taken for a store only by its application id. Context: H. Failure: a sentence.
#pragma once

#include "store/engine.h"

// Check that the file at `path` is a store of this version. An older one gets what this version
// has, or views of this connection if it is read-only. An empty one becomes a store if `creates`.
enum err sqlite_tables_check(struct store *engine,
                             const char *path,
                             bool is_read_only,
                             bool creates,
                             struct err_info *info) MUST_USE;
