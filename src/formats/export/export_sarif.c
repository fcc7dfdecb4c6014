// SPDX-License-Identifier: MIT
// export_sarif: see export_sarif.h.
#include "formats/export/export_sarif.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "formats/codec/clean_text.h"
#include "formats/export/exporter.h"
#include "host/text/json_writer.h"
#include "profile/calls/source_place.h"
#include "profile/findings/findings.h"

enum {
    STACK_FRAMES_MAX = 32,
};

// What a kind of result is, for the list of rules. Those of findings have finding_kind_name.
struct sarif_rule {
    const char *id;
    const char *level;
    const char *sentence;
    const char *help;
};

const char *workspace_path(const char *path)
{
    char folder[4096];
    const char *workspace = getenv("GITHUB_WORKSPACE");
    if (workspace == NULL || workspace[0] == '\0') {
        workspace = getcwd(folder, sizeof(folder));
    }
    const size_t len = workspace != NULL ? strlen(workspace) : 0;
    const bool is_below = len > 0 && strncmp(path, workspace, len) == 0 && path[len] == '/';
    return is_below ? path + len + 1 : path;
}

// By kind. The cost ranks the stacks of its call site.
static const struct {
    struct sarif_rule rule;
    enum cost cost;
} finding_rules[FINDING_KIND_COUNT] = {
    [FINDING_PEAK] = {{"peak", "note", "A function holds a large share of the heap's peak.",
                       "cairn report -p FILE"},
                      COST_PEAK_BYTES},
    [FINDING_GROWTH] = {{"growth", "warning", "Memory of a call site grows until the end.",
                         "cairn report -l FILE"},
                        COST_LEAKED_BYTES},
    [FINDING_UNFREED] = {{"unfreed", "warning", "Much memory is not freed.",
                          "cairn report -l FILE"},
                         COST_LEAKED_BYTES},
    [FINDING_CHURN] = {{"churn", "note", "A function makes many short-lived allocations.",
                        "cairn report -T FILE"},
                       COST_ALLOCATIONS},
    [FINDING_RSS] = {{"rss", "note", "Resident memory is much larger than the live heap.",
                      "cairn report -r FILE"},
                     COST_PEAK_BYTES},
    [FINDING_SPARSE] = {{"sparse", "note", "Few blocks keep many pages resident.",
                         "cairn report -r FILE"},
                        COST_LEAKED_BYTES},
    [FINDING_HUGE] = {{"huge", "note", "Huge pages hold much that was never written.",
                       "cairn report -r FILE"},
                      COST_PEAK_BYTES},
    [FINDING_UNEVEN] = {{"uneven", "note", "A thread or process holds more than its siblings.",
                         "cairn report --group-by thread FILE"},
                        COST_PEAK_BYTES},
    [FINDING_UNSEEN] = {{"unseen", "note", "A process has a heap that cairn does not see.",
                         "cairn report -r FILE"},
                        COST_PEAK_BYTES},
    [FINDING_OOM] = {{"oom", "error", "The kernel killed a process for lack of memory.",
                      "cairn report -l FILE"},
                     COST_LEAKED_BYTES},
};

// Those of `cairn check`, which looks them up by their names.
static const struct sarif_rule budget_rules[] = {
    {"program", "error", "The program failed.", "cairn check"},
    {"max-peak", "error", "The heap's peak exceeds its budget.", "cairn check --max-peak"},
    {"max-allocations", "error", "The allocations exceed their budget.",
     "cairn check --max-allocations"},
    {"max-allocated", "error", "The allocated bytes exceed their budget.",
     "cairn check --max-allocated"},
    {"max-leaked", "error", "The leaked bytes exceed their budget.", "cairn check --max-leaked"},
    {"max-temporary-share", "error", "The temporary allocations exceed their budget.",
     "cairn check --max-temporary-share"},
    {"max-rss", "error", "The resident size exceeds its budget.", "cairn check --max-rss"},
    {"max-growth", "error", "A figure grew more than it may.",
     "cairn check --baseline FILE --max-growth PERCENT"},
};

struct sarif_writer {
    struct json_writer json;
    const struct export_view *view; // borrowed
    struct call_sites sites;        // owned
};

static void write_text(struct json_writer *w, const char *key, const char *text)
{
    json_key_object(w, key);
    json_key_string(w, "text", text);
    json_end_object(w);
}

