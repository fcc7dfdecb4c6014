// SPDX-License-Identifier: MIT
#include "cli/record/record_collectors.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "cli/options/command.h"
#include "host/http/http_client.h"
#include "host/http/http_credentials.h"
#include "host/os/new_file.h"
#include "host/text/format.h"
#include "push/push_labels.h"
#include "server/access/access.h"

enum err record_listen_check(const struct listen_settings *settings, struct err_info *info)
{
    const bool has_more =
        settings->token_file != NULL || settings->tls_file != NULL || settings->no_token;
    if (settings->address == NULL && has_more) {
        return err_set(info, ERR_INVALID, "--token-file, --no-token and --tls need --listen");
    }
    if (settings->token_file != NULL && settings->no_token) {
        return err_set(info, ERR_INVALID, "--token-file and --no-token cannot be combined");
    }
    return ERR_OK;
}

// Say that the key of --tls can be read by everybody; it serves nevertheless.
static void warn_of_open_key(const char *path)
{
    struct stat status;
    if (path != NULL && stat(path, &status) == 0 && S_ISREG(status.st_mode) &&
        (status.st_mode & S_IROTH) != 0) {
        struct err_info warning;
        (void)err_set(&warning, ERR_PERMISSION,
                      "--tls: all users can read the key in '%s'; 'chmod o-r' ends that", path);
        (void)command_error(&warning); // a warning has no status
    }
}

enum err record_listen_start(const struct listen_settings *settings,
                             const struct name_sources *names,
                             struct metrics_server *out,
                             struct strbuf *said,
                             struct err_info *info)
{
    struct access_token token = {0};
    if (settings->address == NULL) {
        return ERR_OK;
    }
    const bool is_unix = strchr(settings->address, '/') != NULL;
    if (settings->token_file != NULL) {
        TRY(token_file_read_or_make(settings->token_file, &token, info));
    } else if (!is_unix && !settings->no_token) {
        TRY(access_new_token(&token, info));
    }
    const struct metrics_server_options options = {
        .address = settings->address,
        .tls_file = settings->tls_file,
        .token_file = settings->token_file,
        .token = is_unix || settings->no_token ? NULL : &token,
        .names = names,
    };
    TRY(metrics_server_start(&options, out, info));
    warn_of_open_key(settings->tls_file);
    const char *scheme = settings->tls_file != NULL ? "https" : "http";
    const char *name = strbuf_text(&out->listener.name);
    if (is_unix) {
        strbuf_printf(said, "serving metrics on the socket %s", name);
    } else {
        strbuf_printf(said, "serving metrics at %s://%s/metrics", scheme, name);
    }
    if (options.token != NULL && settings->token_file == NULL) {
        strbuf_printf(said, ", token %s", token.text);
    }
    if (strbuf_result(said) != ERR_OK) {
        (void)metrics_server_stop(out); // nothing is recorded, so nothing is served
        return ERR_NO_MEMORY;
    }
    return ERR_OK;
}

enum {
    LABELS_MAX = 16, // with those of cairn and its own Pyroscope takes 30
    INTERVAL_MIN_MS = 100,
};

static const char push_option[] = "--push";

void push_inputs_release(struct push_inputs *inputs)
{
    free(inputs->credentials);
    free(inputs->labels);
    *inputs = (struct push_inputs){0};
}

// Check that no label before `last` has its name: of two the collector would keep one.
static MUST_USE enum err
check_name_is_new(const char *const *labels, size_t last, struct err_info *info)
{
    for (size_t i = 0; i < last; i++) {
        if (push_labels_are_one(labels[i], labels[last])) {
            return err_set(info, ERR_INVALID, "--label: '%.80s' names a label a second time",
                           labels[last]);
        }
    }
    return ERR_OK;
}

static MUST_USE enum err
check_labels(const struct option_word_vec *labels, struct push_inputs *out, struct err_info *info)
{
    if (labels->len > LABELS_MAX) {
        return err_set(info, ERR_INVALID, "--label: at most %d labels", (int)LABELS_MAX);
    }
    out->labels = calloc(labels->len + 1, sizeof(*out->labels));
    if (out->labels == NULL) {
        return ERR_NO_MEMORY;
    }
    for (size_t i = 0; i < labels->len; i++) {
        TRY(push_label_check(labels->items[i].text, info));
        out->labels[i] = labels->items[i].text;
        TRY(check_name_is_new(out->labels, i, info));
    }
    return ERR_OK;
}

enum err record_push_prepare(const struct option_word_vec *labels,
                             const char *auth,
                             struct push_options *options,
                             struct push_inputs *out,
                             struct err_info *info)
{
    const bool has_more =
        auth != NULL || options->ca_file != NULL || options->spool != NULL || labels->len > 0;
    if (options->url == NULL) {
        return has_more ? err_set(info, ERR_INVALID,
                                  "--label, --push-auth, --push-ca and --push-spool need --push")
                        : ERR_OK;
    }
    if (options->interval_ms < INTERVAL_MIN_MS || options->timeout_ms < INTERVAL_MIN_MS) {
        return err_set(info, ERR_INVALID,
                       "--push-interval, --push-timeout: the shortest time is 100ms");
    }
    if (strpbrk(options->url, "?#") != NULL) {
        return err_set(info, ERR_INVALID, "--push: the URL must have no query");
    }
    if (options->ca_file != NULL) {
        TRY(file_refuse_strangers(options->ca_file, info));
    }
    TRY(http_credentials_read(auth, "CAIRN_PUSH_AUTH", "--push-auth", &out->credentials, info));
    TRY(http_client_check_url(options->url, out->credentials != NULL, push_option, info));
    TRY(check_labels(labels, out, info));
    options->credentials = out->credentials;
    options->labels = out->labels;
    options->label_count = labels->len;
    return ERR_OK;
}

enum err record_push_start(const struct push_options *options,
                           const struct name_sources *names,
                           struct push_process *out,
                           struct err_info *info)
{
    struct err_info reason = {0};
    const enum err err =
        options->url != NULL ? push_process_start(options, names, out, &reason) : ERR_OK;
    return err == ERR_OK ? ERR_OK : err_set(info, err, "%s: %s", push_option, err_text(&reason));
}

void record_push_stop(struct push_process *push,
                      const struct push_options *options,
                      struct strbuf *said)
{
    if (push->report == NULL) {
        return;
    }
    const bool has_run = push_process_stop(push, options);
    const struct push_report *report = push->report;
    // Relaxed: the process has ended.
    const uint64_t lost = atomic_load_explicit(&report->lost_count, memory_order_relaxed);
    const uint64_t waiting = atomic_load_explicit(&report->waiting_count, memory_order_relaxed);
    if (!has_run) {
        strbuf_append_text(said,
                           "the process of --push ended early; the recording is not affected");
    } else if (lost > 0 || waiting > 0) {
        strbuf_printf(said, "--push: %s lost, %" PRIu64 " %s in the spool: %s",
                      format_things(lost, "profile", "profiles").text, waiting,
                      waiting == 1 ? "waits" : "wait", report->failure.text);
    }
}
