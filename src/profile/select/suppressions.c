// SPDX-License-Identifier: MIT
#include "profile/select/suppressions.h"

#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "profile/model/function_name.h"

// Blocks that the C library and other widely used libraries allocate once, or once per thread, and
// keep. No program can free them. The measure is what valgrind frees before it counts
// (__libc_freeres, __gnu_cxx::__freeres), and what LeakSanitizer finds by a pointer of the
// library's own. The list contains nothing that the program requested and can free: a FILE, an
// iconv_t, a locale_t. Names within glibc need its debug symbols. Without them only the exported
// caller has a name, so it is listed too, if all allocations below it are the library's own.
static const char *const built_in[] = {
    "_IO_file_doallocate$",             // buffers of stdio; a leaked FILE leaks fopen's block too
    "^__new_exitfn$",                   // blocks of atexit handlers
    "^__cxa_atexit$",                   // blocks of atexit handlers
    "^tzset_internal$",                 // time zone
    "^tzset$",                          // time zone
    "^localtime$",                      // time zone
    "^localtime_r$",                    // time zone
    "^mktime$",                         // time zone
    "^ctime$",                          // time zone
    "^__gconv_read_conf$",              // character sets
    "^__gconv_load_cache$",             // character sets
    "^__gconv_find_transform$",         // character sets
    "^__wcsmbs_load_conv$",             // character sets
    "^mbstowcs$",                       // character sets
    "^_nl_intern_locale_data$",         // locales
    "^_nl_make_l10nflist$",             // locales
    "^_nl_find_locale$",                // locales
    "^setlocale$",                      // locales
    "^__GI_setlocale$",                 // locales
    "^textdomain$",                     // translations
    "^__textdomain$",                   // translations
    "^bindtextdomain$",                 // translations
    "^__bindtextdomain$",               // translations
    "^__dcigettext$",                   // translations
    "^dlerror$",                        // message of dlerror
    "^__dlerror$",                      // message of dlerror
    "^__nss_module_allocate$",          // name services
    "__nss_database_get$",              // name services
    "__nss_*_lookup2$",                 // name services
    "__resolv_context_get$",            // a thread's resolver
    "^getpwuid$",                       // static result buffers
    "^getpwnam$",                       // static result buffers
    "^getgrgid$",                       // static result buffers
    "^getgrnam$",                       // static result buffers
    "^gethostbyname$",                  // static result buffers
    "^_dl_non_dynamic_init$",           // search paths of the loader in a static program
    "^allocate_dtv",                    // thread-local storage of threads that still run
    "^_GLOBAL__sub_I_eh_alloc.cc$",     // libstdc++'s memory for exceptions, if linked statically
    "^std::ios_base::sync_with_stdio(", // buffers of cin, cout and the like
    "^std::sys::*stack_overflow::",     // Rust: thread information of the main thread
    "^std::thread::current::init",      // Rust: the handle of the main thread
    "^std::io::stdio::stdin",           // Rust: the buffer of stdin
    "^g_thread_self$",                  // GLib
    "^g_main_context_new$",             // GLib
};

// Matches blocks by the code that allocated them, with or without names: the modules of the
// innermost frame and of its caller. Both are parts of module paths; "" matches any.
struct code_rule {
    const char *words; // for display
    const char *module;
    const char *caller;
};

static const struct code_rule built_in_code[] = {
    // Modules that stay loaded, search paths, thread-local storage. Names would not do:
    // constructors of dlopen'ed modules run below the same functions, and their allocations are the
    // program's.
    {"ld-linux, innermost", "/ld-linux", ""},
    // libstdc++'s memory for exceptions, allocated when the library is loaded.
    {"libstdc++ < ld-linux, innermost", "libstdc++.so", "/ld-linux"},
    // Allocations of a separate allocator library for itself. For those that it passes on, the
    // innermost frame is its caller's.
    {"libjemalloc, innermost", "/libjemalloc", ""},
    {"libtcmalloc, innermost", "/libtcmalloc", ""},
    {"libmimalloc, innermost", "/libmimalloc", ""},
};

const char *suppression_source_name(enum suppression_source source)
{
    static const char *const names[] = {[SUPPRESSION_BUILT_IN] = "built-in",
                                        [SUPPRESSION_EMBEDDED] = "embedded",
                                        [SUPPRESSION_FILE] = "file"};
    return names[source];
}

