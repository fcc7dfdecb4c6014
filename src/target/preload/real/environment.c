// SPDX-License-Identifier: MIT
#include "target/preload/real/environment.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "base/page_alloc.h"
#include "session/session_env.h"

#define PRELOAD_ENV_NAME  "LD_PRELOAD"
#define PATH_ENV_NAME     "PATH"
#define VALGRIND_ENV_NAME "VALGRIND_LAUNCHER"
#define INSIDE_ENV_NAME   "CAIRN_INSIDE_VALGRIND"
#define LISTS_ENV_NAME    "LD_TRACE_LOADED_OBJECTS"
#define OUR_FILE_NAME     "libcairn_preload.so"
#define ENTRY_BYTES_MAX   1024u

// The variables at the process's start; empty strings before, or if they do not fit.
static struct {
    char session[ENVIRONMENT_SESSION_BYTES]; // the whole variable
    char entry[ENTRY_BYTES_MAX];             // of LD_PRELOAD
} g_environment;

bool environment_is_there(void)
{
    return environ != NULL;
}

// Return the value if `variable` is "name=value", else NULL.
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

// Remove our entries from a list of libraries, in place. True if any other is left.
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

static size_t entry_length(const char *entry)
{
    size_t length = 0;
    while (entry[length] != '\0' && !is_separator(entry[length])) {
        length++;
    }
    return length;
}

static void find_ours(struct environment_scan *scan)
{
    for (const char *at = scan->preload; *at != '\0';) {
        const size_t length = entry_length(at);
        if (is_our_entry(at, length)) {
            scan->ours = at;
            scan->ours_bytes = length;
            return;
        }
        at += length + (at[length] != '\0' ? 1 : 0);
    }
}

struct environment_scan environment_scan(char *const *variables)
{
    struct environment_scan scan = {.count = 0};
    bool is_inside_wanted = false;
    for (; variables != NULL && variables[scan.count] != NULL; scan.count++) {
        char *variable = variables[scan.count];
        const char *preload = value_of(variable, PRELOAD_ENV_NAME);
        const char *session = value_of(variable, SESSION_ENV_NAME);
        const char *path = value_of(variable, PATH_ENV_NAME);
        scan.preload = preload != NULL && *preload != '\0' ? preload : scan.preload;
        scan.session = session != NULL ? session : scan.session;
        scan.path = scan.path == NULL ? path : scan.path; // as getenv(3)
        scan.is_of_valgrind = scan.is_of_valgrind || value_of(variable, VALGRIND_ENV_NAME) != NULL;
        scan.lists_libraries = scan.lists_libraries || value_of(variable, LISTS_ENV_NAME) != NULL;
        is_inside_wanted = is_inside_wanted || value_of(variable, INSIDE_ENV_NAME) != NULL;
    }
    scan.is_of_valgrind = scan.is_of_valgrind && !is_inside_wanted;
    if (scan.preload != NULL) {
        find_ours(&scan);
    }
    return scan;
}

void environment_remember(void)
{
    const struct environment_scan scan = environment_scan(environ);
    const size_t session_bytes = scan.session != NULL ? strlen(scan.session) + 1 : 0;
    const size_t name_bytes = strlen(SESSION_ENV_NAME "=");
    if (scan.ours != NULL && scan.ours_bytes < sizeof(g_environment.entry) && session_bytes > 0 &&
        name_bytes + session_bytes <= sizeof(g_environment.session)) {
        memcpy(g_environment.entry, scan.ours, scan.ours_bytes);
        memcpy(g_environment.session, SESSION_ENV_NAME "=", name_bytes);
        memcpy(g_environment.session + name_bytes, scan.session, session_bytes);
    }
}

void environment_as_is(struct made_environment *made, char *const *variables)
{
    made->variables = variables;
    made->mapped = NULL;
    made->mapped_bytes = 0;
}

// Make room for `count` variables and one string. False: there is none.
static bool
make_room(struct made_environment *made, size_t count, size_t bytes, char ***slots, char **string)
{
    *slots = made->slots;
    *string = made->preload;
    if (count <= ENVIRONMENT_SLOTS && bytes <= ENVIRONMENT_BYTES) {
        return true;
    }
    made->mapped_bytes = count * sizeof(char *) + bytes;
    made->mapped = page_alloc(made->mapped_bytes);
    *slots = made->mapped;
    *string = (char *)made->mapped + count * sizeof(char *);
    return made->mapped != NULL;
}

