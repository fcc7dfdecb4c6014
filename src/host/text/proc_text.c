// SPDX-License-Identifier: MIT
#include "host/text/proc_text.h"

#include "base/hash.h"
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

uint64_t proc_text_number(const char *text, const char *key)
{
    const char *value = proc_text_value(text, key);
    return value != NULL ? number_field(value) : 0;
}

uint64_t proc_text_mask(const char *text, const char *key)
{
    const char *value = proc_text_value(text, key);
    uint64_t mask = 0;
    if (value != NULL) {
        value += strspn(value, " \t");
        (void)number_take(&value, 16, &mask); // else it is empty
    }
    return mask;
}

uint64_t proc_text_kib(const char *text, const char *key)
{
    return proc_text_number(text, key) * 1024;
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

// Return a field of /proc/PID/stat, counted as proc_pid_stat(5) does; "" if it is missing. The name
// before field 3 is in parentheses and may contain some itself.
static const char *stat_field(const char *text, int number)
{
    const char *at = strrchr(text, ')');
    for (int field = 2; at != NULL && field < number; field++) {
        at = strchr(at + 1, ' ');
    }
    return at != NULL ? at + 1 : "";
}

char proc_text_state(const char *text)
{
    const char *state = stat_field(text, 3);
    if (*state == '\0') {
        return 'X';
    }
    return *state;
}

uint64_t proc_text_start(const char *text)
{
    return number_field(stat_field(text, 22));
}

uint64_t proc_text_environment_end(const char *text)
{
    return number_field(stat_field(text, 51));
}

uint64_t proc_text_stack_top(const char *text)
{
    return number_field(stat_field(text, 28));
}

uint64_t proc_text_image(const char *text)
{
    static const int fields[] = {26, 27, 45, 46, 48};    // startcode, endcode, data, arg_start
    uint64_t image = number_field(stat_field(text, 28)); // startstack
    if (image <= 1) {
        return 0; // proc(5): what may not be read is 0 or 1
    }
    for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++) {
        image = hash_mix(image) + number_field(stat_field(text, fields[i]));
    }
    return image != 0 ? image : 1;
}

// "running", or numbers: the last two are the stack pointer and the place in the code.
uint64_t proc_text_stack_pointer(const char *text)
{
    uint64_t last = 0;
    uint64_t before_last = 0;
    for (const char *at = text; (at = strstr(at, " 0x")) != NULL;) {
        before_last = last;
        at += strlen(" 0x");
        (void)number_take(&at, 16, &last); // another form is another kernel's
    }
    return before_last;
}

struct proc_faults proc_text_faults(const char *text)
{
    return (struct proc_faults){.minor = number_field(stat_field(text, 10)),
                                .major = number_field(stat_field(text, 12))};
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
