// SPDX-License-Identifier: MIT
// cmd_verify: `cairn verify FILE`: checks whether a recording is whole and consistent.
#include <inttypes.h>
#include <stdio.h>

#include "base/compiler.h"
#include "cli/commands/commands.h"
#include "formats/import/input_file.h"
#include "host/text/format.h"
#include "recording/read/recording_dump.h"
#include "recording/read/recording_reader.h"
#include "recording/read/recording_verify.h"

static bool print_damage(void *context, const struct dumped_chunk *chunk)
{
    (void)context;
    if (chunk->condition != ERR_OK) {
        (void)printf("%s\n", chunk->problem);
    }
    return true;
}

// Print the faults of the file format. Return how many.
static uint64_t print_file_findings(const struct dump_summary *summary)
{
    uint64_t found = summary->damaged_chunks;
    if (summary->is_header_damaged) {
        (void)puts("the header is damaged");
        found++;
    }
    if (summary->unreadable_bytes > 0) {
        (void)printf("%s from offset %" PRIu64 " %s not in a complete chunk\n",
                     format_things(summary->unreadable_bytes, "byte", "bytes").text,
                     summary->unreadable_offset, summary->unreadable_bytes == 1 ? "is" : "are");
        found++;
    }
    if (summary->has_footer && !summary->has_contents) {
        (void)puts("the table of contents does not match the file");
        found++;
    }
    return found;
}

static uint64_t print_findings(const struct recording_findings *findings)
{
    for (size_t i = 0; i < findings->items.len; i++) {
        (void)puts(findings->items.items[i].text);
    }
    uint64_t count = recording_findings_count(findings);
    if (count > findings->items.len) {
        (void)printf("and %" PRIu64 " more of these kinds\n", count - findings->items.len);
    }
    return count;
}

static int run(void *fields, int count, char **operands)
{
    const char *path = operands[0];
    (void)fields; // it has none
    (void)count;  // one FILE
    CLEANUP(recording_release) struct recording recording = {0};
    CLEANUP(recording_findings_release) struct recording_findings findings = {0};
    struct recording_open_result result;
    struct err_info info = {0};
    const struct importer *importer;
    struct dump_summary summary = {0};
    if (input_open_recording(path, NULL, &recording, &result, &importer, &info) != ERR_OK ||
        (importer == NULL && recording_dump(path, print_damage, NULL, &summary, &info) != ERR_OK) ||
        recording_verify(&recording, &findings) != ERR_OK) {
        return command_error(&info);
    }
    uint64_t found = print_file_findings(&summary);
    if (result.condition != RECORDING_COMPLETE && result.condition != RECORDING_GROWING) {
        (void)puts(result.missing);
        found++;
    }
    found += print_findings(&findings);
    if (found == 0 && importer != NULL) {
        (void)printf("sound: a file of %s, %s, read as %s\n", importer->name,
                     format_things(result.file_bytes, "byte", "bytes").text,
                     format_things(recording.row_count, "row", "rows").text);
    } else if (found == 0) {
        (void)printf("sound: %s in %s, %s%s\n",
                     format_things(summary.chunk_count, "chunk", "chunks").text,
                     format_things(summary.file_bytes, "byte", "bytes").text,
                     format_things(recording.row_count, "row", "rows").text,
                     result.condition == RECORDING_GROWING ? ", still growing" : "");
    }
    return command_finish_output(found == 0 ? STATUS_OK : STATUS_FOUND);
}

const struct command command_verify = {
    .name = "verify",
    .summary = "check a recording for damage",
    .synopsis = "FILE",
    .description =
        "Read every byte of FILE. Check checksums, lengths and references, and that the\n"
        "figures of stacks and time slices add up to the totals. Print one line per\n"
        "finding.\n\n"
        "The exit status is 0 if FILE is sound, 1 if it is not, 2 if it cannot be read.\n",
    .examples = "cairn verify run.cairn\n",
    .takes_one_file = true,
    .run = run,
};
