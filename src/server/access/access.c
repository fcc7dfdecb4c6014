// SPDX-License-Identifier: MIT
#include "server/access/access.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/os/new_file.h"

enum {
    BASIC_MAX_BYTES = 256 // of user and password
};

enum err access_new_token(struct access_token *out, struct err_info *info)
{
    static const char digits[] = "0123456789abcdef";
    unsigned char random[ACCESS_TOKEN_LEN / 2];
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) {
        return err_set_errno(info, errno, "cannot get random bytes for an access token");
    }
    struct access_token token = {0};
    for (size_t i = 0; i < sizeof(random); i++) {
        token.text[2 * i] = digits[random[i] / 16];
        token.text[2 * i + 1] = digits[random[i] % 16];
    }
    *out = token;
    return ERR_OK;
}

bool access_is_token(const struct access_token *token, const char *text, size_t len)
{
    unsigned difference = len != ACCESS_TOKEN_LEN || token->text[0] == '\0';
    for (size_t i = 0; i < len && i < ACCESS_TOKEN_LEN; i++) {
        difference |= (unsigned char)(token->text[i] ^ text[i]);
    }
    return difference == 0;
}

// Remove `prefix` from the start of *text, if it is there.
static bool skip_prefix(const char **text, const char *prefix)
{
    size_t len = strlen(prefix);
    if (strncasecmp(*text, prefix, len) != 0) {
        return false;
    }
    *text += len;
    return true;
}

bool access_host_is_local(const char *host)
{
    static const char *const names[] = {"127.0.0.1", "localhost", "[::1]"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        const char *rest = host;
        if (!skip_prefix(&rest, names[i])) {
            continue;
        }
        if (*rest == ':') {
            rest++;
            size_t digits = strspn(rest, "0123456789");
            rest += digits >= 1 && digits <= 5 ? digits : 0;
        }
        if (*rest == '\0' && rest[-1] != ':') {
            return true;
        }
    }
    return false;
}

static bool origin_is_ours(const char *origin, const char *host)
{
    return skip_prefix(&origin, "http://") && strcasecmp(origin, host) == 0;
}

static bool has_bearer(const struct access_token *token, const char *header)
{
    return header != NULL && skip_prefix(&header, "Bearer ") &&
           access_is_token(token, header, strlen(header));
}

static int base64_digit(char character)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = character != '\0' ? strchr(digits, character) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

// Return whether the header has the token as the password of any user (RFC 7617). The client of
// `go tool pprof` sends it if the address has one.
static bool has_password(const struct access_token *token, const char *header)
{
    char text[BASIC_MAX_BYTES];
    size_t len = 0;
    uint32_t bits = 0;
    unsigned bit_count = 0;
    if (header == NULL || !skip_prefix(&header, "Basic ") || strlen(header) > sizeof(text)) {
        return false;
    }
    for (; base64_digit(*header) >= 0; header++) {
        bits = bits << 6 | (uint32_t)base64_digit(*header);
        bit_count += 6;
        if (bit_count >= 8) {
            bit_count -= 8;
            text[len++] = (char)(bits >> bit_count & 0xff);
        }
    }
    const char *colon = memchr(text, ':', len);
    const size_t user_len = colon != NULL ? (size_t)(colon - text) + 1 : 0;
    return colon != NULL && header[strspn(header, "=")] == '\0' &&
           access_is_token(token, text + user_len, len - user_len);
}

enum access_verdict access_check(const struct access_token *token,
                                 struct access_policy policy,
                                 const struct access_headers *headers)
{
    if (!policy.has_any_name && (headers->host == NULL || !access_host_is_local(headers->host))) {
        return ACCESS_WRONG_HOST;
    }
    if (headers->origin != NULL &&
        (headers->host == NULL || !origin_is_ours(headers->origin, headers->host))) {
        return ACCESS_WRONG_ORIGIN;
    }
    bool is_foreign =
        headers->fetch_site != NULL && strcasecmp(headers->fetch_site, "cross-site") == 0;
    if (is_foreign && !headers->is_page) {
        return ACCESS_WRONG_ORIGIN;
    }
    bool has_token = policy.is_open || has_bearer(token, headers->authorization) ||
                     has_password(token, headers->authorization) ||
                     (!policy.needs_header && headers->token != NULL &&
                      access_is_token(token, headers->token, strlen(headers->token)));
    return has_token ? ACCESS_GRANTED : ACCESS_NO_TOKEN;
}

enum {
    TOKEN_FILE_MAX_BYTES = 4096
};

enum err token_file_read(const char *path, struct access_token *out, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    TRY(file_read_trusted(path, TOKEN_FILE_MAX_BYTES, &text, info));
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