static MUST_USE enum err
add_rule(struct suppressions *list, const char *pattern, size_t len, enum suppression_source source)
{
    struct suppression rule = {.pattern = list->texts.len, .source = source};
    if (list->rules.len == SUPPRESSION_RULES_MAX) {
        return ERR_LIMIT;
    }
    strbuf_append(&list->texts, pattern, len);
    strbuf_append_char(&list->texts, '\0');
    TRY(strbuf_result(&list->texts));
    return suppression_vec_push(&list->rules, rule);
}

static bool is_blank(char character)
{
    return character == ' ' || character == '\t' || character == '\r';
}

// Add the rule of a line, without blanks at either end.
static MUST_USE enum err
add_line(struct suppressions *list, const char *line, size_t len, enum suppression_source source)
{
    static const char type[] = "leak:";
    const size_t type_len = sizeof(type) - 1;
    while (len > 0 && is_blank(line[0])) {
        line++;
        len--;
    }
    while (len > 0 && is_blank(line[len - 1])) {
        len--;
    }
    if (len == 0 || line[0] == '#') {
        return ERR_OK;
    }
    bool is_rule = len > type_len && strncmp(line, type, type_len) == 0;
    if (!is_rule || memchr(line, '\0', len) != NULL) {
        return ERR_INVALID;
    }
    return add_rule(list, line + type_len, len - type_len, source);
}

enum err suppressions_add(struct suppressions *list,
                          struct bytes text,
                          enum suppression_source source,
                          const char *name,
                          struct err_info *info)
{
    const char *at = (const char *)text.data;
    const char *end = at + text.len;
    for (uint32_t line = 1; at < end; line++) {
        const char *next = memchr(at, '\n', (size_t)(end - at));
        size_t len = next != NULL ? (size_t)(next - at) : (size_t)(end - at);
        enum err problem = add_line(list, at, len, source);
        if (problem == ERR_INVALID && name != NULL) {
            return err_set(info, problem, "%.200s:%u: expected leak:PATTERN or # comment", name,
                           line);
        }
        if (problem == ERR_LIMIT) {
            return err_set(info, problem, "there are more than %d suppressions",
                           SUPPRESSION_RULES_MAX);
        }
        if (problem != ERR_INVALID) {
            TRY(problem);
        }
        at += len + (next != NULL);
    }
    return ERR_OK;
}

enum err suppressions_add_built_in(struct suppressions *list)
{
    for (size_t i = 0; i < ARRAY_LEN(built_in); i++) {
        TRY(add_rule(list, built_in[i], strlen(built_in[i]), SUPPRESSION_BUILT_IN));
    }
    for (size_t i = 0; i < ARRAY_LEN(built_in_code); i++) {
        const char *words = built_in_code[i].words;
        TRY(add_rule(list, words, strlen(words), SUPPRESSION_BUILT_IN));
        list->rules.items[list->rules.len - 1].code = built_in_code + i;
    }
    return ERR_OK;
}

enum err suppressions_add_embedded(struct suppressions *list,
                                   const struct recording *recording,
                                   struct err_info *info)
{
    const char *text = rec_string_get(recording, recording->meta.suppressions);
    struct bytes bytes = {.data = (const uint8_t *)text, .len = strlen(text)};
    return suppressions_add(list, bytes, SUPPRESSION_EMBEDDED, NULL, info);
}

enum err suppressions_add_usual(struct suppressions *list,
                                const struct recording *recording,
                                struct err_info *info)
{
    TRY(suppressions_add_embedded(list, recording, info));
    return suppressions_add_built_in(list);
}

void suppressions_release(struct suppressions *list)
{
    suppression_vec_release(&list->rules);
    strbuf_release(&list->texts);
}

// The first occurrence of the part in `name`; NULL if there is none.
static const char *find_part(const char *name, const char *part, size_t len)
{
    return len > 0 ? memmem(name, strlen(name), part, len) : name;
}

