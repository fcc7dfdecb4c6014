// SPDX-License-Identifier: MIT
// metric_label: the labels of a series in the text format of Prometheus: name="value",name="value".
//
// Context: H; the caller reads strbuf_result(out).
#pragma once

#include "host/text/strbuf.h"

// Append a label, after a comma unless it is the first one. `text` has passed clean_append.
void metric_label_append(struct strbuf *out, const char *name, const struct strbuf *text);

// Clean a text and append it.
void metric_label_append_text(struct strbuf *out, const char *name, const char *text);
