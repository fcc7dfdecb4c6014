// SPDX-License-Identifier: MIT
// store_queries: see store_queries.h.
#include "store/store_queries.h"

#include <string.h>

#include "base/compiler.h"

// The scope, of the table `recordings`. A run counts once in it, with its last state.
#define MATCHES                                                                           \
    "(?1='' OR service=?1) AND (?2='' OR version=?2) AND (?3='' OR host=?3) AND time>=?4" \
    " AND time<?5 AND unknown NOT LIKE ?6 AND (?7=0 OR recording_id=?7){LABELS}"
#define SCOPE MATCHES "{LAST}"
#define IS_LAST                                                                                 \
    " AND (run_id,run_order) {IN} (SELECT run_id,max(run_order) FROM recordings WHERE " MATCHES \
    " GROUP BY run_id)"
#define CHOSEN(condition) \
    " recording_id {IN} (SELECT recording_id FROM recordings WHERE " condition SCOPE ") "
#define COUNT(condition) "(SELECT count(*) FROM recordings WHERE " condition SCOPE ")"
#define NAMES            "{JOIN} (SELECT function_id,name,module FROM functions) " BY_FUNCTION
#define BY_FUNCTION      "USING (function_id)"

// The rows with what the errors of their costs need. The variance of a sum of bytes is 9 / 8 of the
// sum of bytes times interval (docs/accuracy.md). UNKNOWN counts estimates whose error is unknown:
// numbers of blocks, because a store has no sizes, and recordings that an older cairn added. Errors
// are rounded up, as in the report.
#define ROWS                                                                                  \
    "rows {JOIN} (SELECT recording_id,is_estimate,interval_bytes,runtime_ms FROM recordings)" \
    " USING (recording_id)"
#define RATE             "*1000.0/(CASE WHEN runtime_ms>0 THEN runtime_ms ELSE 1 END)"
#define VALUE_OF(cost)   cost "{RATE}"
#define SQUARES_OF(cost) cost "*1.125*interval_bytes{RATE}{RATE}"
#define VALUE            VALUE_OF("{COST}")
#define SQUARES          SQUARES_OF("{COST}")
#define UNKNOWN          "is_estimate*(CASE WHEN interval_bytes=0 THEN 1 ELSE {BLIND} END)"
#define ERROR(variance, unknown)                                                           \
    "CASE WHEN " unknown ">0 THEN NULL ELSE CAST(ceil(2*sqrt(" variance ")) AS {INT}) END" \
    " AS error_{COST}"

// A cost of `recordings`, or NULL if the recording does not know it. It is 0 until the server has
// brought a store of version 1 up to date.
#define KNOWN(cost) "CASE WHEN unknown LIKE '%," cost ",%' THEN NULL ELSE " cost " END AS " cost

// The sums of a function over the recordings of a version, and the variance of their mean.
#define SUM_OF(version, what) "sum(CASE WHEN version=" version " THEN " what " ELSE 0 END)"
#define COUNT_OF(version)     COUNT("version=" version " AND ")
#define MEAN_OF(version)      SUM_OF(version, VALUE) "*1.0/" COUNT_OF(version)
#define VARIANCE_OF(version)  SUM_OF(version, SQUARES) "/" COUNT_OF(version) "/" COUNT_OF(version)

// clang-format off
#define CHANGES(order, by)                                                                   \
    "SELECT CAST(round(old_mean) AS {INT}) AS old_{COST},"                                   \
    "CAST(round(new_mean) AS {INT}) AS new_{COST},"                                          \
    "CAST(round(new_mean-old_mean) AS {INT}) AS change_{COST},"                              \
    ERROR("variance", "unknown_count") ",hosts,name AS function,module"                      \
    " FROM (SELECT function_id,old_mean,new_mean,variance,unknown_count,hosts FROM ("        \
    "SELECT function_id," MEAN_OF("?9") " AS old_mean," MEAN_OF("?10") " AS new_mean,"       \
    VARIANCE_OF("?9") "+" VARIANCE_OF("?10") " AS variance,sum(" UNKNOWN ") AS unknown_count," \
    "count(DISTINCT host) AS hosts FROM " ROWS " WHERE" CHOSEN("version IN (?9,?10) AND ")   \
    "GROUP BY function_id) WHERE " order " LIMIT ?8) " NAMES " ORDER BY " by
