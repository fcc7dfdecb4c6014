// SPDX-License-Identifier: MIT
// assets: the viewer's files, compressed and compiled into the executable.
//
// CMake makes the table from web/dist (cmake/embed_assets.cmake). Context: H; static. asset_send:
// the thread of the connection.
#pragma once

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"

struct asset {
    const char *path;     // as in the request: "/index.html"
    const char *type;     // Content-Type
    const char *hash;     // of the contents, hexadecimal: the beginning of sha256
    const char *sha256;   // of the contents, whole
    const uint8_t *begin; // gzip
    const uint8_t *end;
};

// The last entry has no path.
extern const struct asset asset_table[];

// Find the asset for a request's target, which may have a query; "/" is "/index.html". Return NULL
// if there is none.
const struct asset *asset_find(const char *target);

enum MHD_Result asset_send(struct MHD_Connection *connection, const struct asset *asset);
