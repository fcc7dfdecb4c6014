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
#include "host/text/utf8.h"

enum {
    VALUE_MAX_BYTES = 256,
};

static const char service_label[] = "service_name";

// Characters of a name; all others end it or are refused.
#define WORD "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"
static const char word_characters[] = WORD;
static const char service_characters[] = WORD ".-/";

// Whether a character neither ends a value nor is trimmed from it.
static bool is_plain(char character)
{
    return (unsigned char)character > ' ' && character != '\x7f' &&
           strchr("{},=\"", character) == NULL;
}

static MUST_USE enum err
check_value(const char *label, const char *value, bool is_service, struct err_info *info)
{
    if (is_service && value[strspn(value, service_characters)] != '\0') {
        return err_set(info, ERR_INVALID,
                       "--label: '%.80s': a name of a service has letters, digits and _-./ only",
                       label);
    }
    for (const char *at = value; *at != '\0'; at++) {
        if (!is_plain(*at)) {
            return err_set(info, ERR_INVALID,
                           "--label: '%.80s' has a blank or one of {},=\" in its value", label);
        }
    }
    return utf8_is_valid(value)
               ? ERR_OK
               : err_set(info, ERR_INVALID, "--label: '%.80s' is not UTF-8", label);
}

enum err push_label_check(const char *label, struct err_info *info)
{
    const size_t name_len = strspn(label, word_characters);
    if (name_len == 0 || isdigit((unsigned char)label[0]) || label[name_len] != '=' ||
        label[name_len + 1] == '\0') {
        return err_set(info, ERR_INVALID,
                       "--label: '%.80s' is not NAME=VALUE with a name of letters, digits and '_'",
                       label);
    }
    if (strlen(label) > VALUE_MAX_BYTES) {
        return err_set(info, ERR_INVALID, "--label: '%.80s...' has more than %d bytes", label,
                       (int)VALUE_MAX_BYTES);
    }
    if (strncmp(label, "__", 2) == 0) {
        return err_set(info, ERR_INVALID,
                       "--label: '%.80s': names that begin with '__' are the collector's own",
                       label);
    }
    const bool is_service =
        name_len == strlen(service_label) && strncmp(label, service_label, name_len) == 0;
    return check_value(label, label + name_len + 1, is_service, info);
}

bool push_labels_are_one(const char *label, const char *other)
{
    const size_t name_len = strspn(label, word_characters);
    return strncmp(label, other, name_len + 1) == 0; // with the '='
}

// Append the name of the service. Pyroscope refuses all profiles of one with another character.
static void append_service(struct strbuf *out, const char *name)
{
    name = name[0] != '\0' ? name : "program";
    for (size_t i = 0; i < min_u64(strlen(name), VALUE_MAX_BYTES); i++) {
        if (strchr(service_characters, name[i]) != NULL) {
            strbuf_append_char(out, name[i]);
        } else {
            strbuf_append_char(out, '_');
        }
    }
}

static void append_value(struct strbuf *out, const char *value, size_t len)
{
    len = utf8_cut(value, len, VALUE_MAX_BYTES);
    while (len > 0) {
        uint32_t code;
        const size_t part = utf8_decode_bytes(value, len, &code);
        if (part == 0 || !is_plain(*value)) {
            strbuf_append_char(out, '_');
        } else {
            strbuf_append(out, value, part);
        }
        value += max_u64(part, 1);
        len -= max_u64(part, 1);
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
    append_service(out, name);
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
