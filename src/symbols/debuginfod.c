// SPDX-License-Identifier: MIT
// debuginfod: see debuginfod.h.
#include "symbols/debuginfod.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdlib.h>
#include <unistd.h>

// From the manual page debuginfod_find_debuginfo(3); its header is in a package that we do not
// need.
struct debuginfod_client;

struct client_library {
    struct debuginfod_client *(*begin)(void);
    int (*find_debuginfo)(struct debuginfod_client *client,
                          const unsigned char *build_id,
                          int build_id_len,
                          char **path);
    void (*end)(struct debuginfod_client *client);
};

static enum err load(struct client_library *out)
{
    void *library = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        return ERR_UNSUPPORTED;
    }
    *(void **)&out->begin = dlsym(library, "debuginfod_begin");
    *(void **)&out->find_debuginfo = dlsym(library, "debuginfod_find_debuginfo");
    *(void **)&out->end = dlsym(library, "debuginfod_end");
    bool complete = out->begin != NULL && out->find_debuginfo != NULL && out->end != NULL;
    return complete ? ERR_OK : ERR_UNSUPPORTED;
}

enum err debuginfod_fetch(struct bytes build_id, char **out_path)
{
    struct client_library library;
    TRY(load(&library));
    struct debuginfod_client *client = library.begin();
    if (client == NULL) {
        return ERR_NO_MEMORY;
    }
    char *path = NULL;
    int fd = library.find_debuginfo(client, build_id.data, (int)build_id.len, &path);
    library.end(client);
    if (fd < 0) {
        free(path);
        return ERR_NOT_FOUND;
    }
    (void)close(fd); // it is opened again by its name, as every other file is
    *out_path = path;
    return ERR_OK;
}
