// SPDX-License-Identifier: MIT
#include "server/api/answer.h"

#include "base/compiler.h"
#include "host/containers/memory_end.h"
#include "host/text/json_writer.h"

enum err answer_write(const struct answer_source *source,
                      const struct route *route,
                      const struct request_args *args,
                      struct strbuf *out,
                      struct problem *problem)
{
    struct request request;
    memory_end_forget();
    TRY(request_parse(args, route->params, &request, &problem->parameter, &problem->info));
    CLEANUP(query_release)
    struct query query = {.settings = source->settings,
                          .request = &request,
                          .snapshot = source->snapshot,
                          .trees = source->trees,
                          .cancel = source->cancel,
                          .problem = problem};
    struct json_writer w;
    TRY(query_init(&query, route->has_selection));
    json_to_strbuf(&w, out, JSON_COMPACT);
    query.view.w = &w;
    TRY(query_write_envelope(&query));
    TRY(route->view != NULL ? route->view(&query.view) : route->answer(&query));
    TRY(view_end(&query.view));
    return json_finish(&w) == ERR_OK ? memory_end_result() : ERR_NO_MEMORY;
}
