// SPDX-License-Identifier: MIT
// workspace: see workspace.h.
#include "formats/codec/workspace.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char *workspace_path(const char *path)
{
    char folder[4096];
    const char *workspace = getenv("GITHUB_WORKSPACE");
    if (workspace == NULL || workspace[0] == '\0') {
        workspace = getcwd(folder, sizeof(folder));
    }
    const size_t len = workspace != NULL ? strlen(workspace) : 0;
    const bool is_below = len > 0 && strncmp(path, workspace, len) == 0 && path[len] == '/';
    return is_below ? path + len + 1 : path;
}
