// SPDX-License-Identifier: MIT
#include "server/pages/assets.h"

#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "server/http/connection.h"
#include "server/http/encoding.h"
#include "server/http/reply.h"
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

enum MHD_Result asset_send(struct MHD_Connection *connection, const struct asset *asset)
{
    char tag[32];
    (void)snprintf(tag, sizeof(tag), "W/\"%s\"", asset->hash); // fits: 16 digits
    struct reply reply = {
        .status = MHD_HTTP_OK,
        .type = asset->type,
        .etag = tag,
        .cache = "no-cache",
        .is_gzip = accepts_gzip(http_header(connection, MHD_HTTP_HEADER_ACCEPT_ENCODING)),
    };
    const char *known = http_header(connection, MHD_HTTP_HEADER_IF_NONE_MATCH);
    if (known != NULL && strstr(known, asset->hash) != NULL) {
        return reply_unchanged(connection, tag, reply.cache);
    }
    struct bytes packed = {asset->begin, (size_t)(asset->end - asset->begin)};
    if (reply.is_gzip) {
        return reply_send_static(connection, &reply, packed);
    }
    CLEANUP(strbuf_release) struct strbuf plain = {0};
    return gzip_expand(packed, &plain) == ERR_OK ? reply_send(connection, &reply, &plain) : MHD_NO;
}
