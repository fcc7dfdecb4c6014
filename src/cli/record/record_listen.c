// SPDX-License-Identifier: MIT
#include "cli/record/record_listen.h"

#include <string.h>
#include <sys/stat.h>

#include "base/compiler.h"
#include "cli/options/command.h"
#include "server/access/token_file.h"

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
