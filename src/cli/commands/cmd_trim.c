// SPDX-License-Identifier: MIT
// cmd_trim: `cairn trim -p PID`: lets a running process give free memory back to the kernel.
//
// Context: H. Exit status: 0 done, 2 refused.
#include <stddef.h>

#include "base/compiler.h"
#include "cli/commands/commands.h"
#include "cli/commands/trim_process.h"

struct trim_fields {
    uint32_t pid;
    uint64_t patience_ms;
    bool use_json;
};

static const struct trim_fields defaults = {.patience_ms = TRIM_PATIENCE_MS_BY_DEFAULT};

#define FIELD(field) offsetof(struct trim_fields, field)

// clang-format off
static const struct option_spec specs[] = {
    OPTION('p', "pid", COUNT, "PID", FIELD(pid), "the process", .minimum = 1),
    OPTION(0, "wait", DURATION_MS, "TIME", FIELD(patience_ms),
           "how long to look for a thread that waits for work (default: 5s)"),
    OPTION(0, "json", FLAG, NULL, FIELD(use_json), "write a JSON object"),
};
// clang-format on

static int run(void *context, int count, char **operands)
{
    const struct trim_fields *fields = context;
    struct err_info info = {0};
    if (count > 0) {
        return command_refuse(&command_trim,
                              "unexpected operand '%.100s': a process is given by -p", operands[0]);
    }
    if (fields->pid == 0) {
        return command_refuse(&command_trim, "no process is given: -p PID");
    }
    const enum err problem =
        trim_process((int)fields->pid, fields->patience_ms, fields->use_json, &info);
    return problem != ERR_OK ? command_error(&info) : command_finish_output(STATUS_OK);
}

const struct command command_trim = {
    .name = "trim",
    .summary = "let a running process give free memory back to the kernel",
    .synopsis = "[options] -p PID",
    .description =
        "Let a running process call what gives free memory back: malloc_trim(0) of glibc,\n"
        "the purge of jemalloc, the release of tcmalloc, mi_collect of mimalloc. A thread\n"
        "that waits for work makes the call and waits again; it holds no lock of an\n"
        "allocator, so the process cannot hang. No other thread is stopped. If no thread\n"
        "waits, the process is left as it is. Prints the resident memory before and\n"
        "after, what was promised, and how long the thread was held.\n",
    .options = {.specs = specs, .count = ARRAY_LEN(specs)},
    .examples = "cairn trim -p 4711\n"
                "cairn trim --wait 30s -p 4711\n",
    .fields_bytes = sizeof(struct trim_fields),
    .defaults = &defaults,
    .run = run,
};