const struct store_query query_list = {
    .name = "list",
    .sql = "SELECT recording_id,service,version,host,time,{COST},"
           KNOWN("allocations") ","
           KNOWN("live_bytes") ",runtime_ms,is_oom,path,"
           ERROR(SQUARES, UNKNOWN)
           ",earlier_states FROM recordings {JOIN} (SELECT run_id,count(*)-1 AS earlier_states"
           " FROM recordings WHERE " MATCHES " GROUP BY run_id) USING (run_id) WHERE " SCOPE
           " ORDER BY time DESC,run_order DESC,recording_id LIMIT ?8",
};

const struct store_query query_top = {
    .name = "top",
    .sql = "SELECT cost AS {COST},name AS function,module,file,line,"
           ERROR("variance", "unknown_count")
           " FROM (SELECT function_id,file,line,sum(stack_cost) AS cost,"
           "sum(stack_variance) AS variance,sum(stack_unknown) AS unknown_count"
           " FROM (SELECT stack_id,sum({COST}) AS stack_cost,sum(" SQUARES ") AS stack_variance,"
           "sum(" UNKNOWN ") AS stack_unknown FROM " ROWS " WHERE"
           CHOSEN("") "GROUP BY stack_id) {JOIN} (SELECT stack_id,function_id,file,line"
           " FROM stacks) USING (stack_id) GROUP BY function_id,file,line ORDER BY cost DESC,"
           "function_id,file,line LIMIT ?8) " NAMES " WHERE cost>0"
           " ORDER BY cost DESC,function,file,line",
};

const struct store_query query_diff = {
    .name = "diff",
    .words = {"OLD", "NEW"},
    .words_are_versions = true,
    .compares = true,
    .help = "what changed between two versions over all hosts, per recording",
    .sql = CHANGES("new_mean<>old_mean ORDER BY abs(new_mean-old_mean) DESC,function_id",
                   "abs(change_{COST}) DESC,function"),
};

static const struct store_query query_growth = {
    .name = "growth",
    .words = {"OLD", "NEW"},
    .words_are_versions = true,
    .compares = true,
    .help = "what grew between two versions over all hosts, per recording",
    .sql = CHANGES("new_mean>old_mean ORDER BY new_mean-old_mean DESC,function_id",
                   "change_{COST} DESC,function"),
};

static const struct store_query query_hosts = {
    .name = "hosts",
    .compares = true,
    .help = "which functions of which hosts differ most from the other hosts, per recording",
    .once = "(SELECT host,function_id,sum(" VALUE_OF("cost") ") AS own_sum,"
            "sum(" SQUARES_OF("cost") ") AS own_squares,sum(" UNKNOWN ") AS own_unknown FROM"
            " (SELECT recording_id,function_id,sum({COST}) AS cost FROM rows WHERE" CHOSEN("")
            "GROUP BY recording_id,function_id) {JOIN} (SELECT recording_id,host,is_estimate,"
            "interval_bytes,runtime_ms FROM recordings) USING (recording_id)"
            " GROUP BY host,function_id)",
    .sql = "SELECT host,CAST(round(own_mean) AS {INT}) AS host_{COST},"
           "CAST(round(other_mean) AS {INT}) AS others_{COST},"
           "CAST(round(own_mean-other_mean) AS {INT}) AS change_{COST},"
           ERROR("variance", "unknown_count") ",name AS function,module"
           " FROM (SELECT host,function_id,own_sum*1.0/own_count AS own_mean,"
           "(all_sum-own_sum)*1.0/other_count AS other_mean,"
           "own_squares/own_count/own_count+(all_squares-own_squares)/other_count/other_count"
           " AS variance,unknown_count"
           " FROM (SELECT host,function_id,own_sum,own_squares,own_count," COUNT("")
           "-own_count AS other_count FROM {ONCE} {JOIN} (SELECT host,count(*) AS"
           " own_count FROM recordings WHERE " SCOPE " GROUP BY host) USING (host)) {JOIN}"
           " (SELECT function_id,sum(own_sum) AS all_sum,sum(own_squares) AS all_squares,"
           "sum(own_unknown) AS unknown_count FROM {ONCE} GROUP BY function_id)"
           " USING (function_id) WHERE own_mean<>other_mean AND other_count>0"
           " ORDER BY abs(own_mean-other_mean) DESC,host,function_id LIMIT ?8) " NAMES
           " ORDER BY abs(change_{COST}) DESC,host,function",
};

