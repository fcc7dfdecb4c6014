// SPDX-License-Identifier: MIT
// metrics_source: see metrics_source.h.
//
// A request waits for the mutex while another one computes: it then finds the document ready.
#include "server/metrics/metrics_source.h"

#include <inttypes.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "formats/export/exporter.h"
#include "formats/import/input_file.h"
#include "host/containers/memory_end.h"
#include "host/memory/memory_groups.h"
#include "host/memory/memory_limit.h"
#include "host/os/file.h"
#include "host/os/mutex.h"
#include "host/os/proc_file.h"
#include "host/text/proc_text.h"
#include "server/http/reply.h"
#include "server/state/snapshot.h"

enum {
    READING_SHARE = 5, // reading takes at most this part of the time
    ROWS_MAX = 50000,  // beyond, the threads of a process are merged
    CGROUP_MAX_BYTES = 64 << 10,
    STATM_MAX_BYTES = 256,
};

static void write_processor_time(const char *name, pid_t pid, FILE *out)
{
    clockid_t clock;
    struct timespec used;
    if (clock_getcpuclockid(pid, &clock) == 0 && clock_gettime(clock, &used) == 0) {
        (void)fprintf(out,
                      "cairn_own_cpu_seconds_total{process=\"%s\"} %" PRIu64 ".%09" PRIu64 "\n",
                      name, (uint64_t)used.tv_sec, (uint64_t)used.tv_nsec);
    }
}

static void write_resident(const char *name, pid_t pid, FILE *out)
{
    CLEANUP(strbuf_release) struct strbuf statm = {0};
    if (proc_file_read(pid, "statm", STATM_MAX_BYTES, &statm)) {
        (void)fprintf(out, "cairn_own_resident_bytes{process=\"%s\"} %" PRIu64 "\n", name,
                      proc_text_pages(strbuf_text(&statm)).resident *
                          (uint64_t)sysconf(_SC_PAGESIZE));
    }
}

// Append the families cairn_own_cpu_seconds_total and cairn_own_resident_bytes in Prometheus' text
// format: of the recorder, without the copies that write checkpoints, and of this process, the
// server. A figure that the kernel does not tell is left out.
static void write_own_cost(pid_t recorder, FILE *out)
{
    const struct {
        const char *name;
        pid_t pid;
    } processes[] = {{"recorder", recorder}, {"server", getpid()}};
    (void)fputs("# HELP cairn_own_cpu_seconds_total Processor time of cairn's processes.\n"
                "# TYPE cairn_own_cpu_seconds_total counter\n",
                out);
    for (size_t i = 0; i < ARRAY_LEN(processes); i++) {
        write_processor_time(processes[i].name, processes[i].pid, out);
    }
    (void)fputs("# HELP cairn_own_resident_bytes RSS of cairn's processes.\n"
                "# TYPE cairn_own_resident_bytes gauge\n",
                out);
    for (size_t i = 0; i < ARRAY_LEN(processes); i++) {
        write_resident(processes[i].name, processes[i].pid, out);
    }
}

static const struct {
    const struct exporter *exporter;
    enum cost cost; // that a viewer shows first
    const char *type;
} documents[METRICS_DOCUMENT_COUNT] = {
    [METRICS_PROMETHEUS] = {&exporter_prometheus, COST_COUNT,
                            "text/plain; version=0.0.4; charset=utf-8"},
    [METRICS_HEAP] = {&exporter_pprof, COST_COUNT, "application/octet-stream"},
    [METRICS_ALLOCS] = {&exporter_pprof, COST_ALLOCATED_BYTES, "application/octet-stream"},
};

enum err metrics_source_set_path(struct metrics_source *source, const struct side_message *message)
{
    char *copy = strdup(message->path);
    if (copy == NULL) {
        return ERR_NO_MEMORY;
    }
    mutex_lock(&source->mutex);
    source->identity = message->old_identity;
    free(source->path);
    source->path = copy;
    mutex_unlock(&source->mutex);
    return ERR_OK;
}

