// SPDX-License-Identifier: MIT
// api_source: /api/v1/source: a source file with the costs of its lines.
#include "base/clock.h"
#include "base/compiler.h"
#include "server/api/api.h"
#include "server/state/source_file.h"
#include "views_json/views/views.h"

static void write_text(struct query *q, const char *path)
{
    struct json_writer *w = q->view.w;
    CLEANUP(strbuf_release) struct strbuf text = {0};
    struct err_info info = {0};
    uint64_t modified_ms = 0;
    bool is_readable = false;
    if (!query_can(q, CAPABILITY_SOURCE)) {
        (void)err_set(&info, ERR_PERMISSION, "the server does not show source files"); // sent below
    } else {
        is_readable = source_file_read(path, &text, &modified_ms, &info) == ERR_OK;
    }
    uint64_t start_ms = q->profile->recording.meta.start_unix_ns / NS_PER_MS;
    json_key_bool(w, "is_readable", is_readable);
    json_key_string(w, "reason", is_readable ? NULL : info.text);
    json_key(w, "text");
    if (is_readable) {
        json_value_string_bytes(w, strbuf_text(&text), text.len);
    } else {
        json_value_null(w);
    }
    json_key_bool(w, "is_newer", is_readable && start_ms > 0 && modified_ms > start_ms);
}

enum err api_source(struct query *q)
{
    const char *path = request_text(q->request, PARAM_FILE_PATH);
    if (path == NULL) {
        return problem_set(q->problem, 0, PARAM_FILE_PATH, ERR_INVALID, "file_path is required");
    }
    if (!view_source_is_named(&q->view, path)) {
        return problem_set(q->problem, 0, PARAM_FILE_PATH, ERR_NOT_FOUND,
                           "file_path: no frame of the recording names this file");
    }
    json_key_string(q->view.w, "path", path);
    write_text(q, path);
    return view_source_lines(&q->view, path);
}
