// SPDX-License-Identifier: MIT
#include "symbols/elf/debuginfod.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/number.h"

enum {
    PATIENCE_MS = 30000,
    MAX_PATIENCE_S = 86400,
};

// From the manual page debuginfod_find_debuginfo(3). cairn does not need the package with the
// header.
struct debuginfod_client;

struct debuginfod_library {
    struct debuginfod_client *client; // owned
    struct debuginfod_client *(*begin)(void);
    void (*end)(struct debuginfod_client *client);
    int (*find_debuginfo)(struct debuginfod_client *client,
                          const unsigned char *build_id,
                          int build_id_len,
                          char **path);
    void (*set_progressfn)(struct debuginfod_client *client,
                           int (*function)(struct debuginfod_client *client, long a, long b));
    void (*set_user_data)(struct debuginfod_client *client, void *data);
};

static bool is_set(const char *name)
{
    const char *value = getenv(name);
    return value != NULL && *value != '\0';
}

bool debuginfod_is_wanted(void)
{
    return is_set("DEBUGINFOD_URLS");
}

// Load the library. It is never closed, because libcurl does not support that.
static void *open_library(void)
{
    return dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
}

bool debuginfod_is_installed(void)
{
    return open_library() != NULL;
}

static enum err load_library(struct debuginfod_library *out)
{
    void *library = open_library();
    if (library == NULL) {
        return ERR_UNSUPPORTED;
    }
    const struct {
        const char *name;
        void *field; // a function pointer
    } functions[] = {
        {"debuginfod_begin", &out->begin},
        {"debuginfod_end", &out->end},
        {"debuginfod_find_debuginfo", &out->find_debuginfo},
        {"debuginfod_set_progressfn", &out->set_progressfn},
        {"debuginfod_set_user_data", &out->set_user_data},
    };
    for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
        void *function = dlsym(library, functions[i].name);
        if (function == NULL) {
            return ERR_UNSUPPORTED;
        }
        *(void **)functions[i].field = function;
    }
    return ERR_OK;
}

void debuginfod_release(struct debuginfod *servers)
{
    if (servers->library != NULL) {
        servers->library->end(servers->library->client);
    }
    free(servers->library);
    servers->library = NULL;
}

// Append the cache folder by the rules of debuginfod_find_debuginfo(3).
static MUST_USE enum err append_cache_folder(struct strbuf *out)
{
    const char *chosen = getenv("DEBUGINFOD_CACHE_PATH");
    const char *base = getenv("XDG_CACHE_HOME");
    const char *home = getenv("HOME");
    if (chosen != NULL && *chosen != '\0') {
        strbuf_append_text(out, chosen);
        return strbuf_result(out);
    }
    if (home != NULL) {
        strbuf_printf(out, "%s/.debuginfod_client_cache", home);
        if (access(strbuf_text(out), F_OK) == 0) {
            return strbuf_result(out);
        }
        strbuf_clear(out);
    }
    if (base != NULL && *base != '\0') {
        strbuf_printf(out, "%s/debuginfod_client", base);
    } else if (home != NULL) {
        strbuf_printf(out, "%s/.cache/debuginfod_client", home);
    }
    TRY(strbuf_result(out));
    return out->len > 0 ? ERR_OK : ERR_NOT_FOUND;
}

enum err
debuginfod_find_fetched(struct debuginfod *servers, struct bytes build_id, struct strbuf *out_path)
{
    (void)servers; // the signature is debuginfod_fetch's
    CLEANUP(strbuf_release) struct strbuf path = {0};
    TRY(append_cache_folder(&path));
    strbuf_append_char(&path, '/');
    strbuf_append_hex(&path, build_id);
    strbuf_append_text(&path, "/debuginfo");
    TRY(strbuf_result(&path));
    if (access(strbuf_text(&path), R_OK) != 0) {
        return ERR_NOT_FOUND;
    }
    strbuf_append(out_path, path.data, path.len);
    return strbuf_result(out_path);
}

// Return the client's user data; the library passes no other context to its callback.
static struct debuginfod *servers_of(struct debuginfod_client *client)
{
    void *(*get_user_data)(struct debuginfod_client * client) = NULL;
    *(void **)&get_user_data = dlsym(open_library(), "debuginfod_get_user_data");
    return get_user_data(client);
}

