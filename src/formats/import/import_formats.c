// SPDX-License-Identifier: MIT
// import_formats: the table of importers. See import_formats.h.
#include "formats/import/import_formats.h"

const struct importer *const importers[] = {
    &importer_heaptrack, &importer_massif, &importer_dhat,
    &importer_heap_text, &importer_pprof,  NULL,
};

const struct importer *importer_find(struct bytes head)
{
    for (const struct importer *const *at = importers; *at != NULL; at++) {
        if ((*at)->recognizes(head)) {
            return *at;
        }
    }
    return NULL;
}