static void drop_documents(struct metrics_source *source)
{
    for (size_t i = 0; i < METRICS_DOCUMENT_COUNT; i++) {
        if (source->documents[i] != NULL) {
            MHD_destroy_response(source->documents[i]); // connections that send it keep it
            source->documents[i] = NULL;
        }
    }
}

// Read the file if it is new. The caller holds the mutex.
static MUST_USE enum err refresh_profile(struct metrics_source *source, struct err_info *info)
{
    struct stat status;
    const uint64_t now_ms = clock_monotonic_ms();
    if (source->path == NULL || stat(source->path, &status) != 0) {
        return ERR_OK; // no checkpoint yet, or removed: what was read stays
    }
    const uint64_t identity = file_identity(&status);
    if (identity == source->identity || now_ms < source->not_before_ms) {
        return ERR_OK;
    }
    struct profile *profile = NULL;
    const enum err err =
        input_open_lean_profile(source->path, source->names, ROWS_MAX, &profile, info);
    const uint64_t end_ms = clock_monotonic_ms();
    source->not_before_ms = end_ms + (end_ms - now_ms) * READING_SHARE;
    if (err != ERR_OK) { // tried again later
        return source->profile != NULL ? ERR_OK : err;
    }
    source->identity = identity;
    profile_close(source->profile);
    source->profile = profile;
    atomic_store_explicit(&source->has_read, true, memory_order_relaxed);
    drop_documents(source);
    (void)malloc_trim(0); // what reading took
    return ERR_OK;
}

static void append_label(struct strbuf *out, const char *name, struct cgroup_part value)
{
    if (value.len > 0) {
        strbuf_printf(out, ",%s=\"%.*s\"", name, (int)value.len,
                      value.text); // of hex digits, - and _
    }
}

// Append the container and the pod of a process.
static void append_labels(uint32_t pid, struct strbuf *out)
{
    CLEANUP(strbuf_release) struct strbuf cgroup = {0};
    if (proc_file_read((pid_t)pid, "cgroup", CGROUP_MAX_BYTES, &cgroup)) {
        append_label(out, "container_id", cgroup_names_container(strbuf_text(&cgroup)));
        append_label(out, "pod_uid", cgroup_names_pod(strbuf_text(&cgroup)));
    }
}

// Write the memory limit of the first recorded process that runs: that of its control group or of
// the machine.
static void write_memory_limit(const struct profile *profile, FILE *out)
{
    static const char name[] = "cairn_memory_limit_bytes";
    const struct recording *recording = &profile->recording;
    size_t first = 0;
    while (first < recording->process_count &&
           profile_process_has_ended(profile, (uint32_t)first)) {
        first++;
    }
    if (first == recording->process_count) {
        return;
    }
    char path[32];
    (void)snprintf(path, sizeof(path), "/proc/%" PRIu32 "/cgroup",
                   recording->processes[first].pid); // fits
    (void)fprintf(out, "# HELP %s Memory that the recorded program may take.\n# TYPE %s gauge\n",
                  name, name);
    (void)fprintf(out, "%s %" PRIu64 "\n", name,
                  memory_limit_of(path, "/sys/fs/cgroup", recording->meta.memory_bytes));
}

static MUST_USE enum err write_document(const struct metrics_source *source,
                                        enum metrics_document document,
                                        uint32_t pid,
                                        FILE *out,
                                        struct err_info *info)
{
    CLEANUP(export_view_release) struct export_view view = {0};
    memory_end_forget();
    const struct export_request request = {.exporter = documents[document].exporter,
                                           .cost = documents[document].cost,
                                           .moment = EXPORT_AT_END,
                                           .is_now = true,
                                           .append_labels = append_labels};
    const struct filter filter = {.pid = pid};
    TRY(export_view_build(source->profile, pid != 0 ? &filter : NULL, &request, &view, info));
    if ((view.selection.unmatched >> FILTER_PROCESS & 1) != 0) {
        return err_set(info, ERR_INVALID, "no process %" PRIu32 " is recorded", pid);
    }
    view.path = source->path;
    const enum err err = export_write(request.exporter, &view, out);
    if (document == METRICS_PROMETHEUS && pid == 0) {
        write_memory_limit(source->profile, out);
        write_own_cost(source->recorder, out);
    }
    return err;
}