static const struct store_query query_history = {
    .name = "history",
    .words = {"FUNCTION"},
    .help = "what the call sites in one function cost in each of the newest recordings",
    .sql = "SELECT time,version,host,cost_{COST},recording_id," ERROR("variance", "unknown_count")
           " FROM (SELECT time,version,host,sum(" VALUE ") AS cost_{COST},recording_id,sum(" SQUARES
           ") AS variance,sum(" UNKNOWN ") AS unknown_count FROM " ROWS " WHERE" CHOSEN("")
           "AND function_id {IN} (SELECT function_id FROM functions WHERE name=?9"
           " OR short_name=?9) GROUP BY time,version,host,recording_id"
           " ORDER BY time DESC,recording_id DESC LIMIT ?8) ORDER BY time,recording_id",
};

const struct store_query query_points = {
    .name = "points",
    .sql = "SELECT service,version,host,'' AS function,time,runtime_ms,{COST} AS cost FROM"
           " recordings WHERE " SCOPE
           " ORDER BY service,version,host,time*1000+runtime_ms LIMIT ?8",
};

const struct store_query query_function_points = {
    .name = "function_points",
    .words = {"FUNCTION"},
    .sql = "SELECT service,version,host,name AS function,time,runtime_ms,cost FROM (SELECT"
           " service,version,host,function_id,time,runtime_ms,cost FROM (SELECT recording_id,"
           "function_id,sum({COST}) AS cost FROM rows WHERE" CHOSEN("") "AND (?9='' OR function_id"
           " {IN} (SELECT function_id FROM functions WHERE name=?9)) GROUP BY recording_id,"
           "function_id) {JOIN} (SELECT recording_id,service,version,host,time,runtime_ms FROM"
           " recordings) USING (recording_id)) " NAMES
           " ORDER BY service,version,host,name,time*1000+runtime_ms LIMIT ?8",
};

static const struct store_query query_oom = {
    .name = "oom",
    .help = "which functions hold 1% or more of the heap when memory has run out, and how often",
    .sql = "SELECT ooms,of_ooms,mean_percent,estimates,name AS function,module FROM ("
           "SELECT function_id,count(*) AS ooms,sum(is_estimate) AS estimates,"
           COUNT("is_oom=1 AND ") " AS of_ooms,"
           "round(avg(bytes*100.0/total_bytes),1) AS mean_percent"
           " FROM (SELECT recording_id,function_id,bytes,total_bytes,is_estimate FROM "
           "(SELECT recording_id,function_id,sum(live_bytes) AS bytes FROM rows WHERE"
           CHOSEN("is_oom=1 AND ") "GROUP BY recording_id,function_id) {JOIN} "
           "(SELECT recording_id,live_bytes AS total_bytes,is_estimate FROM recordings WHERE "
           "is_oom=1 AND " SCOPE ") USING (recording_id)) WHERE bytes>0 AND bytes*100>=total_bytes"
           " GROUP BY function_id ORDER BY ooms DESC,mean_percent DESC,function_id LIMIT ?8) "
           NAMES " ORDER BY ooms DESC,mean_percent DESC,function",
};
// clang-format on

