// SPDX-License-Identifier: MIT
// cmd_selftest: `cairn self-test`: records a program of cairn's own by every way in.
//
// It says which ways work on this machine, in this container and with this kernel. The work is in
// cli/probe. It takes seconds, at most thirty.
#include <stdio.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "cli/commands/commands.h"
#include "cli/probe/way_probe.h"
#include "cli/record/scratch_folder.h"
#include "cli/text/screen_text.h"

enum {
    LIMIT_MS = 30000, // emulated machines need ten
    NAME_COLUMNS = 35,
};

struct self_test_fields {
    bool no_color;
};

// clang-format off
static const struct option_spec specs[] = {
    OPTION(0, "no-color", FLAG, NULL, offsetof(struct self_test_fields, no_color),
           "no colours, even on a terminal (also: NO_COLOR)"),
};
// clang-format on

static void print_result(const struct way_probe *way, const struct way_result *result, bool color)
{
    static const struct {
        const char *word;
        enum paint paint;
    } verdicts[] = {[WAY_WORKS] = {"ok", PAINT_GOOD},
                    [WAY_FAILS] = {"FAILED", PAINT_WARNING},
                    [WAY_UNTRIED] = {"-", PAINT_GOOD}};
    (void)printf("  %s%-6s%s  %-*s%s\n", paint_begin(color, verdicts[result->verdict].paint),
                 verdicts[result->verdict].word, paint_end(color),
                 result->verdict == WAY_WORKS ? NAME_COLUMNS : 0, way->name,
                 result->verdict == WAY_WORKS ? strbuf_text(&result->detail) : "");
    if (result->verdict != WAY_WORKS) {
        (void)printf("          %s\n", strbuf_text(&result->detail));
    }
    (void)fflush(stdout); // the next way takes some time
}

static MUST_USE enum err try_ways(bool color, size_t *failed, size_t *tried, struct err_info *info)
{
    const uint64_t deadline_ms = clock_monotonic_ms() + LIMIT_MS;
    CLEANUP(scratch_folder_remove) struct scratch_folder scratch = {0};
    TRY(scratch_folder_make(&scratch, info));
    for (size_t i = 0; i < way_probe_count; i++) {
        CLEANUP(way_result_release) struct way_result result = {0};
        TRY(way_probe_run(&way_probes[i], strbuf_text(&scratch.recording), deadline_ms, &result,
                          info));
        print_result(&way_probes[i], &result, color);
        *tried += result.verdict != WAY_UNTRIED;
        *failed += result.verdict == WAY_FAILS;
    }
    return ERR_OK;
}

static int run(void *context, int count, char **operands)
{
    const struct self_test_fields *fields = context;
    const bool color = !fields->no_color && command_use_color(STDOUT_FILENO);
    struct err_info info = {0};
    struct utsname kernel = {0};
    size_t failed = 0;
    size_t tried = 0;
    if (count > 0) {
        return command_refuse(&command_self_test, "unexpected operand '%.100s'", operands[0]);
    }
    (void)uname(&kernel); // it cannot fail
    (void)printf("cairn %s on %s %s, %s\n", CAIRN_VERSION, kernel.sysname, kernel.release,
                 kernel.machine);
    if (try_ways(color, &failed, &tried, &info) != ERR_OK) {
        return command_error(&info);
    }
    (void)printf("%s%zu of %zu ways work%s\n",
                 paint_begin(color, failed > 0 ? PAINT_WARNING : PAINT_GOOD), tried - failed, tried,
                 paint_end(color));
    return command_finish_output(failed > 0 ? STATUS_FOUND : STATUS_OK);
}

const struct command command_self_test = {
    .name = "self-test",
    .summary = "record a bundled program by every way in, to see what works here",
    .synopsis = "[--no-color]",
    .description =
        "Record a small program that belongs to cairn: from its start, with the\n"
        "preloaded library and without, linked statically, sampled, and while it runs.\n"
        "Compare each recording with what the program does, and print for each way\n"
        "whether it works on this machine, in this container and with this kernel, or\n"
        "why not. It takes seconds, at most thirty, and leaves no file.\n\n"
        "The exit status is 0 if every way works, 1 if one does not, 2 if nothing could\n"
        "be tried.\n",
    .examples = "cairn self-test\n",
    .options = {.specs = specs, .count = ARRAY_LEN(specs)},
    .fields_bytes = sizeof(struct self_test_fields),
    .run = run,
};
