// SPDX-License-Identifier: MIT
#include "base/err.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

PRINTF_LIKE(3, 0)
static void fill_info(struct err_info *info, enum err code, const char *format, va_list arguments)
{
    if (info == NULL) {
        return;
    }
    info->code = code;
    info->errno_value = 0;
    (void)vsnprintf(info->text, sizeof(info->text), format, arguments); // it may truncate
}

enum err err_set(struct err_info *info, enum err code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fill_info(info, code, format, arguments);
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
    fill_info(info, code, format, arguments);
    va_end(arguments);
    info->errno_value = errno_value;
    size_t used = strlen(info->text);
    (void)snprintf(info->text + used, sizeof(info->text) - used, ": %s", strerror(errno_value));
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
