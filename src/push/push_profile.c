// SPDX-License-Identifier: MIT
// push_profile: see push_profile.h.
#include "push/push_profile.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "formats/export/exporter.h"
#include "formats/import/input_file.h"
#include "host/containers/memory_end.h"
#include "host/http/http_client.h"
#include "host/os/file.h"
#include "push/push_part.h"

enum {
    QUERY_MAX_BYTES = 32 << 10, // 32 labels of 256 bytes, each byte as %XX
};

#define BOUNDARY "cairn-profile-5f6c1b2e9a4d4c0e"
const char push_content_type[] = "multipart/form-data; boundary=" BOUNDARY;

// The parts of a request. The query has no format=pprof: Pyroscope would take the form for the
// profile itself. Allocations are changes already: without a configuration, collectors of the first
// generation subtract the previous profile from them once more.
static const char body_start[] =
    "--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"sample_type_config\"; "
    "filename=\"sample_type_config.json\"\r\nContent-Type: application/json\r\n\r\n"
    "{\"alloc_objects\":{\"units\":\"objects\",\"aggregation\":\"sum\",\"cumulative\":false},"
    "\"alloc_space\":{\"units\":\"bytes\",\"aggregation\":\"sum\",\"cumulative\":false},"
    "\"inuse_objects\":{\"units\":\"objects\",\"aggregation\":\"average\",\"cumulative\":false},"
    "\"inuse_space\":{\"units\":\"bytes\",\"aggregation\":\"average\",\"cumulative\":false}}"
    "\r\n--" BOUNDARY "\r\nContent-Disposition: form-data; name=\"profile\"; "
    "filename=\"profile.pprof\"\r\nContent-Type: application/octet-stream\r\n\r\n";
static const char body_end[] = "\r\n--" BOUNDARY "--\r\n";

enum err push_source_set_path(struct push_source *source, const struct side_message *message)
{
    char *copy = strdup(message->path);
    if (copy == NULL) {
        return ERR_NO_MEMORY;
    }
    free(source->path);
    source->path = copy;
    source->identity = message->old_identity;
    return ERR_OK;
}

void push_source_release(struct push_source *source)
{
    row_sums_release(&source->history);
    push_names_release(&source->names_of_processes);
    free(source->path);
    source->path = NULL;
}

// --- a profile ----------------------------------------------------------------------------------

// A checkpoint that becomes profiles.
struct collection {
    struct push_source *source;    // borrowed
    const struct profile *profile; // borrowed
    struct export_changes changes; // owned: rows, fates
    struct push_parts parts;       // owned
    struct strbuf whole;           // owned; the profile of a part
    struct strbuf smaller;         // owned; empty: there is none
    struct strbuf entry;           // owned
};

static void collection_release(struct collection *c)
{
    row_change_vec_release(&c->changes.rows);
    flag_vec_release(&c->changes.fates);
    push_parts_release(&c->parts);
    strbuf_release(&c->whole);
    strbuf_release(&c->smaller);
    strbuf_release(&c->entry);
}

static uint64_t unix_ns_of(const struct recording *recording)
{
    const uint64_t run_ms = min_u64(recording->meta.runtime_ms, INT64_MAX / NS_PER_MS);
    return min_u64(recording->meta.start_unix_ns, INT64_MAX) + run_ms * NS_PER_MS;
}

static MUST_USE enum err write_profile(const struct collection *c,
                                       struct export_size *size,
                                       struct strbuf *out,
                                       struct err_info *info)
{
    CLEANUP(export_view_release) struct export_view view = {0};
    const struct export_request request = {.exporter = &exporter_pprof,
                                           .cost = COST_COUNT,
                                           .moment = EXPORT_AT_END,
                                           .is_now = true,
                                           .changes = &c->changes,
                                           .size = size};
    memory_end_forget();
    TRY(export_view_build(c->profile, NULL, &request, &view, info));
    strbuf_clear(out);
    FILE *stream = strbuf_open_stream(out);
    if (stream == NULL) {
        return ERR_NO_MEMORY;
    }
    const enum err err = export_write(request.exporter, &view, stream);
    (void)fclose(stream); // `out` remembers a failure
    TRY(err);
    return strbuf_result(out);
}