// Compute a document. The caller holds the mutex.
static MUST_USE enum err compute_document(const struct metrics_source *source,
                                          enum metrics_document document,
                                          uint32_t pid,
                                          struct strbuf *out,
                                          struct err_info *info)
{
    FILE *stream = strbuf_open_stream(out);
    if (stream == NULL) {
        return ERR_NO_MEMORY;
    }
    const enum err err = write_document(source, document, pid, stream, info);
    (void)fclose(stream); // `out` remembers a failure
    TRY(strbuf_result(out));
    return err;
}

// Return a response that takes the text over, with its headers; NULL without memory.
static struct MHD_Response *response_of(enum metrics_document document, struct strbuf *text)
{
    const struct reply reply = {.status = MHD_HTTP_OK, .type = documents[document].type};
    struct MHD_Response *response = reply_of(text);
    if (response != NULL && !reply_add_headers(response, &reply)) {
        MHD_destroy_response(response);
        response = NULL;
    }
    return response;
}

// Send a document of one process.
static MUST_USE enum err send_part(const struct metrics_source *source,
                                   enum metrics_document document,
                                   uint32_t pid,
                                   struct MHD_Connection *connection,
                                   enum MHD_Result *out,
                                   struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    TRY(compute_document(source, document, pid, &text, info));
    struct MHD_Response *response = response_of(document, &text);
    *out = MHD_NO; // no memory: the connection is closed
    if (response != NULL) {
        *out = MHD_queue_response(connection, MHD_HTTP_OK, response);
        MHD_destroy_response(response); // the connection keeps it
    }
    return ERR_OK;
}

static MUST_USE enum err send_ready(struct metrics_source *source,
                                    enum metrics_document document,
                                    uint32_t pid,
                                    struct MHD_Connection *connection,
                                    enum MHD_Result *out,
                                    struct err_info *info)
{
    TRY(refresh_profile(source, info));
    if (source->profile == NULL) {
        return err_set(info, ERR_NOT_FOUND, "there is no checkpoint yet");
    }
    if (pid != 0) {
        return send_part(source, document, pid, connection, out, info);
    }
    if (source->documents[document] == NULL) {
        CLEANUP(strbuf_release) struct strbuf text = {0};
        TRY(compute_document(source, document, 0, &text, info));
        source->documents[document] = response_of(document, &text);
    }
    *out = source->documents[document] != NULL
               ? MHD_queue_response(connection, MHD_HTTP_OK, source->documents[document])
               : MHD_NO; // no memory: the connection is closed
    return ERR_OK;
}

bool metrics_source_is_ready(struct metrics_source *source)
{
    struct err_info info = {0};
    // Relaxed: the flag publishes nothing.
    if (!atomic_load_explicit(&source->has_read, memory_order_relaxed) &&
        pthread_mutex_trylock(&source->mutex) == 0) { // else a request reads at present
        (void)!refresh_profile(source, &info);        // the flag says whether it could be read
        mutex_unlock(&source->mutex);
    }
    return atomic_load_explicit(&source->has_read, memory_order_relaxed);
}

enum err metrics_source_send(struct metrics_source *source,
                             enum metrics_document document,
                             uint32_t pid,
                             struct MHD_Connection *connection,
                             enum MHD_Result *out,
                             struct err_info *info)
{
    mutex_lock(&source->mutex);
    const enum err err = send_ready(source, document, pid, connection, out, info);
    mutex_unlock(&source->mutex);
    return err;
}
