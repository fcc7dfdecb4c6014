// SPDX-License-Identifier: MIT
// answer: see answer.h.
#include "server/api/answer.h"

#include "base/compiler.h"
#include "host/text/json_writer.h"

enum err answer_write(const struct answer_source *source,
                      const struct route *route,
                      const struct request_args *args,
                      struct strbuf *out,
                      struct problem *problem)
{
    struct request request;
    TRY(request_parse(args, route->params, &request, &problem->parameter, &problem->info));
    CLEANUP(question_release)
    struct question question = {.settings = source->settings,
                                .request = &request,
                                .snapshot = source->snapshot,
                                .trees = source->trees,
                                .cancel = source->cancel,
                                .problem = problem};
    struct json_writer w;
    TRY(question_init(&question, route->has_selection));
    json_to_strbuf(&w, out, JSON_COMPACT);
    question.view.w = &w;
    json_begin_object(&w);
    TRY(question_write_envelope(&question));
    TRY(route->answer(&question));
    TRY(view_end(&question.view));
    json_end_object(&w);
    return json_finish(&w) == ERR_OK ? ERR_OK : ERR_NO_MEMORY;
}