// Write the text and a zero byte; return the zero byte's place.
static char *put_text(char *to, const char *text)
{
    while ((*to = *text) != '\0') {
        to++;
        text++;
    }
    return to;
}

// Copy all variables except ours. Returns the place of the next one.
static char **copy_others(char **out, char *const *variables)
{
    for (char *const *in = variables; in != NULL && *in != NULL; in++) {
        if (value_of(*in, PRELOAD_ENV_NAME) == NULL && value_of(*in, SESSION_ENV_NAME) == NULL) {
            *out++ = *in;
        }
    }
    return out;
}

// Write the remembered variable up to the colon, then `door`.
static char *put_session(char session[static ENVIRONMENT_SESSION_BYTES], const char *door)
{
    const char *colon = strchr(g_environment.session, ':');
    char *end = put_text(session, g_environment.session);
    if (colon != NULL) {
        end = session + (colon - g_environment.session);
    }
    end = put_text(end, ":");
    const size_t room = ENVIRONMENT_SESSION_BYTES - (size_t)(end - session);
    if (strlen(door) < room) { // else there is no recorder
        (void)put_text(end, door);
    }
    return session;
}

bool environment_names_ours(const char *session)
{
    const char *ours = g_environment.session + strlen(SESSION_ENV_NAME "=");
    if (g_environment.session[0] == '\0') {
        return false;
    }
    while (*ours == *session && *ours != '\0' && *ours != ':') {
        ours++;
        session++;
    }
    return *ours == *session;
}

bool environment_with_us(struct made_environment *made, char *const *variables, const char *door)
{
    const struct environment_scan scan = environment_scan(variables);
    const char *others = scan.preload != NULL ? scan.preload : "";
    const size_t name_bytes = strlen(PRELOAD_ENV_NAME "=");
    const size_t entry_bytes = strlen(g_environment.entry);
    const size_t others_bytes = strlen(others);
    char **slots;
    char *string;
    environment_as_is(made, variables);
    if (g_environment.entry[0] == '\0' ||
        !make_room(made, scan.count + 3, name_bytes + entry_bytes + 1 + others_bytes + 1, &slots,
                   &string)) {
        return false;
    }
    char **end = copy_others(slots, variables);
    *end++ = string;
    *end++ = door != NULL ? put_session(made->session, door) : g_environment.session;
    *end = NULL;
    char *list = put_text(put_text(string, PRELOAD_ENV_NAME "="), g_environment.entry);
    char *rest = put_text(list, ":"); // ours first, so that our functions call theirs
    (void)put_text(rest, others);     // there is room
    if (!strip_list(rest)) {
        *list = '\0';
    }
    made->variables = slots;
    return true;
}

bool environment_without_us(struct made_environment *made, char *const *variables)
{
    const struct environment_scan scan = environment_scan(variables);
    const size_t name_bytes = strlen(PRELOAD_ENV_NAME "=");
    const size_t preload_bytes = scan.preload != NULL ? strlen(scan.preload) + 1 : 0;
    char **slots;
    char *string;
    environment_as_is(made, variables);
    if (!make_room(made, scan.count + 1, name_bytes + preload_bytes, &slots, &string)) {
        return false;
    }
    char **end = copy_others(slots, variables);
    if (preload_bytes > 0) {
        char *list = put_text(string, PRELOAD_ENV_NAME "=");
        (void)put_text(list, scan.preload); // there is room
        if (strip_list(list)) {
            *end++ = string;
        }
    }
    *end = NULL;
    made->variables = slots;
    return true;
}

void environment_release(struct made_environment *made)
{
    if (made->mapped != NULL) {
        page_free(made->mapped, made->mapped_bytes);
    }
}

void environment_strip(void)
{
    const struct environment_scan scan = environment_scan(environ);
    if (scan.ours == NULL && scan.session == NULL) {
        return; // the list may be the program's, and read-only
    }
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
