// SPDX-License-Identifier: MIT
// import_formats: the importers, and the table of them. Context: H.
#pragma once

#include "formats/import/importer.h"

extern const struct importer importer_heaptrack;
extern const struct importer importer_massif;
extern const struct importer importer_dhat;
extern const struct importer importer_heap_text;
extern const struct importer importer_pprof;

// All importers, ended by NULL.
extern const struct importer *const importers[];

// Return the importer for a file that begins with `head`, NULL if there is none.
const struct importer *importer_find(struct bytes head);
