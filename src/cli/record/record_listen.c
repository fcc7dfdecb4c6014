// SPDX-License-Identifier: MIT
// record_listen: see record_listen.h.
#include "cli/record/record_listen.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"

enum {
    TOKEN_FILE_MAX_BYTES = 4096
};

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

// Write a new token to a file that only its owner can read.
static MUST_USE enum err
make_token_file(const char *path, struct access_token *out, struct err_info *info)
{
    TRY(access_new_token(out, info));
    CLEANUP(fd_closep)
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, FILE_MODE_PRIVATE);
    if (fd < 0) {
        return err_set_errno(info, errno, "--token-file: cannot create '%s'", path);
    }
    CLEANUP(strbuf_release) struct strbuf line = {0};
    strbuf_printf(&line, "%s\n", out->text);
    return strbuf_result(&line) == ERR_OK ? file_write_all(fd, strbuf_bytes(&line), path, info)
                                          : err_set(info, ERR_NO_MEMORY, "not enough memory");
}

static MUST_USE enum err
read_token_file(const char *path, struct access_token *out, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        return make_token_file(path, out, info);
    }
    TRY(file_read(path, TOKEN_FILE_MAX_BYTES, &text, info));
    const char *token = strbuf_text(&text);
    const size_t len = strspn(token, "0123456789abcdef");
    if (len != ACCESS_TOKEN_LEN || token[len + strspn(token + len, " \t\r\n")] != '\0') {
        return err_set(info, ERR_INVALID,
                       "--token-file: '%s' must have %d lower-case hexadecimal digits, as "
                       "'openssl rand -hex %d' prints",
                       path, ACCESS_TOKEN_LEN, ACCESS_TOKEN_LEN / 2);
    }
    memcpy(out->text, token, ACCESS_TOKEN_LEN);
    return ERR_OK;
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
        TRY(read_token_file(settings->token_file, &token, info));
    } else if (!is_unix && !settings->no_token) {
        TRY(access_new_token(&token, info));
    }
    const struct metrics_server_options options = {
        .address = settings->address,
        .tls_file = settings->tls_file,
        .token = is_unix || settings->no_token ? NULL : &token,
        .names = names,
    };
    TRY(metrics_server_start(&options, out, info));
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
        return err_set(info, ERR_NO_MEMORY, "not enough memory");
    }
    return ERR_OK;
}