// The parts between the asterisks are found in order, each as early as possible, which leaves the
// most text to the rest. Only a part anchored at the end must be there.
bool suppression_matches(const char *pattern, const char *name)
{
    size_t len = strlen(pattern);
    bool from_start = len > 0 && pattern[0] == '^';
    bool to_end = len > (size_t)from_start && pattern[len - 1] == '$';
    const char *at = pattern + from_start;
    const char *end = pattern + len - to_end;
    bool is_held = from_start;
    if (is_held && at != end && *at != '*' && *at != *name) {
        return false; // most names; many rules are tried on each
    }
    for (;;) {
        const char *star = memchr(at, '*', (size_t)(end - at));
        size_t part = (size_t)((star != NULL ? star : end) - at);
        size_t rest = strlen(name);
        if (star == NULL && to_end) {
            bool fits = part <= rest && memcmp(name + rest - part, at, part) == 0;
            return fits && (!is_held || part == rest);
        }
        const char *found =
            is_held ? (strncmp(name, at, part) == 0 ? name : NULL) : find_part(name, at, part);
        if (found == NULL || star == NULL) {
            return found != NULL;
        }
        name = found + part;
        at = star + 1;
        is_held = false;
    }
}

// The number of the first rule that matches a name, + 1; REC_NONE if none does.
static uint32_t rule_of_text(const struct suppressions *list, const char *name)
{
    for (size_t i = 0; name[0] != '\0' && i < list->rules.len; i++) {
        if (list->rules.items[i].code == NULL &&
            suppression_matches(suppression_pattern(list, i), name)) {
            return (uint32_t)i + 1;
        }
    }
    return REC_NONE;
}

// The same number for a path, kept in *known: many locations share names.
static uint32_t rule_of_name(const struct suppressions *list, const char *name, uint32_t *known)
{
    if (*known == 0) {
        *known = rule_of_text(list, name);
    }
    return *known;
}

struct matcher {
    const struct suppressions *list;
    const struct profile *profile;
    struct u32_vec names;   // by name of the code index: rule + 1; REC_NONE: none; 0: unknown
    struct u32_vec modules; // by module, likewise
    struct strbuf form;     // buffer: the last function name, without some parts
};

static void matcher_release(struct matcher *matcher)
{
    u32_vec_release(&matcher->names);
    u32_vec_release(&matcher->modules);
    strbuf_release(&matcher->form);
}

// The same number for a function, matched with and without parameters and template arguments.
static uint32_t rule_of_function(struct matcher *matcher, const char *name, uint32_t *known)
{
    if (*known != 0) {
        return *known;
    }
    *known = rule_of_text(matcher->list, name);
    const int forms = strpbrk(name, "(<") != NULL ? NAME_FORM_COUNT : NAME_WHOLE + 1; // C has one
    for (int form = NAME_WHOLE + 1; form < forms; form++) {
        strbuf_clear(&matcher->form);
        name_append(&matcher->form, name, (enum name_form)form);
        uint32_t rule = rule_of_text(matcher->list, strbuf_text(&matcher->form));
        *known = rule < *known ? rule : *known;
    }
    return *known;
}

// The lowest rule that matches a location's module, function or file; REC_NONE if none does.
static uint32_t rule_of_location(struct matcher *matcher, const struct code_location *location)
{
    const struct profile *profile = matcher->profile;
    const struct code_function *function = &profile->code.functions.items[location->function];
    const struct string_table *names = &profile->code.names;
    uint32_t rule = rule_of_function(matcher, string_table_get(names, function->name),
                                     &matcher->names.items[function->name]);
    uint32_t by_file = rule_of_name(matcher->list, string_table_get(names, location->file),
                                    &matcher->names.items[location->file]);
    rule = min_u64(rule, by_file);
    if (function->module != REC_NONE) {
        rec_string path = profile->recording.modules[function->module].path;
        uint32_t by_module = rule_of_name(matcher->list, profile_string(profile, path),
                                          &matcher->modules.items[function->module]);
        rule = min_u64(rule, by_module);
    }
    return rule;
}

// By frame: the rule of its innermost location that has one; 0 if none has.
static MUST_USE enum err rules_of_frames(struct matcher *matcher, struct u32_vec *out)
{
    const struct profile *profile = matcher->profile;
    TRY(u32_vec_resize(out, profile->recording.frame_count));
    for (uint32_t i = 0; i < out->len; i++) {
        struct code_chain chain = code_index_chain(&profile->code, i);
        for (size_t n = 0; n < chain.count && out->items[i] == 0; n++) {
            uint32_t rule =
                rule_of_location(matcher, &profile->code.locations.items[chain.locations[n]]);
            out->items[i] = rule != REC_NONE ? rule : 0;
        }
    }
    return ERR_OK;
}

