// SPDX-License-Identifier: MIT
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
    WHOLE_MAX_BYTES = 16 * 1024, // three paths
    REASON_MAX_BYTES = 128,
};

static bool is_inside_character(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80; // UTF-8
}

// Keep the start and the end of a sentence that is too long: a name is in its middle, and the
// reason at its end.
static void keep_text(struct err_info *info, const char *whole)
{
    const size_t len = strlen(whole);
    if (len < sizeof(info->text)) {
        memcpy(info->text, whole, len + 1);
        return;
    }
    const char *end = whole + len - sizeof(info->text) / 2;
    size_t start = sizeof(info->text) / 2 - sizeof("...");
    while (is_inside_character(*end)) {
        end++;
    }
    while (start > 0 && is_inside_character(whole[start])) {
        start--;
    }
    (void)snprintf(info->text, sizeof(info->text), "%.*s...%s", (int)start, whole, end); // it fits
}

// `reason`: what follows the sentence; may be empty.
PRINTF_LIKE(4, 0)
static void fill_info(
    struct err_info *info, enum err code, const char *reason, const char *format, va_list arguments)
{
    char whole[WHOLE_MAX_BYTES + REASON_MAX_BYTES];
    if (info == NULL) {
        return;
    }
    const int len = vsnprintf(whole, WHOLE_MAX_BYTES, format, arguments);
    const size_t used = len < 0 ? 0 : len < WHOLE_MAX_BYTES ? (size_t)len : WHOLE_MAX_BYTES - 1;
    (void)snprintf(whole + used, REASON_MAX_BYTES, "%s%s", reason[0] != '\0' ? ": " : "", reason);
    info->code = code;
    info->errno_value = 0;
    keep_text(info, whole);
}

enum err err_set(struct err_info *info, enum err code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill_info(info, code, "", format, arguments);
    va_end(arguments);
    return code;
}

static enum err code_of_errno(int errno_value)
{
    switch (errno_value) {
    case ENOENT:
    case ENOTDIR:
        return ERR_NOT_FOUND;
    case EACCES:
    case EPERM:
        return ERR_PERMISSION;
    case ENOMEM:
        return ERR_NO_MEMORY;
    default:
        return ERR_IO;
    }
}

enum err err_set_errno(struct err_info *info, int errno_value, const char *format, ...)
{
    enum err code = code_of_errno(errno_value);
    if (info == NULL) {
        return code;
    }
    va_list arguments;
    va_start(arguments, format);
    fill_info(info, code, strerror(errno_value), format, arguments);
    va_end(arguments);
    info->errno_value = errno_value;
    return code;
}

bool err_is_own_lack(int errno_value)
{
    return errno_value == EMFILE || errno_value == ENFILE || errno_value == ENOMEM ||
           errno_value == ENOBUFS;
}

const char *err_text(const struct err_info *info)
{
    return info->text[0] != '\0' ? info->text : "not enough memory";
}

const char *err_name(enum err code)
{
    static const char *const names[] = {
        [ERR_OK] = "ok",
        [ERR_NO_MEMORY] = "no memory",
        [ERR_IO] = "input/output error",
        [ERR_NOT_FOUND] = "not found",
        [ERR_PERMISSION] = "permission denied",
        [ERR_INVALID] = "invalid",
        [ERR_CORRUPT] = "corrupt",
        [ERR_TRUNCATED] = "truncated",
        [ERR_UNSUPPORTED] = "unsupported",
        [ERR_LIMIT] = "over a limit",
        [ERR_DEAD] = "gone",
        [ERR_CANCELLED] = "cancelled",
    };
    if ((size_t)code >= ARRAY_LEN(names)) {
        return "unknown";
    }
    return names[code];
}
