// SPDX-License-Identifier: MIT
// assets: see assets.h.
#include "server/pages/assets.h"

#include <string.h>

#include "server/http/request.h"

const struct asset *asset_find(const char *target)
{
    if (target_has_path(target, "/")) {
        target = "/index.html";
    }
    for (const struct asset *asset = asset_table; asset->path != NULL; asset++) {
        if (target_has_path(target, asset->path)) {
            return asset;
        }
    }
    return NULL;
}
