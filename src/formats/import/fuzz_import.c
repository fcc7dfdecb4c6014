// SPDX-License-Identifier: MIT
// fuzz_import: read any bytes with one importer, which the build names as FUZZ_IMPORTER.
//
// The recording must pass recording_check's walk and its sums, and every refusal must have a
// sentence. unpacked.c gets the input first and handles compression. Seeds:
// tests/fuzz/corpus/import_*, made by the tools themselves.
#include <stdlib.h>

#include "base/compiler.h"
#include "formats/import/import_formats.h"
#include "formats/test_support/unpacked_bytes.h"
#include "recording/test_support/recording_check.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    CLEANUP(unpacked_release) struct unpacked in = {0};
    CLEANUP(recording_release) struct recording recording = {0};
    CLEANUP(recording_findings_release) struct recording_findings findings = {0};
    char damage[IMPORT_DAMAGE_BYTES];
    struct err_info info = {0};
    struct bytes head;
    if (unpacked_open_bytes(&in, (struct bytes){.data = data, .len = size}, "fuzz", &info) !=
            ERR_OK ||
        unpacked_peek(&in, IMPORT_HEAD_BYTES, &head, &info) != ERR_OK) {
        return 0;
    }
    (void)importer_find(head); // any result
    enum err err = importer_read(&FUZZ_IMPORTER, &in, &recording, damage, &info);
    if (err != ERR_OK && (info.text[0] == '\0' || info.code != err)) {
        abort(); // every refusal has a sentence
    }
    if (err == ERR_OK && recording_check(&recording, &findings) == ERR_OK &&
        recording_findings_count(&findings) > 0) {
        abort();
    }
    return 0;
}