// Write the profile of a part within limits. The bytes of a profile are known when it is written,
// so it is written again with fewer samples until it fits.
static MUST_USE enum err write_within(struct collection *c,
                                      size_t part,
                                      const struct push_limits *limits,
                                      struct export_size *size,
                                      struct strbuf *out,
                                      struct err_info *info)
{
    enum {
        SPARE = 8, // one of so many samples less than the bytes allow
    };
    const size_t rows = c->parts.parts.items[part].row_count;
    size_t alone = rows <= limits->samples ? rows : limits->samples - 1; // and [other]
    for (;;) {
        TRY(push_parts_choose(&c->parts, c->profile, part, alone, &c->changes.fates));
        TRY(write_profile(c, size, out, info));
        if (size->unpacked_bytes <= limits->bytes || alone == 0) {
            return ERR_OK;
        }
        const double fits = (double)limits->bytes / (double)size->unpacked_bytes;
        const size_t fewer = (size_t)((double)alone * fits);
        alone = min_u64(fewer - fewer / SPARE, alone - 1);
    }
}

// Write the smaller form of a profile, unless the profile is small.
static MUST_USE enum err write_smaller(struct collection *c,
                                       size_t part,
                                       const struct export_size *whole,
                                       struct err_info *info)
{
    enum {
        SMALLER = 8,
        SAMPLES_MIN = 16,
    };
    const struct push_limits limits = {whole->sample_count / SMALLER,
                                       whole->unpacked_bytes / SMALLER};
    struct export_size size = {0};
    strbuf_clear(&c->smaller);
    return whole->sample_count >= SAMPLES_MIN
               ? write_within(c, part, &limits, &size, &c->smaller, info)
               : ERR_OK;
}

static MUST_USE enum err make_entry(struct collection *c, uint32_t process)
{
    const struct export_changes *changes = &c->changes;
    strbuf_clear(&c->entry);
    if (c->smaller.len > 0) {
        strbuf_printf(&c->entry, "%zu ", c->smaller.len);
    }
    strbuf_append_text(&c->entry, "name=");
    http_append_escaped(&c->entry, push_names_of(&c->source->names_of_processes, process));
    strbuf_printf(&c->entry, "&from=%" PRIu64 "&until=%" PRIu64 "&spyName=cairn\n",
                  changes->from_unix_ns / NS_PER_S,
                  max_u64(changes->until_unix_ns / NS_PER_S,
                          changes->from_unix_ns / NS_PER_S + 1)); // else it covers no time
    strbuf_append(&c->entry, strbuf_text(&c->whole), c->whole.len);
    strbuf_append(&c->entry, strbuf_text(&c->smaller), c->smaller.len);
    return strbuf_result(&c->entry);
}

static MUST_USE enum err
make_entries(struct collection *c, push_take *take, void *context, struct err_info *info)
{
    for (size_t i = 0; i < c->parts.parts.len; i++) {
        struct export_size size = {0};
        TRY(write_within(c, i, &c->source->limits, &size, &c->whole, info));
        TRY(write_smaller(c, i, &size, info));
        TRY(make_entry(c, c->parts.parts.items[i].process));
        c->source->reduced_count += size.other_count > 0;
        take(context, c->changes.until_unix_ns + i, strbuf_bytes(&c->entry));
    }
    return ERR_OK;
}

static MUST_USE enum err find_parts(struct collection *c, struct err_info *info)
{
    CLEANUP(selection_release) struct selection selection = {0};
    TRY(profile_select(c->profile, NULL, &selection, info));
    return push_parts_find(&selection, &c->changes.rows, &c->parts);
}

static MUST_USE enum err collect_from(struct push_source *source,
                                      const struct profile *profile,
                                      push_take *take,
                                      void *context,
                                      struct err_info *info)
{
    const struct recording *recording = &profile->recording;
    const uint64_t until_ns = unix_ns_of(recording);
    const uint64_t start_ns =
        source->until_unix_ns != 0 ? source->until_unix_ns : recording->meta.start_unix_ns;
    CLEANUP(collection_release)
    struct collection c = {
        .source = source,
        .profile = profile,
        .changes = {.from_unix_ns = min_u64(start_ns, until_ns), .until_unix_ns = until_ns}};
    TRY(push_names_see(&source->names_of_processes, profile));
    TRY(row_sums_advance(&source->history, profile, &c.changes.rows));
    source->until_unix_ns = until_ns;
    TRY(find_parts(&c, info));
    return make_entries(&c, take, context, info);
}

