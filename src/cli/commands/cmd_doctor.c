// SPDX-License-Identifier: MIT
// cmd_doctor: `cairn doctor`: says in one screen what the settings of this machine allow, and the
// cure where they forbid something. The checks are in cli/doctor.
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/commands/commands.h"
#include "cli/doctor/machine_check.h"
#include "cli/text/screen_text.h"

enum {
    NAME_COLUMNS = 19,
};

struct doctor_fields {
    bool no_color;
};

// clang-format off
static const struct option_spec specs[] = {
    OPTION(0, "no-color", FLAG, NULL, offsetof(struct doctor_fields, no_color),
           "no colours, even on a terminal (also: NO_COLOR)"),
};
// clang-format on

static void print_result(const char *name, const struct machine_result *result, bool color)
{
    static const struct {
        const char *word;
        enum paint paint;
    } verdicts[] = {[MACHINE_WORKS] = {"ok", PAINT_GOOD},
                    [MACHINE_LACKS] = {"note", PAINT_TITLE},
                    [MACHINE_FORBIDS] = {"NO", PAINT_WARNING}};
    (void)printf("  %s%-4s%s  %-*s%s\n", paint_begin(color, verdicts[result->verdict].paint),
                 verdicts[result->verdict].word, paint_end(color), NAME_COLUMNS, name,
                 strbuf_text(&result->detail));
    if (result->cure != NULL) {
        (void)printf("        %-*s%s\n", NAME_COLUMNS, "", result->cure);
    }
}

static size_t look_at_all(bool color)
{
    size_t forbidden = 0;
    for (size_t i = 0; i < machine_check_count; i++) {
        CLEANUP(machine_result_release)
        struct machine_result result = machine_checks[i].look("");
        print_result(machine_checks[i].name, &result, color);
        forbidden += result.verdict == MACHINE_FORBIDS;
    }
    return forbidden;
}

static int run(void *context, int count, char **operands)
{
    const struct doctor_fields *fields = context;
    const bool color = !fields->no_color && command_use_color(STDOUT_FILENO);
    struct err_info info = {0};
    struct utsname kernel = {0};
    if (count > 0) {
        return command_refuse(&command_doctor, "unexpected operand '%.100s'", operands[0]);
    }
    (void)uname(&kernel); // it cannot fail
    (void)printf("cairn %s on %s %s, %s\n", CAIRN_VERSION, kernel.sysname, kernel.release,
                 kernel.machine);
    const size_t forbidden = look_at_all(color);
    (void)puts("'cairn self-test' tries what works.");
    return command_end(ERR_OK, &info, forbidden > 0 ? STATUS_FOUND : STATUS_OK);
}

const struct command command_doctor = {
    .name = "doctor",
    .summary = "say what the settings of this machine allow, with the cure where they do not",
    .synopsis = "[--no-color]",
    .description =
        "Say in one screen what the settings of this machine allow: attaching to running\n"
        "processes, filters of system calls, namespaces, control groups, the disk, the\n"
        "clock, names by debuginfod, and the libraries for serving and sending. Each line\n"
        "that is not \"ok\" has the cure below it. Nothing is tried and nothing is changed:\n"
        "'cairn self-test' tries.\n\n"
        "The exit status is 0, or 1 if something is forbidden or missing.\n",
    .examples = "cairn doctor\n",
    .options = {.specs = specs, .count = ARRAY_LEN(specs)},
    .fields_bytes = sizeof(struct doctor_fields),
    .run = run,
};
