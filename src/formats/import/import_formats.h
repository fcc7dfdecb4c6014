// SPDX-License-Identifier: MIT
// import_formats: the importers for the table in importer.c. Context: H.
#pragma once

#include "formats/import/importer.h"

extern const struct importer importer_heaptrack;
extern const struct importer importer_massif;
extern const struct importer importer_dhat;
extern const struct importer importer_heap_text;
extern const struct importer importer_pprof;
