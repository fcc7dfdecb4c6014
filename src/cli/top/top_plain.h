// SPDX-License-Identifier: MIT
// top_plain: the model of `cairn top` as lines of text, for screen readers, pipes and logs.
//
// Each update is a paragraph of sentences and a list, without cursor movements, colours or charts;
// an empty line follows. Counts are exact. Context: H; pure.
#pragma once

#include <stddef.h>
#include <stdio.h>

#include "cli/top/top_model.h"

// Write the model with at most `limit` rows. The caller checks the stream. ERR_NO_MEMORY.
enum err top_plain_write(const struct top_model *model, size_t limit, FILE *out) MUST_USE;
