// SPDX-License-Identifier: MIT
// export_formats: the table of exporters. See export_formats.h.
#include "formats/export/export_formats.h"

#include <string.h>

const struct exporter *const exporters[] = {
    &exporter_folded,   &exporter_pprof,      &exporter_speedscope, &exporter_massif,
    &exporter_dhat,     &exporter_dhat_adhoc, &exporter_heaptrack,  &exporter_callgrind,
    &exporter_csv,      &exporter_json,       &exporter_svg,        &exporter_sqlite,
    &exporter_perfetto, &exporter_prometheus, &exporter_sarif,      NULL,
};

const struct exporter *exporter_find(const char *name)
{
    for (const struct exporter *const *at = exporters; *at != NULL; at++) {
        if (strcmp((*at)->name, name) == 0) {
            return *at;
        }
    }
    return NULL;
}
