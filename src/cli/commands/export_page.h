// SPDX-License-Identifier: MIT
// export_page: the format `html` of cairn export: the viewer and its answers in one file.
//
// Not among the formats of src/formats, since it is the server's answers that it holds.
// Context: H.
#pragma once

#include "formats/export/exporter.h"

extern const struct exporter exporter_html;
