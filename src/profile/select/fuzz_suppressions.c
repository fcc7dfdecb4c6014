// SPDX-License-Identifier: MIT
// fuzz_suppressions: reads any bytes as rules, then matches each rule with all the others.
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "profile/select/pattern.h"
#include "profile/select/suppressions.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
    enum {
        RULES_MATCHED = 64
    };
    CLEANUP(suppressions_release) struct suppressions list = {0};
    struct err_info info = {0};
    struct bytes text = {.data = data, .len = len};
    if (suppressions_add(&list, text, SUPPRESSION_FILE, NULL, &info) != ERR_OK) {
        return 0;
    }
    size_t count = list.rules.len < RULES_MATCHED ? list.rules.len : RULES_MATCHED;
    for (size_t i = 0; i < count; i++) {
        const char *pattern = suppression_pattern(&list, i);
        bool is_plain = strpbrk(pattern, "^$*") == NULL;
        if (pattern[0] == '\0' || (is_plain && !leak_pattern_matches(pattern, pattern))) {
            abort();
        }
        for (size_t n = 0; n < count; n++) {
            (void)leak_pattern_matches(pattern, suppression_pattern(&list, n)); // must terminate
        }
    }
    return 0;
}
