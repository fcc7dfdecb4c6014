// SPDX-License-Identifier: MIT
// Files of other tools, each changed in hundreds of ways: refusals, what is said of a damaged file,
// and the recording of each file that is read follow from the file alone (changed_bytes.h). The
// fuzzers look for harm; this shows what a change of an importer changes.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/compiler.h"
#include "formats/import/import_formats.h"
#include "formats/test_support/unpacked_bytes.h"
#include "host/os/file.h"
#include "recording/test_support/recording_outcome.h"

enum {
    CHANGED_FILES = 600,   // of each file
    CHANGES_MAX = 3,       // in one
    FILE_BYTES_MAX = 8192, // with its changes
};

static void
import_changed(const struct importer *importer, struct bytes file, struct outcome_sum *sum)
{
    CLEANUP(unpacked_release) struct unpacked in = {0};
    CLEANUP(recording_release) struct recording recording = {0};
    char damage[IMPORT_DAMAGE_BYTES] = "";
    struct err_info info = {0};
    struct bytes head = {0};
    enum err err = unpacked_open_bytes(&in, file, "file", &info);
    if (err == ERR_OK) {
        err = unpacked_peek(&in, IMPORT_HEAD_BYTES, &head, &info);
    }
    if (err == ERR_OK) {
        const struct importer *found = importer_find(head);
        outcome_add_text(sum, found != NULL ? found->name : "unknown");
        err = importer_read(importer, &in, &recording, damage, &info);
    }
    char *of_jansson = strstr(info.text, " near "); // its words depend on its version
    if (of_jansson != NULL) {
        *of_jansson = '\0';
    }
    outcome_add_text(sum, err != ERR_OK ? info.text : damage);
    if (err == ERR_OK) {
        outcome_add_recording(sum, &recording);
    }
}

static void changed_files_are_read_and_refused_alike_each_time(void **state)
{
    static const struct {
        const char *name;
        const struct importer *importer;
    } files[] = {
        {"import_dhat/heap", &importer_dhat},
        {"import_dhat/adhoc.json", &importer_dhat},
        {"import_massif/milliseconds", &importer_massif},
        {"import_massif/instructions", &importer_massif},
        {"import_heap_text/gperftools", &importer_heap_text},
        {"import_heap_text/jemalloc", &importer_heap_text},
        {"import_heaptrack/interpreted", &importer_heaptrack},
        {"import_heaptrack/raw", &importer_heaptrack},
        {"import_heaptrack/freed_as_another", &importer_heaptrack},
        {"import_pprof/go", &importer_pprof},
        {"import_pprof/converted", &importer_pprof},
    };
    (void)state;
    unsigned changed = 0;
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        CLEANUP(strbuf_release) struct strbuf path = {0};
        CLEANUP(strbuf_release) struct strbuf file = {0};
        struct outcome_sum sums[2] = {0};
        uint64_t random = i + 1;
        strbuf_printf(&path, "%s/%s", CORPUS, files[i].name);
        assert_int_equal(file_read(strbuf_text(&path), FILE_BYTES_MAX, &file, NULL), ERR_OK);
        for (unsigned n = 0; n < 2 * CHANGED_FILES; n++) {
            const unsigned k = n % CHANGED_FILES;
            random = k == 0 ? i + 1 : random;
            uint8_t bytes[FILE_BYTES_MAX];
            size_t len = file.len;
            memcpy(bytes, file.data, len);
            for (unsigned c = 0; c < k % (CHANGES_MAX + 1); c++) {
                len = change_bytes(bytes, len, sizeof(bytes), &random);
            }
            import_changed(files[i].importer, (struct bytes){.data = bytes, .len = len},
                           &sums[n / CHANGED_FILES]);
        }
        changed += !outcomes_agree(sums, files[i].name);
    }
    assert_int_equal(changed, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(changed_files_are_read_and_refused_alike_each_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
