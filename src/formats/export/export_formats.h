// SPDX-License-Identifier: MIT
// export_formats: the exporters, and the table of them. Context: H.
#pragma once

#include "formats/export/exporter.h"

extern const struct exporter exporter_folded;
extern const struct exporter exporter_heaptrack;
extern const struct exporter exporter_perfetto;
extern const struct exporter exporter_pprof;
extern const struct exporter exporter_prometheus;
extern const struct exporter exporter_sarif;
extern const struct exporter exporter_speedscope;
extern const struct exporter exporter_massif;
extern const struct exporter exporter_dhat;
extern const struct exporter exporter_dhat_adhoc;
extern const struct exporter exporter_callgrind;
extern const struct exporter exporter_csv;
extern const struct exporter exporter_json;
extern const struct exporter exporter_sqlite;
extern const struct exporter exporter_svg;

// All exporters, ended by NULL.
extern const struct exporter *const exporters[];

// Return the exporter of that name, NULL if there is none.
const struct exporter *exporter_find(const char *name);