static void write_rule(struct json_writer *w, const struct sarif_rule *rule)
{
    json_begin_object(w);
    json_key_string(w, "id", rule->id);
    write_text(w, "shortDescription", rule->sentence);
    write_text(w, "fullDescription", rule->sentence);
    write_text(w, "help", rule->help);
    json_key_object(w, "defaultConfiguration");
    json_key_string(w, "level", rule->level);
    json_end_object(w);
    json_end_object(w);
}

static void write_tool(struct json_writer *w)
{
    json_key_object(w, "tool");
    json_key_object(w, "driver");
    json_key_string(w, "name", "cairn");
    json_key_string(w, "semanticVersion", CAIRN_VERSION);
    json_key_array(w, "rules");
    for (size_t i = 0; i < ARRAY_LEN(finding_rules); i++) {
        write_rule(w, &finding_rules[i].rule);
    }
    for (size_t i = 0; i < ARRAY_LEN(budget_rules); i++) {
        write_rule(w, &budget_rules[i]);
    }
    json_end_array(w);
    json_end_object(w);
    json_end_object(w);
}

// Append a path as a URI (RFC 3986): relative below the checked-out tree. A path that is relative
// elsewhere stays so.
static void append_uri(struct strbuf *out, const char *path)
{
    const char *relative = workspace_path(path);
    while (strncmp(relative, "./", 2) == 0) {
        relative += 2;
    }
    strbuf_append_text(out, relative[0] == '/' ? "file://" : "");
    for (const char *at = relative; *at != '\0'; at++) {
        const bool is_plain = isalnum((unsigned char)*at) != 0 || strchr("-._~/", *at) != NULL;
        strbuf_printf(out, is_plain ? "%c" : "%%%02X", (unsigned)(uint8_t)*at);
    }
}

// Write a location: the line of a file, the file alone, or nothing of a file that is unknown.
static void write_physical(struct json_writer *w, const char *file, uint32_t line)
{
    CLEANUP(strbuf_release) struct strbuf uri = {0};
    append_uri(&uri, file);
    if (uri.len == 0) {
        return;
    }
    json_key_object(w, "physicalLocation");
    json_key_object(w, "artifactLocation");
    json_key_string(w, "uri", strbuf_text(&uri));
    if (strncmp(strbuf_text(&uri), "file:", 5) != 0) {
        json_key_string(w, "uriBaseId", "%SRCROOT%");
    }
    json_end_object(w);
    if (line > 0) {
        json_key_object(w, "region");
        json_key_u64(w, "startLine", line);
        json_end_object(w);
    }
    json_end_object(w);
}

// Write a location of the code as a `location` object, whose members go into the open object.
static void write_place(struct sarif_writer *w, uint32_t location)
{
    const struct profile *profile = w->view->profile;
    CLEANUP(strbuf_release) struct strbuf name = {0};
    clean_append_function(&name, profile, location, (struct clean_rule){0});
    write_physical(&w->json, profile_location_file(profile, location),
                   profile_location_get(profile, location)->line);
    json_key_array(&w->json, "logicalLocations");
    json_begin_object(&w->json);
    json_key_string(&w->json, "fullyQualifiedName", strbuf_text(&name));
    json_key_string(&w->json, "kind", "function");
    json_end_object(&w->json);
    json_end_array(&w->json);
}

// Write the innermost frames of a stack, innermost first.
static void write_stack(struct sarif_writer *w, uint32_t stack)
{
    const struct call_tree_node *nodes = w->sites.tree.nodes.items;
    struct json_writer *json = &w->json;
    if (stack == 0) {
        return;
    }
    json_key_array(json, "stacks");
    json_begin_object(json);
    write_text(json, "message", "The largest call stack of this call site.");
    json_key_array(json, "frames");
    for (uint32_t at = stack, n = 0; at != 0 && n < STACK_FRAMES_MAX; at = nodes[at].parent, n++) {
        json_begin_object(json);
        json_key_object(json, "location");
        write_place(w, nodes[at].location);
        json_end_object(json);
        json_end_object(json);
    }
    json_end_array(json);
    json_end_object(json);
    json_end_array(json);
}

// The program stands for what has no line.
static void write_program_place(struct sarif_writer *w)
{
    const struct rec_meta *meta = &w->view->profile->recording.meta;
    const char *program = profile_string(w->view->profile, meta->program);
    write_physical(&w->json, program[0] != '\0' ? program : w->view->path, 0);
}

