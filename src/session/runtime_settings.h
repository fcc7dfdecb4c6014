// SPDX-License-Identifier: MIT
// runtime_settings: variables of the environment with which a runtime calls malloc for each object.
//
// A process tells the recorder as it joins which of them it has: it may be gone before the recorder
// reads its environment. symbols/runtimes/runtime_table.c has the runtimes.
// Context: T and H; pure, and without libc.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The beginnings of the variables.
#define RUNTIME_SETTING_OF_PYTHON "PYTHONMALLOC=malloc"
#define RUNTIME_SETTING_OF_PHP    "USE_ZEND_ALLOC=0"
#define RUNTIME_SETTING_OF_ERLANG "ERL_FLAGS=+Mea min"

enum runtime_setting {
    RUNTIME_SETTING_PYTHON = 1 << 0,
    RUNTIME_SETTING_PHP = 1 << 1,
    RUNTIME_SETTING_ERLANG = 1 << 2,
};

static inline bool runtime_setting_begins(const char *variable, const char *setting)
{
    while (*setting != '\0' && *variable == *setting) {
        variable++;
        setting++;
    }
    return *setting == '\0';
}

// Return the enum runtime_setting of all variables. NULL ends them.
static inline uint32_t runtime_settings_in(char *const *variables)
{
    uint32_t found = 0;
    for (; variables != NULL && *variables != NULL; variables++) {
        found |=
            (runtime_setting_begins(*variables, RUNTIME_SETTING_OF_PYTHON) ? RUNTIME_SETTING_PYTHON
                                                                           : 0) |
            (runtime_setting_begins(*variables, RUNTIME_SETTING_OF_PHP) ? RUNTIME_SETTING_PHP : 0) |
            (runtime_setting_begins(*variables, RUNTIME_SETTING_OF_ERLANG) ? RUNTIME_SETTING_ERLANG
                                                                           : 0);
    }
    return found;
}
