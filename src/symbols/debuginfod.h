// SPDX-License-Identifier: MIT
// debuginfod: asks the servers in $DEBUGINFOD_URLS for debug information, through libdebuginfod.
//
// The library is loaded at the first call and stays loaded; a machine without it simply finds
// nothing. The caller asks the user first: the servers learn which programs he runs. Context: H;
// may wait for the network as long as $DEBUGINFOD_TIMEOUT says.
#pragma once

#include "base/bytes.h"
#include "base/err.h"

// The path, in the library's own cache, of the debug information for `build_id`; the caller frees
// it. ERR_UNSUPPORTED without the library, ERR_NOT_FOUND if no server has it.
enum err debuginfod_fetch(struct bytes build_id, char **out_path) MUST_USE;