const struct store_query query_lasted = {
    .name = "lasted",
    .words = {"OLD", "NEW"},
    .sql = "SELECT min(runtime_ms) AS least_ms,max(runtime_ms) AS most_ms FROM recordings WHERE"
           " (?9='' OR version IN (?9,?10)) AND " SCOPE " LIMIT ?8",
};

const struct store_query query_ages = {
    .name = "ages",
    .sql =
        "SELECT recording_id,service,version,host,time,runtime_ms,is_oom FROM recordings "
        "WHERE " SCOPE " ORDER BY service,version,host,time*1000+runtime_ms,recording_id LIMIT ?8",
};

const struct store_query query_versions = {
    .name = "versions",
    .sql = "SELECT version,count(*) AS recordings FROM recordings WHERE " SCOPE
           " GROUP BY version ORDER BY version LIMIT ?8",
};

const struct store_query *const store_queries[] = {
    &query_growth, &query_hosts, &query_history, &query_oom, NULL,
};

const struct store_query *store_query_find(const char *name)
{
    for (const struct store_query *const *at = store_queries; *at != NULL; at++) {
        if (strcmp((*at)->name, name) == 0) {
            return *at;
        }
    }
    return NULL;
}

// Append the condition of each label. A label is in the text of its recording at the start or
// behind another, and no name of a label looks like what is between two (store.h).
static void append_labels(struct strbuf *out, const struct dialect *dialect, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const size_t number = QUERY_LABELS + 2 * i + 1;
        strbuf_printf(out, " AND (%s(labels,?%zu)=1 OR %s(labels,?%zu)>0)", dialect->position,
                      number, dialect->position, number + 1);
    }
}

// Append `sql` with its words in braces replaced by those of the form.
static void append_query(struct strbuf *out,
                         const char *sql,
                         const struct dialect *dialect,
                         const struct query_form *form,
                         const char *last,
                         const char *once)
{
    const struct cost_info *cost = cost_get_info(form->cost);
    const struct {
        const char *token;
        const char *word;
    } words[] = {{"{JOIN}", dialect->left_join},
                 {"{IN}", dialect->in},
                 {"{INT}", dialect->integer},
                 {"{RATE}", form->is_per_second ? RATE : ""},
                 {"{LAST}", last},
                 {"{ONCE}", once},
                 {"{BLIND}", cost->unit == COST_UNIT_BYTES ? "0" : "1"},
                 {"{COST}", cost->key}};
    for (const char *at = sql; *at != '\0';) {
        size_t taken = 0;
        for (size_t i = 0; *at == '{' && i < ARRAY_LEN(words); i++) {
            if (strncmp(at, words[i].token, strlen(words[i].token)) == 0) {
                strbuf_append_text(out, words[i].word);
                taken = strlen(words[i].token);
            }
        }
        if (strncmp(at, "{LABELS}", strlen("{LABELS}")) == 0) {
            append_labels(out, dialect, form->label_count);
            taken = strlen("{LABELS}");
        }
        if (taken == 0) {
            strbuf_append_char(out, *at);
            taken = 1;
        }
        at += taken;
    }
}

enum err store_query_render(const struct store_query *query,
                            const struct dialect *dialect,
                            const struct query_form *form,
                            struct strbuf *out)
{
    CLEANUP(strbuf_release) struct strbuf last = {0};
    CLEANUP(strbuf_release) struct strbuf once = {0};
    append_query(&last, form->has_all_states ? "" : IS_LAST, dialect, form, "", "");
    if (query->once != NULL) {
        append_query(&once, query->once, dialect, form, strbuf_text(&last), "");
    }
    if (query->once != NULL && dialect->names_subqueries) {
        strbuf_append_text(out, "WITH once AS ");
        strbuf_append_text(out, strbuf_text(&once));
        strbuf_clear(&once);
        strbuf_append_text(&once, "once");
    }
    append_query(out, query->sql, dialect, form, strbuf_text(&last), strbuf_text(&once));
    TRY(strbuf_result(&last));
    TRY(strbuf_result(&once));
    return strbuf_result(out);
}
