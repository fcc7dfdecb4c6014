// SPDX-License-Identifier: MIT
// export_page: the format `html` of `cairn export`: the viewer and its answers in one file.
//
// The format is here and not in src/formats because the page holds answers of the server. Context:
// H.
#pragma once

#include "formats/export/exporter.h"

extern const struct exporter exporter_html;
