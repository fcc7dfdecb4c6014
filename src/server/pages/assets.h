// SPDX-License-Identifier: MIT
// assets: the viewer's files, compiled into the executable in compressed form.
//
// The table is made by CMake from web/dist (cmake/embed_assets.cmake). Context: H; static.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct asset {
    const char *path;     // as requested: "/index.html"
    const char *type;     // of its contents, for Content-Type
    const char *hash;     // of its contents, hexadecimal: the beginning of sha256
    const char *sha256;   // the same, whole
    const uint8_t *begin; // gzip
    const uint8_t *end;
};

// Ended by an entry without a path.
extern const struct asset asset_table[];

// The asset that answers a request's target, which may have a query; "/" is "/index.html". NULL if
// there is none.
const struct asset *asset_find(const char *target);
