// SPDX-License-Identifier: MIT
// program_api: the table that include/cairn.h looks up by this name. Context: T.
#pragma once

#include <cairn.h>

#include "base/compiler.h"

EXPORT extern const struct cairn_api cairn_api_v1;