// By module: 1 if its path contains the part; the last entry is for code outside modules.
static MUST_USE enum err
modules_with(const struct profile *profile, const char *part, struct u32_vec *out)
{
    const struct recording *recording = &profile->recording;
    TRY(u32_vec_resize(out, recording->module_count + 1));
    for (size_t i = 0; i < recording->module_count; i++) {
        out->items[i] =
            suppression_matches(part, profile_string(profile, recording->modules[i].path));
    }
    out->items[recording->module_count] = part[0] == '\0';
    return ERR_OK;
}

static bool is_in(const struct u32_vec *modules, const struct recording *recording, size_t node)
{
    const uint32_t module = node != 0 ? recording->frames[recording->nodes[node].frame].module
                                      : REC_NONE; // the root has no frame
    return modules->items[module != REC_NONE ? module : recording->module_count] != 0;
}

// Assign a code rule to the innermost nodes that it matches and no other rule has.
static MUST_USE enum err take_innermost(const struct code_rule *code,
                                        uint32_t number,
                                        const struct profile *profile,
                                        const struct u32_vec *has_callee,
                                        struct u32_vec *out)
{
    const struct recording *recording = &profile->recording;
    CLEANUP(u32_vec_release) struct u32_vec modules = {0};
    CLEANUP(u32_vec_release) struct u32_vec callers = {0};
    TRY(modules_with(profile, code->module, &modules));
    TRY(modules_with(profile, code->caller, &callers));
    for (size_t i = 1; i < recording->node_count; i++) {
        if (out->items[i] == 0 && has_callee->items[i] == 0 && is_in(&modules, recording, i) &&
            is_in(&callers, recording, recording->nodes[i].parent)) {
            out->items[i] = number;
        }
    }
    return ERR_OK;
}

// By node: 1 if it called anything but an allocation function. Allocation functions are the hooks
// in cairn's library. A hook may have callees: an allocator that maps memory for a block.
static MUST_USE enum err find_callers(const struct profile *profile, struct u32_vec *out)
{
    const struct recording *recording = &profile->recording;
    CLEANUP(u32_vec_release) struct u32_vec hooks = {0};
    TRY(modules_with(profile, "/libcairn_preload", &hooks));
    TRY(u32_vec_resize(out, recording->node_count));
    for (size_t i = 1; i < recording->node_count; i++) {
        out->items[recording->nodes[i].parent] |= !is_in(&hooks, recording, i);
    }
    return ERR_OK;
}

static MUST_USE enum err
take_by_code(const struct suppressions *list, const struct profile *profile, struct u32_vec *out)
{
    CLEANUP(u32_vec_release) struct u32_vec has_callee = {0};
    TRY(find_callers(profile, &has_callee));
    for (size_t i = 0; i < list->rules.len; i++) {
        const struct code_rule *code = list->rules.items[i].code;
        if (code != NULL) {
            TRY(take_innermost(code, (uint32_t)i + 1, profile, &has_callee, out));
        }
    }
    return ERR_OK;
}

static bool has_any(const struct u32_vec *rules)
{
    for (size_t i = 0; i < rules->len; i++) {
        if (rules->items[i] != 0) {
            return true;
        }
    }
    return false;
}

enum err suppressions_of_nodes(const struct suppressions *list,
                               const struct profile *profile,
                               struct u32_vec *out)
{
    const struct recording *recording = &profile->recording;
    CLEANUP(matcher_release) struct matcher matcher = {.list = list, .profile = profile};
    CLEANUP(u32_vec_release) struct u32_vec frames = {0};
    TRY(u32_vec_resize(&matcher.names, string_table_count(&profile->code.names)));
    TRY(u32_vec_resize(&matcher.modules, recording->module_count));
    TRY(rules_of_frames(&matcher, &frames));
    TRY(u32_vec_resize(out, recording->node_count));
    for (size_t i = 1; i < recording->node_count; i++) {
        struct rec_node node = recording->nodes[i];
        uint32_t own = frames.items[node.frame];
        out->items[i] = own != 0 ? own : out->items[node.parent];
    }
    TRY(take_by_code(list, profile, out));
    if (!has_any(out)) {
        u32_vec_release(out);
    }
    return ERR_OK;
}