static void
begin_result(struct sarif_writer *w, const char *rule, const char *level, const char *text)
{
    json_begin_object(&w->json);
    json_key_string(&w->json, "ruleId", rule);
    json_key_string(&w->json, "level", level);
    write_text(&w->json, "message", text);
}

static const struct call_site *find_site(const struct sarif_writer *w, uint32_t location)
{
    const struct call_site_vec *sites = &w->sites.sites;
    for (size_t i = 0; location != REC_NONE && i < sites->len; i++) {
        if (sites->items[i].location == location) {
            return &sites->items[i];
        }
    }
    return NULL;
}

// Write the name by which a tool finds the same result in a later run: without lines and figures.
static void write_fingerprint(struct sarif_writer *w, const char *kind, uint32_t location)
{
    CLEANUP(strbuf_release) struct strbuf name = {0};
    strbuf_printf(&name, "%s ", kind);
    clean_append_function(&name, w->view->profile, location, (struct clean_rule){0});
    json_key_object(&w->json, "partialFingerprints");
    json_key_string(&w->json, "callSite/v1", strbuf_text(&name));
    json_end_object(&w->json);
}

static MUST_USE enum err write_finding(struct sarif_writer *w,
                                       const struct findings *findings,
                                       const struct finding *finding)
{
    struct json_writer *json = &w->json;
    const struct sarif_rule *rule = &finding_rules[finding->kind].rule;
    const struct call_site *site = find_site(w, finding->location);
    uint32_t place = finding->location;
    uint32_t stack = 0;
    if (site != NULL) {
        TRY(source_place_of_site(w->view->profile, &w->sites, site,
                                 finding_rules[finding->kind].cost, &stack, &place));
    }
    begin_result(w, rule->id, rule->level, findings_sentence(findings, finding));
    json_key_array(json, "locations");
    json_begin_object(json);
    if (place != REC_NONE && source_place_has(w->view->profile, place)) {
        write_place(w, place);
    } else {
        write_program_place(w);
    }
    json_end_object(json);
    json_end_array(json);
    write_stack(w, stack);
    write_fingerprint(w, rule->id, finding->location);
    json_end_object(json);
    return ERR_OK;
}

static MUST_USE enum err write_findings(struct sarif_writer *w)
{
    const struct selection *selection = &w->view->selection;
    CLEANUP(findings_release) struct findings findings = {0};
    struct summary summary;
    TRY(summary_build(selection, &summary));
    TRY(findings_of(selection, &summary, &findings));
    for (size_t i = 0; i < findings.items.len; i++) {
        TRY(write_finding(w, &findings, &findings.items.items[i]));
    }
    return ERR_OK;
}

static void write_other(struct sarif_writer *w, const struct sarif_result *result)
{
    begin_result(w, result->rule, result->level, result->message);
    json_key_array(&w->json, "locations");
    json_begin_object(&w->json);
    if (result->file[0] != '\0') {
        write_physical(&w->json, result->file, result->line);
    } else {
        write_program_place(w);
    }
    json_end_object(&w->json);
    json_end_array(&w->json);
    json_end_object(&w->json);
}

static MUST_USE enum err
write_run(struct sarif_writer *w, const struct sarif_result *results, size_t count, FILE *out)
{
    struct json_writer *json = &w->json;
    TRY(call_sites_build(&w->view->selection, &w->sites));
    json_to_stream(json, out, JSON_INDENTED);
    json_key_string(json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    json_key_string(json, "version", "2.1.0");
    json_key_array(json, "runs");
    json_begin_object(json);
    write_tool(json);
    json_key_array(json, "results");
    for (size_t i = 0; i < count; i++) {
        write_other(w, &results[i]);
    }
    TRY(write_findings(w));
    json_end_array(json);
    json_end_object(json);
    json_end_array(json);
    return json_finish(json);
}

enum err export_sarif_write(const struct export_view *view,
                            const struct sarif_result *results,
                            size_t count,
                            FILE *out)
{
    struct sarif_writer w = {.view = view};
    const enum err problem = write_run(&w, results, count, out);
    call_sites_release(&w.sites);
    return problem;
}

static enum err write_sarif(const struct export_view *view, FILE *out)
{
    return export_sarif_write(view, NULL, 0, out);
}

const struct exporter exporter_sarif = {
    .name = "sarif",
    .file_suffix = ".sarif",
    .help = "code scanning (GitHub, VS Code): the findings, with their lines",
    .uses = EXPORT_JUDGES_LEAKS,
    .write = write_sarif,
};
