// SPDX-License-Identifier: MIT
// build_details: see build_details.h. The libraries that cairn loads by name are loaded here too,
// and stay loaded.
#include "cli/doctor/build_details.h"

#include <curses.h>
#include <dlfcn.h>
#include <elfutils/libdwfl.h>
#include <gnu/libc-version.h>
#include <jansson.h>
#include <sqlite3.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <zlib.h>
#include <zstd.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/compiler.h"
#include "cli/doctor/machine_check.h"

static void print_detail(const char *name, const char *value)
{
    (void)printf("%-15s %s\n", name, value); // the caller checks stdout
}

static const char *pcre2_version(void)
{
    static char text[64];
    return pcre2_config(PCRE2_CONFIG_VERSION, NULL) < (int)sizeof(text) &&
                   pcre2_config(PCRE2_CONFIG_VERSION, text) > 0
               ? text
               : "?";
}

static void print_libraries(void)
{
    static const struct {
        const char *name;
        const char *file;
        const char *version; // a function without parameters; NULL: none
        const char *use;
    } loaded[] = {
        {"libmicrohttpd", "libmicrohttpd.so.12", "MHD_get_version", "analyze, --listen"},
        {"libcurl", "libcurl.so.4", "curl_version", "requests to other servers"},
        {"libdebuginfod", "libdebuginfod.so.1", NULL, "DEBUGINFOD_URLS"},
    };
    print_detail("elfutils", dwfl_version(NULL));
    print_detail("zstd", ZSTD_versionString());
    print_detail("zlib", zlibVersion());
    print_detail("pcre2", pcre2_version());
    print_detail("sqlite", sqlite3_libversion());
    print_detail("jansson", jansson_version_str());
    print_detail("ncurses", curses_version());
    for (size_t i = 0; i < ARRAY_LEN(loaded); i++) {
        void *library = dlopen(loaded[i].file, RTLD_NOW | RTLD_LOCAL);
        const char *(*version)(void) = NULL;
        if (library != NULL && loaded[i].version != NULL) {
            *(void **)&version = dlsym(library, loaded[i].version);
        }
        const char *text = library == NULL ? "missing" : version != NULL ? version() : "installed";
        (void)printf("%-15s %.*s (%s)\n", loaded[i].name, (int)strcspn(text, " "), text,
                     loaded[i].use);
    }
}

// What the settings let cairn attach to: the first line of `cairn doctor`.
static void print_attaching(void)
{
    CLEANUP(machine_result_release) struct machine_result result = machine_checks[0].look("");
    print_detail("attaching", strbuf_text(&result.detail));
}

void build_details_print(void)
{
    struct utsname kernel = {0};
    (void)uname(&kernel); // an error leaves empty texts
    (void)printf("%-15s %s, %s\n", "compiler", __VERSION__, kernel.machine);
    (void)printf("%-15s glibc %s\n", "libc", gnu_get_libc_version());
    (void)printf("%-15s %s %s\n", "kernel", kernel.sysname, kernel.release);
    print_libraries();
    print_attaching();
}