enum err push_source_collect(struct push_source *source,
                             push_take *take,
                             void *context,
                             struct err_info *info)
{
    struct stat status;
    CLEANUP(profile_closep) struct profile *profile = NULL;
    if (source->path == NULL || stat(source->path, &status) != 0 ||
        file_identity(&status) == source->identity) {
        return ERR_NOT_FOUND;
    }
    TRY(input_open_lean_profile(source->path, source->names,
                                source->merges_threads ? 1 : source->limits.samples, &profile,
                                info));
    source->identity = file_identity(&status);
    source->merges_threads = profile->recording.has_merged_threads;
    const enum err err = collect_from(source, profile, take, context, info);
    return err == ERR_NOT_FOUND ? ERR_IO : err; // ERR_NOT_FOUND says that there is nothing new
}

// --- the request --------------------------------------------------------------------------------

// The parts of an entry.
struct entry_parts {
    struct bytes query;
    struct bytes whole;
    struct bytes smaller; // empty: there is none
};

// Take the size of the smaller form off the start of an entry. Return false if it makes no sense.
static bool take_size(struct bytes *entry, uint64_t *out)
{
    *out = 0;
    size_t len = 0;
    while (len < entry->len && entry->data[len] >= '0' && entry->data[len] <= '9') {
        if (*out > entry->len) {
            return false;
        }
        *out = *out * 10 + (entry->data[len++] - (unsigned)'0');
    }
    if (len == 0) {
        return true;
    }
    if (len == entry->len || entry->data[len] != ' ') {
        return false;
    }
    *entry = (struct bytes){entry->data + len + 1, entry->len - len - 1};
    return *out > 0 && *out <= entry->len;
}

// Return the length of the query; 0 if the entry is not one of ours.
static size_t query_len(struct bytes entry)
{
    static const char start[] = "name=";
    const char *text = (const char *)entry.data;
    const size_t max = min_u64(entry.len, QUERY_MAX_BYTES);
    size_t len = 0;
    while (len < max && (http_is_unreserved(text[len]) || text[len] == '%' || text[len] == '&' ||
                         text[len] == '=')) {
        len++;
    }
    const bool is_ours = len < max && text[len] == '\n' && len >= sizeof(start) - 1 &&
                         memcmp(text, start, sizeof(start) - 1) == 0;
    return is_ours ? len : 0;
}

static bool take_apart(struct bytes entry, struct entry_parts *out)
{
    uint64_t smaller;
    if (!take_size(&entry, &smaller)) {
        return false;
    }
    const size_t query = query_len(entry);
    if (query == 0 || smaller > entry.len - query - 1) {
        return false;
    }
    const size_t whole = entry.len - query - 1 - smaller;
    out->query = (struct bytes){entry.data, query};
    out->whole = (struct bytes){entry.data + query + 1, whole};
    out->smaller = (struct bytes){entry.data + query + 1 + whole, smaller};
    return true;
}

enum err
push_request_make(const char *base, struct bytes entry, bool is_smaller, struct push_request *out)
{
    static const char path[] = "/ingest";
    size_t base_len = strlen(base);
    struct entry_parts parts = {0};
    CLEANUP(push_request_release) struct push_request request = {0};
    if (!take_apart(entry, &parts) || (is_smaller && parts.smaller.len == 0)) {
        return ERR_INVALID;
    }
    const struct bytes profile = is_smaller ? parts.smaller : parts.whole;
    base_len -= base_len > 0 && base[base_len - 1] == '/';
    const size_t path_len = sizeof(path) - 1;
    const bool has_path =
        base_len >= path_len && memcmp(base + base_len - path_len, path, path_len) == 0;
    strbuf_printf(&request.url, "%.*s%s?", (int)base_len, base, has_path ? "" : path);
    strbuf_append(&request.url, parts.query.data, parts.query.len);
    strbuf_append(&request.body, body_start, sizeof(body_start) - 1);
    strbuf_append(&request.body, profile.data, profile.len);
    strbuf_append(&request.body, body_end, sizeof(body_end) - 1);
    TRY(strbuf_result(&request.url));
    TRY(strbuf_result(&request.body));
    *out = TAKE(request);
    return ERR_OK;
}

void push_request_release(struct push_request *request)
{
    strbuf_release(&request->url);
    strbuf_release(&request->body);
}
