// SPDX-License-Identifier: MIT
// cmd_symbolize: `cairn symbolize FILE`: writes names into a recording that was made without them.
#include <inttypes.h>
#include <stdio.h>

#include "base/compiler.h"
#include "cli/commands/commands.h"
#include "cli/options/name_options.h"
#include "cli/text/screen_text.h"
#include "formats/import/input_file.h"
#include "host/text/format.h"
#include "profile/names/named_recording.h"
#include "recording/write/recording_writer.h"

struct symbolize_fields {
    struct name_words names;
};

// Check that the file is whole: writing a damaged one again would lose data.
static MUST_USE enum err check_file(const char *path,
                                    const struct importer *importer,
                                    const struct recording_open_result *result,
                                    struct err_info *info)
{
    if (importer != NULL) {
        return err_set(info, ERR_UNSUPPORTED, "'%s' is a file of %s, not a cairn recording", path,
                       importer->name);
    }
    if (result->condition == RECORDING_GROWING) {
        return err_set(info, ERR_UNSUPPORTED, "'%s' is not finished", path);
    }
    if (result->condition != RECORDING_COMPLETE) {
        return err_set(info, ERR_UNSUPPORTED, "'%s' is incomplete: %s", path, result->missing);
    }
    if (result->unknown_chunks > 0) {
        return err_set(info, ERR_UNSUPPORTED, "'%s' contains parts of a newer version of cairn",
                       path);
    }
    return ERR_OK;
}

static MUST_USE enum err open_profile(const char *path,
                                      struct name_places *names,
                                      struct profile **out,
                                      uint32_t *out_generation,
                                      struct err_info *info)
{
    CLEANUP(recording_release) struct recording recording = {0};
    struct recording_open_result result = {0};
    const struct importer *importer;
    TRY(input_open_recording(path, &names->progress, &recording, &result, &importer, info));
    TRY(check_file(path, importer, &result, info));
    *out_generation = result.generation;
    return profile_take_recording(&recording, &result, &names->sources, &names->progress, out,
                                  info);
}

static int print_outcome(const char *path, const struct named_recording *named)
{
    CLEANUP(strbuf_release) struct strbuf safe = {0};
    screen_append(&safe, path);
    if (!named->is_changed) {
        (void)printf("%s: nothing new was found; the file is unchanged\n", strbuf_text(&safe));
    } else {
        (void)printf("%s: %s named, %s with debug information\n", strbuf_text(&safe),
                     format_things(named->named_frames, "place", "places").text,
                     format_things(named->named_modules, "module", "modules").text);
    }
    return command_finish_output(STATUS_OK);
}

static int run(void *context, int count, char **operands)
{
    const struct symbolize_fields *fields = context;
    const char *path = operands[0];
    struct err_info info = {0};
    (void)count; // one FILE
    uint32_t generation = 0;
    CLEANUP(name_places_release) struct name_places names = {0};
    CLEANUP(profile_closep) struct profile *profile = NULL;
    CLEANUP(named_recording_release) struct named_recording named = {0};
    enum err problem = name_places_init(&names, &fields->names, &info);
    if (problem == ERR_OK) {
        problem = open_profile(path, &names, &profile, &generation, &info);
    }
    progress_clear(&names.progress);
    if (problem == ERR_OK) {
        problem = named_recording_make(profile, &named);
    }
    if (problem == ERR_OK && named.is_changed) {
        problem = recording_rewrite(path, &named.recording, generation, &info);
    }
    return problem == ERR_OK ? print_outcome(path, &named) : command_error(&info);
}

const struct command command_symbolize = {
    .name = "symbolize",
    .summary = "add missing symbol names to a recording",
    .synopsis = "[options] FILE",
    .description = "Resolve the functions, files and lines that FILE lacks, and write them into\n"
                   "FILE, so that it can be read on other machines. FILE is replaced atomically;\n"
                   "nothing else in it changes.\n",
    .examples = "cairn symbolize --debug-dir /srv/debug run.cairn\n",
    .options = {.count = 0,
                .shared = {PLACE_OPTIONS(symbolize_fields, names)},
                .follows_operands = true},
    .takes_one_file = true,
    .fields_bytes = sizeof(struct symbolize_fields),
    .run = run,
};
