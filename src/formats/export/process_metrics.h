// SPDX-License-Identifier: MIT
// process_metrics: the heap of each process that exists, in Prometheus' text format.
//
//   cairn_process_live_bytes{pid="71",executable="/srv/server",container_id="4f1c..."} 4096
//
// At most PROCESS_METRICS_MAX processes, those with the most live bytes.
// Context: H.
#pragma once

#include <stdio.h>

#include "base/err.h"
#include "formats/export/exporter.h"
#include "host/text/strbuf.h"

enum {
    PROCESS_METRICS_MAX = 20,
};

// Write the families. `live`: the rows of the view whose processes exist. ERR_NO_MEMORY.
enum err process_metrics_write(const struct export_view *view,
                               const struct selection *live,
                               FILE *out) MUST_USE;

// Append a label of a series, name="value", after a comma unless it is the first one. `text` has
// passed clean_append.
void metric_label_append(struct strbuf *out, const char *name, const struct strbuf *text);

// Clean a text and append it.
void metric_label_append_text(struct strbuf *out, const char *name, const char *text);
