// SPDX-License-Identifier: MIT
// store_changes: what clients of a served store may change, and who may do what.
//
//   PUT /api/v1/recordings      adds the recording that is the body; role add
//   DELETE /api/v1/recordings   removes the selected recordings; role admin
//
// Parameters of both: service, version, host, label=NAME=VALUE (repeatable). Of PUT: name, the path
// that the store notes, and oom=1. Of DELETE: until, seconds of Unix time. A role has a token:
//
//   read   GET        add   PUT        admin   all
//
// Context: H; the connection's thread. Trust: requests and uploads are hostile.
#pragma once

#include <microhttpd.h>
#include <semaphore.h>
#include <stdbool.h>

#include "base/err.h"
#include "server/access/authentication.h"
#include "server/state/baseline_upload.h"
#include "server/store/store_intake.h"
#include "store/store.h"

#define STORE_CHANGES_PATH "/api/v1/recordings"

enum store_role {
    STORE_ROLE_READ,
    STORE_ROLE_ADD,
    STORE_ROLE_ADMIN,
    STORE_ROLE_COUNT,
};

// The token of each role.
struct store_access {
    struct credentials roles[STORE_ROLE_COUNT];
    bool has_role[STORE_ROLE_COUNT]; // else it has no token
};

struct served_store {
    const char *place; // borrowed; of the store, NULL: the user's own
    struct store_intake intake;
    sem_t turns; // as many uploads are read at a time
    // Read the file of a recording and make its rows.
    enum err (*make_rows)(void *context,
                          const char *path,
                          const struct recording_source *source, // without its selection
                          struct recording_rows *out,
                          struct err_info *info);
    void *context;
};

// Judge a request that needs a role: STORE_ROLE_READ to read, and so on. STORE_ROLE_ADMIN has all.
enum access_verdict store_changes_judge(struct store_access *access,
                                        enum store_role needed,
                                        struct MHD_Connection *connection,
                                        const char *target);

// Answer the PUT of a recording.
enum MHD_Result store_changes_add(struct served_store *served,
                                  struct MHD_Connection *connection,
                                  struct baseline_upload *upload);

// Answer the DELETE of recordings.
enum MHD_Result store_changes_remove(struct served_store *served,
                                     struct MHD_Connection *connection);