// Return how long servers may be silent. libdebuginfod's own default is three times 90 s.
static uint64_t patience_ms(void)
{
    const char *text = getenv("DEBUGINFOD_TIMEOUT");
    uint64_t seconds = 0;
    return text != NULL && number_parse(text, MAX_PATIENCE_S, &seconds) && seconds > 0
               ? seconds * MS_PER_S
               : PATIENCE_MS;
}

// Note what has come. Return whether nothing has for too long. Until the first byte libdebuginfod
// counts its turns in place of bytes, anew at each attempt.
static bool is_silent(struct debuginfod *servers, uint64_t done_bytes)
{
    const uint64_t now_ms = clock_monotonic_ms();
    if (servers->heard_ms == 0 || done_bytes > servers->heard_bytes + 1) {
        servers->heard_ms = now_ms;
    }
    servers->heard_bytes = done_bytes;
    return now_ms - servers->heard_ms >= patience_ms();
}

// Report progress. A result other than 0 ends the request.
static int show_progress(struct debuginfod_client *client, long done, long total)
{
    struct debuginfod *servers = servers_of(client);
    servers->is_silent = is_silent(servers, done > 0 ? (uint64_t)done : 0);
    if (servers->go_on != NULL && !servers->go_on(servers->context, done > 0 ? (uint64_t)done : 0,
                                                  total > 0 ? (uint64_t)total : 0)) {
        servers->has_given_up = true;
    }
    return servers->has_given_up || servers->is_silent;
}

static MUST_USE enum err open_client(struct debuginfod *servers)
{
    struct debuginfod_library found = {0};
    TRY(load_library(&found));
    found.client = found.begin();
    servers->library = found.client != NULL ? malloc(sizeof(*servers->library)) : NULL;
    if (servers->library == NULL) {
        found.end(found.client); // accepts NULL
        return ERR_NO_MEMORY;
    }
    *servers->library = found;
    found.set_user_data(found.client, servers);
    found.set_progressfn(found.client, show_progress);
    return ERR_OK;
}

// Return whether a result of the library means that further requests are useless.
static bool is_silence(int result)
{
    return result == -ETIME || result == -ETIMEDOUT || result == -ECONNREFUSED ||
           result == -EHOSTUNREACH || result == -ENETUNREACH;
}

// Return how a request ended that was not interrupted. "No" has these numbers; EFBIG is that of a
// file that is larger than DEBUGINFOD_MAXSIZE.
static enum debuginfod_end end_of(int result)
{
    const bool is_answer =
        result >= 0 || result == -ENOENT || result == -EINVAL || result == -EFBIG;
    return is_silence(result) ? DEBUGINFOD_SILENT
           : is_answer        ? DEBUGINFOD_ANSWERED
                              : DEBUGINFOD_FAILED;
}

// Send a request. Return a descriptor, or less than 0.
static int send_request(struct debuginfod *servers, struct bytes build_id, char **out_path)
{
    struct debuginfod_library *library = servers->library;
    int result = -EINTR;
    servers->heard_ms = 0;
    servers->is_silent = false;
    servers->has_given_up = servers->go_on != NULL && !servers->go_on(servers->context, 0, 0);
    if (!servers->has_given_up) {
        result =
            library->find_debuginfo(library->client, build_id.data, (int)build_id.len, out_path);
    }
    const enum debuginfod_end end = servers->has_given_up ? DEBUGINFOD_INTERRUPTED
                                    : servers->is_silent  ? DEBUGINFOD_SILENT
                                                          : end_of(result);
    servers->has_given_up = end != DEBUGINFOD_ANSWERED;
    if (servers->end_request != NULL) {
        servers->end_request(servers->context, end);
    }
    return result;
}

enum err
debuginfod_fetch(struct debuginfod *servers, struct bytes build_id, struct strbuf *out_path)
{
    if (servers->has_given_up) {
        return ERR_CANCELLED;
    }
    if (servers->library == NULL) {
        TRY(open_client(servers));
    }
    CLEANUP(text_freep) char *path = NULL;
    CLEANUP(fd_closep) int fd = send_request(servers, build_id, &path);
    if (fd < 0) {
        return servers->has_given_up ? ERR_CANCELLED : ERR_NOT_FOUND;
    }
    strbuf_append_text(out_path, path); // debug_search opens all files by path
    return strbuf_result(out_path);
}

void debuginfod_note_wrong(struct debuginfod *servers)
{
    if (!servers->has_wrong && servers->end_request != NULL) {
        servers->end_request(servers->context, DEBUGINFOD_WRONG);
    }
    servers->has_wrong = true;
}
