// SPDX-License-Identifier: MIT
// scratch_folder: a temporary folder for a recording that is not kept. Context: H.
#pragma once

#include <limits.h>

#include "base/err.h"
#include "host/text/strbuf.h"

// Zeroed before use.
struct scratch_folder {
    char path[PATH_MAX];
    struct strbuf recording; // owned; the path of a file in it
};

// Create a folder in TMPDIR or /tmp. Its error, with a sentence.
enum err scratch_folder_make(struct scratch_folder *scratch, struct err_info *info) MUST_USE;

// Remove the folder with the recording in it. Accepts one that was not made.
void scratch_folder_remove(struct scratch_folder *scratch);
