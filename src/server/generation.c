// SPDX-License-Identifier: MIT
// generation: see generation.h.
#include "server/generation.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/new_file.h"

enum {
    TLS_FILE_MAX_BYTES = 1 << 20,
};

// Close a descriptor of the listening socket, unless libmicrohttpd has done so after a failure.
static void close_unless_closed(int fd, int listener)
{
    struct stat own;
    struct stat ours;
    if (fstat(fd, &own) == 0 && fstat(listener, &ours) == 0 && own.st_ino == ours.st_ino) {
        (void)close(fd); // nothing was written to it
    }
}

enum err generation_start(struct generation *generation,
                          const char *tls_file,
                          int listener,
                          struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf pem = {0};
    if (tls_file != NULL) {
        TRY(file_read_trusted(tls_file, TLS_FILE_MAX_BYTES, &pem, info));
    }
    const int fd = fcntl(listener, F_DUPFD_CLOEXEC, 0); // the daemon's own
    if (fd < 0) {
        return err_set_errno(info, errno, "cannot start the web server");
    }
    generation->daemon =
        http_daemon_start(&generation->http, fd, tls_file != NULL ? strbuf_text(&pem) : NULL, info);
    if (generation->daemon == NULL) {
        close_unless_closed(fd, listener);
        return info->code;
    }
    generation->pem = TAKE(pem);
    return ERR_OK;
}

void generation_retire(struct generation *generation)
{
    const int fd = MHD_quiesce_daemon(generation->daemon);
    if (fd >= 0) {
        (void)close(fd); // the next daemon has another descriptor of it
    }
}

void generation_free(struct generation *generation)
{
    if (generation == NULL) {
        return;
    }
    if (generation->daemon != NULL) {
        MHD_stop_daemon(generation->daemon);
    }
    strbuf_release(&generation->pem);
    free(generation);
}
