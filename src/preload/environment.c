// SPDX-License-Identifier: MIT
// environment: see environment.h.
#include "preload/environment.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "session/session_env.h"

#define PRELOAD_ENV_NAME "LD_PRELOAD"
#define OUR_FILE_NAME    "libcairn_preload.so"

bool environment_is_there(void)
{
    return environ != NULL;
}

// The value if `variable` is "name=value", else NULL.
static char *value_of(char *variable, const char *name)
{
    const size_t length = strlen(name);
    const bool matches = strncmp(variable, name, length) == 0 && variable[length] == '=';
    return matches ? variable + length + 1 : NULL;
}

const char *environment_session(void)
{
    for (char **variable = environ; *variable != NULL; variable++) {
        const char *value = value_of(*variable, SESSION_ENV_NAME);
        if (value != NULL) {
            return value;
        }
    }
    return NULL;
}

static bool is_separator(char c)
{
    return c == ' ' || c == ':'; // ld.so(8)
}

static bool is_our_entry(const char *entry, size_t length)
{
    const size_t name_length = strlen(OUR_FILE_NAME);
    if (length < name_length ||
        strncmp(entry + length - name_length, OUR_FILE_NAME, name_length) != 0) {
        return false;
    }
    return length == name_length || entry[length - name_length - 1] == '/';
}

// Removes our entries from a list of libraries, in place. True if any other is left.
static bool strip_list(char *list)
{
    char *out = list;
    const char *in = list;
    while (*in != '\0') {
        size_t length = 0;
        while (in[length] != '\0' && !is_separator(in[length])) {
            length++;
        }
        if (length > 0 && !is_our_entry(in, length)) {
            if (out != list) {
                *out++ = ':';
            }
            memmove(out, in, length);
            out += length;
        }
        in += length + (in[length] != '\0' ? 1 : 0);
    }
    *out = '\0';
    return out != list;
}

void environment_strip(void)
{
    char **out = environ;
    for (char **in = environ; *in != NULL; in++) {
        char *preload = value_of(*in, PRELOAD_ENV_NAME);
        const bool drop =
            (preload != NULL && !strip_list(preload)) || value_of(*in, SESSION_ENV_NAME) != NULL;
        if (!drop) {
            *out++ = *in;
        }
    }
    *out = NULL;
}
