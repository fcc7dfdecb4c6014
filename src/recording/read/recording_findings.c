// SPDX-License-Identifier: MIT
#include "recording/read/recording_findings.h"

#include <stdarg.h>
#include <stdio.h>

enum {
    MAX_FINDINGS_OF_A_CHECK = 5
};

void recording_findings_add(struct recording_findings *findings,
                            enum recording_invariant invariant,
                            const char *format,
                            ...)
{
    struct recording_finding finding = {.invariant = invariant};
    findings->counts[invariant]++;
    findings->in_check++;
    if (findings->in_check > MAX_FINDINGS_OF_A_CHECK || findings->err != ERR_OK) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(finding.text, sizeof(finding.text), format, arguments); // it may truncate
    va_end(arguments);
    findings->err = finding_vec_push(&findings->items, finding);
}

uint64_t recording_findings_count(const struct recording_findings *findings)
{
    uint64_t count = 0;
    for (size_t i = 0; i < INVARIANT_COUNT; i++) {
        count += findings->counts[i];
    }
    return count;
}

void recording_findings_release(struct recording_findings *findings)
{
    finding_vec_release(&findings->items);
    *findings = (struct recording_findings){0};
}
