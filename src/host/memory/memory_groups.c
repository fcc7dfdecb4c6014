// SPDX-License-Identifier: MIT
#include "host/memory/memory_groups.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/text/number.h"

enum {
    LINE_MAX_BYTES = 4096,
    FILE_MAX_BYTES = 64 * 1024,
};

bool memory_group_read(const char *folder, const char *file, struct strbuf *out)
{
    CLEANUP(strbuf_release) struct strbuf path = {0};
    strbuf_printf(&path, "%s/%s", folder, file);
    return strbuf_result(&path) == ERR_OK &&
           file_read(strbuf_text(&path), FILE_MAX_BYTES, out, NULL) == ERR_OK;
}

uint64_t memory_group_number(const char *folder, const char *file)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    uint64_t number;
    if (!memory_group_read(folder, file, &text)) {
        return UINT64_MAX;
    }
    const char *at = strbuf_text(&text);
    return number_take(&at, 10, &number) ? number : UINT64_MAX;
}

uint64_t memory_group_entry(const char *text, const char *key)
{
    const size_t len = strlen(key);
    uint64_t number;
    for (const char *at = text; (at = strstr(at, key)) != NULL; at += len) {
        const bool is_word = at == text || at[-1] == '\n' || at[-1] == ' ';
        const char *value = at + len + 1;
        if (is_word && (at[len] == ' ' || at[len] == '=') && number_take(&value, 10, &number)) {
            return number;
        }
    }
    return 0;
}

static bool has_word(const char *words, const char *word)
{
    const size_t len = strlen(word);
    for (const char *at = words; (at = strstr(at, word)) != NULL; at += len) {
        if ((at == words || at[-1] == ',') && (at[len] == ',' || at[len] == '\0')) {
            return true;
        }
    }
    return false;
}

// Visit the group of a line "number:controllers:path"; version 2 has no controllers.
static void visit_line(const char *root, char *line, memory_group_visit *visit, void *context)
{
    char *controllers = strchr(line, ':');
    char *path = controllers != NULL ? strchr(controllers + 1, ':') : NULL;
    if (path == NULL) {
        return;
    }
    *path++ = '\0';
    controllers++;
    path[strcspn(path, "\n")] = '\0';
    const bool is_version_1 = controllers[0] != '\0';
    if (is_version_1 && !has_word(controllers, "memory")) {
        return;
    }
    for (size_t len = strlen(path);; len--) {
        if (len == 0 || path[len] == '/' || path[len] == '\0') {
            CLEANUP(strbuf_release) struct strbuf folder = {0};
            strbuf_printf(&folder, "%s%s%.*s", root, is_version_1 ? "/memory" : "", (int)len, path);
            if (strbuf_result(&folder) == ERR_OK) {
                visit(context, strbuf_text(&folder), is_version_1);
            }
        }
        if (len == 0) {
            return;
        }
    }
}

void memory_groups_visit(const char *proc_cgroup,
                         const char *cgroup_root,
                         memory_group_visit *visit,
                         void *context)
{
    CLEANUP(stream_closep) FILE *file = fopen(proc_cgroup, "re");
    if (file == NULL) {
        return;
    }
    char line[LINE_MAX_BYTES];
    while (fgets(line, sizeof(line), file) != NULL) {
        visit_line(cgroup_root, line, visit, context);
    }
}

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
