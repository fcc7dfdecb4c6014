// SPDX-License-Identifier: MIT
// push_labels: see push_labels.h.
#include "push/push_labels.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "host/memory/memory_groups.h"
#include "host/os/file.h"

enum {
    VALUE_MAX_BYTES = 256,
};

static const char service_label[] = "service_name";

// Characters that end a value.
static bool is_plain(char character)
{
    return (unsigned char)character > ' ' && character != '\x7f' &&
           strchr("{},=\"", character) == NULL;
}

enum err push_label_check(const char *label, struct err_info *info)
{
    const size_t name_len =
        strspn(label, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    const char *value = label + name_len + 1;
    if (name_len == 0 || isdigit((unsigned char)label[0]) || label[name_len] != '=' ||
        strlen(value) == 0 || strlen(label) > VALUE_MAX_BYTES) {
        return err_set(info, ERR_INVALID,
                       "--label: '%.80s' is not NAME=VALUE with a name of letters, digits and '_'",
                       label);
    }
    for (; *value != '\0'; value++) {
        if (!is_plain(*value)) {
            return err_set(info, ERR_INVALID,
                           "--label: '%.80s' has a blank or one of {},=\" in its value", label);
        }
    }
    return ERR_OK;
}

static void append_value(struct strbuf *out, const char *value, size_t len)
{
    for (size_t i = 0; i < min_u64(len, VALUE_MAX_BYTES); i++) {
        if (is_plain(value[i])) {
            strbuf_append_char(out, value[i]);
        } else {
            strbuf_append_char(out, '_');
        }
    }
}

// Return the value of the user's label, NULL if there is none.
static const char *value_of(const char *const *labels, size_t count, const char *name)
{
    const size_t len = strlen(name);
    for (size_t i = 0; i < count; i++) {
        if (strncmp(labels[i], name, len) == 0 && labels[i][len] == '=') {
            return labels[i] + len + 1;
        }
    }
    return NULL;
}

enum err push_labels_write(const char *const *labels,
                           size_t count,
                           const struct push_origin *origin,
                           struct strbuf *out)
{
    const char *name = value_of(labels, count, service_label);
    name = name != NULL ? name : path_file_name(origin->program);
    char pid[16] = "";
    if (origin->pid != 0) {
        (void)snprintf(pid, sizeof(pid), "%" PRIu32, origin->pid); // fits
    }
    const struct {
        const char *name;
        struct cgroup_part value;
    } found[] = {
        {"build_id", {origin->build_id, strlen(origin->build_id)}},
        {"container_id", cgroup_names_container(origin->cgroup)},
        {"executable", {origin->executable, strlen(origin->executable)}},
        {"host", {origin->host, strlen(origin->host)}},
        {"pid", {pid, strlen(pid)}},
        {"pod_uid", cgroup_names_pod(origin->cgroup)},
    };
    const char *between = "{";
    append_value(out, name[0] != '\0' ? name : "program", name[0] != '\0' ? strlen(name) : 7);
    for (size_t i = 0; i < count; i++) {
        if (value_of(labels + i, 1, service_label) == NULL) {
            strbuf_printf(out, "%s%s", between, labels[i]);
            between = ",";
        }
    }
    for (size_t i = 0; i < ARRAY_LEN(found); i++) {
        if (found[i].value.len > 0 && value_of(labels, count, found[i].name) == NULL) {
            strbuf_printf(out, "%s%s=", between, found[i].name);
            append_value(out, found[i].value.text, found[i].value.len);
            between = ",";
        }
    }
    strbuf_append_text(out, between[0] == ',' ? "}" : "");
    return strbuf_result(out);
}
