// SPDX-License-Identifier: MIT
#include "formats/codec/metric_label.h"

#include "base/compiler.h"
#include "formats/codec/clean_text.h"

void metric_label_append(struct strbuf *out, const char *name, const struct strbuf *text)
{
    strbuf_printf(out, "%s%s=\"", out->len > 0 ? "," : "", name);
    for (const char *at = strbuf_text(text); *at != '\0'; at++) {
        strbuf_append_text(out, *at == '"' || *at == '\\' ? "\\" : "");
        strbuf_append_char(out, *at);
    }
    strbuf_append_char(out, '"');
}

void metric_label_append_text(struct strbuf *out, const char *name, const char *text)
{
    CLEANUP(strbuf_release) struct strbuf clean = {0};
    clean_append(&clean, text, (struct clean_rule){0});
    metric_label_append(out, name, &clean);
}
