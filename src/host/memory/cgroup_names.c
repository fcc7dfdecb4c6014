// SPDX-License-Identifier: MIT
#include "host/memory/cgroup_names.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

enum {
    CONTAINER_ID_LEN = 64,
    POD_UID_LEN = 36,
};

struct cgroup_part cgroup_names_container(const char *cgroup)
{
    struct cgroup_part found = {0};
    for (const char *at = cgroup; *at != '\0';) {
        const size_t len = strspn(at, "0123456789abcdef");
        if (len == CONTAINER_ID_LEN) {
            found = (struct cgroup_part){at, len};
        }
        at += len > 0 ? len : 1;
    }
    return found;
}

struct cgroup_part cgroup_names_pod(const char *cgroup)
{
    static const char form[] = "00000000-0000-0000-0000-000000000000";
    for (const char *at = strstr(cgroup, "pod"); at != NULL; at = strstr(at + 1, "pod")) {
        size_t len = 0;
        for (const char *uid = at + 3; len < POD_UID_LEN; len++) {
            const bool is_right = form[len] == '-' ? uid[len] == '-' || uid[len] == '_'
                                                   : isxdigit((unsigned char)uid[len]) != 0;
            if (!is_right) {
                break;
            }
        }
        if (len == POD_UID_LEN) {
            return (struct cgroup_part){at + 3, len};
        }
    }
    return (struct cgroup_part){0};
}
