// SPDX-License-Identifier: MIT
// proc_text: see proc_text.h.
#include "host/text/proc_text.h"

#include "host/text/number.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

const char *proc_text_value(const char *text, const char *key)
{
    const size_t length = strlen(key);
    for (const char *line = text; line != NULL && *line != '\0';) {
        if (strncmp(line, key, length) == 0 && line[length] == ':') {
            return line + length + 1;
        }
        line = strchr(line, '\n');
        line = line != NULL ? line + 1 : NULL;
    }
    return NULL;
}

uint64_t proc_text_kib(const char *text, const char *key)
{
    const char *value = proc_text_value(text, key);
    return value != NULL ? number_field(value) * 1024 : 0;
}

uint32_t proc_text_innermost_pid(const char *text)
{
    const char *at = proc_text_value(text, "NSpid");
    uint64_t last = 0;
    at = at != NULL ? at : "";
    do {
        at += strspn(at, " \t"); // not on the next line
    } while (number_take(&at, 10, &last));
    return (uint32_t)last;
}

uint64_t proc_text_start(const char *text)
{
    // Field 22. The command's name is in parentheses and may contain some itself.
    static const char fields[] = " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d"
                                 " %*d %*d %*d %" SCNu64;
    const char *end = strrchr(text, ')');
    uint64_t start = 0;
    return end != NULL && sscanf(end + 1, fields, &start) == 1 ? start : 0;
}

uint64_t proc_text_stack_top(const char *text)
{
    enum {
        FIELDS_BETWEEN = 25 // field 28; the name before field 3 ends at the last ')'
    };
    const char *at = strrchr(text, ')');
    for (int i = 0; at != NULL && i <= FIELDS_BETWEEN; i++) {
        at = strchr(at + 1, ' ');
    }
    uint64_t top = 0;
    const char *number = at != NULL ? at + 1 : "";
    return number_take(&number, 10, &top) ? top : 0;
}

struct proc_faults proc_text_faults(const char *text)
{
    struct proc_faults faults = {0};
    const char *after_name = strrchr(text, ')');
    if (after_name != NULL) {
        // Fields 3 to 12: state ppid pgrp session tty tpgid flags minflt cminflt majflt.
        (void)sscanf(after_name + 1, " %*c %*d %*d %*d %*d %*d %*u %" SCNu64 " %*u %" SCNu64,
                     &faults.minor,
                     &faults.major); // stays 0 if the kernel has another form
    }
    return faults;
}

struct proc_pages proc_text_pages(const char *text)
{
    struct proc_pages pages = {0};
    return sscanf(text, "%*u %" SCNu64 " %" SCNu64, &pages.resident, &pages.shared) == 2
               ? pages
               : (struct proc_pages){0}; // the kernel has another form
}

// It is called [heap] and follows the program's own mappings, near the beginning.
uint64_t proc_text_break(const char *text)
{
    const char *name = strstr(text, "[heap]");
    const char *line = name;
    while (line != NULL && line > text && line[-1] != '\n') {
        line--;
    }
    uint64_t start = 0;
    uint64_t end = 0;
    const bool is_found =
        line != NULL && sscanf(line, "%" SCNx64 "-%" SCNx64, &start, &end) == 2 && end > start;
    return is_found ? end - start : 0;
}
