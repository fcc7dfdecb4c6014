// SPDX-License-Identifier: MIT
// push_profile: see push_profile.h.
#include "push/push_profile.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "formats/export/export_formats.h"
#include "formats/import/input_file.h"
#include "host/http/http_client.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "push/push_labels.h"

enum {
    QUERY_MAX_BYTES = 32 << 10, // 32 labels of 256 bytes, each byte as %XX
    CGROUP_MAX_BYTES = 64 << 10,
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

// --- the query ----------------------------------------------------------------------------------

static const char *build_id_of(const struct profile *profile)
{
    const struct recording *recording = &profile->recording;
    for (size_t i = 0; i < recording->module_count; i++) {
        if (recording->modules[i].is_executable != 0) {
            return profile_string(profile, recording->modules[i].build_id);
        }
    }
    return "";
}

// Write the name with its labels, once: a process that has ended has no control group any more.
static MUST_USE enum err write_name(struct push_source *source, const struct profile *profile)
{
    const struct recording *recording = &profile->recording;
    const bool has_process = recording->process_count > 0;
    CLEANUP(strbuf_release) struct strbuf cgroup = {0};
    char host[HOST_NAME_MAX + 1] = "";
    (void)gethostname(host, sizeof(host) - 1); // else ""
    if (has_process &&
        !proc_file_read((pid_t)recording->processes[0].pid, "cgroup", CGROUP_MAX_BYTES, &cgroup)) {
        strbuf_clear(&cgroup);
    }
    const struct push_origin origin = {
        .program = has_process ? profile_string(profile, recording->processes[0].executable) : "",
        .host = host,
        .build_id = build_id_of(profile),
        .cgroup = strbuf_text(&cgroup),
    };
    strbuf_clear(&source->name);
    return push_labels_write(source->labels, source->label_count, &origin, &source->name);
}

// --- a profile ----------------------------------------------------------------------------------

static uint64_t unix_ns_of(const struct recording *recording)
{
    const uint64_t run_ms = min_u64(recording->meta.runtime_ms, INT64_MAX / NS_PER_MS);
    return min_u64(recording->meta.start_unix_ns, INT64_MAX) + run_ms * NS_PER_MS;
}

static MUST_USE enum err write_profile(const struct profile *profile,
                                       const struct export_changes *changes,
                                       FILE *out,
                                       struct err_info *info)
{
    CLEANUP(export_view_release) struct export_view view = {0};
    const struct export_request request = {.exporter = &exporter_pprof,
                                           .cost = COST_COUNT,
                                           .moment = EXPORT_AT_END,
                                           .is_now = true,
                                           .changes = changes};
    TRY(export_view_build(profile, NULL, &request, &view, info));
    return request.exporter->write(&view, out);
}

static MUST_USE enum err make_entry(struct push_source *source,
                                    const struct profile *profile,
                                    const struct export_changes *changes,
                                    struct strbuf *out,
                                    struct err_info *info)
{
    strbuf_append_text(out, "name=");
    http_append_escaped(out, strbuf_text(&source->name));
    strbuf_printf(out, "&from=%" PRIu64 "&until=%" PRIu64 "&spyName=cairn\n",
                  changes->from_unix_ns / NS_PER_S,
                  max_u64(changes->until_unix_ns / NS_PER_S,
                          changes->from_unix_ns / NS_PER_S + 1)); // else it covers no time
    FILE *stream = strbuf_open_stream(out);
    if (stream == NULL) {
        return ERR_NO_MEMORY;
    }
    const enum err err = write_profile(profile, changes, stream, info);
    (void)fclose(stream); // `out` remembers a failure
    TRY(err);
    return strbuf_result(out);
}

static void changes_release(struct export_changes *changes)
{
    row_change_vec_release(&changes->rows);
}

static MUST_USE enum err collect_from(struct push_source *source,
                                      const struct profile *profile,
                                      struct strbuf *entry,
                                      uint64_t *order,
                                      struct err_info *info)
{
    const struct recording *recording = &profile->recording;
    const uint64_t until_ns = unix_ns_of(recording);
    const uint64_t start_ns =
        source->until_unix_ns != 0 ? source->until_unix_ns : recording->meta.start_unix_ns;
    CLEANUP(changes_release)
    struct export_changes changes = {.from_unix_ns = min_u64(start_ns, until_ns),
                                     .until_unix_ns = until_ns};
    if (source->name.len == 0) {
        TRY(write_name(source, profile));
    }
    TRY(row_sums_advance(&source->history, profile, &changes.rows));
    source->until_unix_ns = until_ns;
    TRY(make_entry(source, profile, &changes, entry, info));
    *order = until_ns;
    return ERR_OK;
}

enum err push_source_collect(struct push_source *source,
                             struct strbuf *entry,
                             uint64_t *order,
                             struct err_info *info)
{
    struct stat status;
    struct profile *profile = NULL;
    if (source->path == NULL || stat(source->path, &status) != 0 ||
        file_identity(&status) == source->identity) {
        return ERR_NOT_FOUND;
    }
    TRY(input_open_profile(source->path, source->names, NULL, &profile, info));
    source->identity = file_identity(&status);
    const enum err err = collect_from(source, profile, entry, order, info);
    profile_close(profile);
    return err == ERR_NOT_FOUND ? ERR_IO : err; // ERR_NOT_FOUND says that there is nothing new
}

// --- the request --------------------------------------------------------------------------------

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

enum err push_request_make(const char *base, struct bytes entry, struct push_request *out)
{
    static const char path[] = "/ingest";
    const size_t query = query_len(entry);
    size_t base_len = strlen(base);
    CLEANUP(push_request_release) struct push_request request = {0};
    if (query == 0) {
        return ERR_INVALID;
    }
    base_len -= base_len > 0 && base[base_len - 1] == '/';
    const size_t path_len = sizeof(path) - 1;
    const bool has_path =
        base_len >= path_len && memcmp(base + base_len - path_len, path, path_len) == 0;
    strbuf_printf(&request.url, "%.*s%s?", (int)base_len, base, has_path ? "" : path);
    strbuf_append(&request.url, entry.data, query);
    strbuf_append(&request.body, body_start, sizeof(body_start) - 1);
    strbuf_append(&request.body, entry.data + query + 1, entry.len - query - 1);
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
