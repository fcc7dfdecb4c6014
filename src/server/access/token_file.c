// SPDX-License-Identifier: MIT
#include "server/access/token_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"

enum {
    TOKEN_FILE_MAX_BYTES = 4096
};

enum err token_file_read(const char *path, struct access_token *out, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
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
    TRY(strbuf_result(&line));
    const enum err err = file_write_all(fd, strbuf_bytes(&line), path, info);
    if (err != ERR_OK) {
        (void)unlink(path); // every later start would refuse a part of a token
    }
    return err;
}

enum err token_file_read_or_make(const char *path, struct access_token *out, struct err_info *info)
{
    if (access(path, F_OK) != 0 && errno == ENOENT) {
        return make_token_file(path, out, info);
    }
    return token_file_read(path, out, info);
}
