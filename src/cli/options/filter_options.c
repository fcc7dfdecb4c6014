// SPDX-License-Identifier: MIT
// filter_options: the table of filter options, and the filter that they make. See filter_options.h.
#include "cli/options/filter_options.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "cli/text/screen_text.h"
#include "host/os/file.h"
#include "host/text/format.h"
#include "host/text/strbuf.h"

enum {
    INDENT = 4
};

#define FIELD(field) offsetof(struct filter_words, field)

// clang-format off
const struct option_spec filter_option_specs[FILTER_OPTION_COUNT] = {
    OPTION(0, "filter", TEXT, "TEXT", FIELD(names.site_text), FILTER_TEXT_HELP),
    OPTION(0, "filter-function", REGEX, "REGEX", FIELD(names.function),
           "only stacks with a matching function"),
    OPTION(0, "file", REGEX, "REGEX", FIELD(names.file),
           "only stacks through a matching source file"),
    OPTION(0, "module", REGEX, "REGEX", FIELD(names.module),
           "only stacks through a matching executable or library"),
    OPTION(0, "focus", REGEX, "REGEX", FIELD(names.focus),
           "only stacks with a frame whose function, file or module matches"),
    OPTION(0, "ignore", REGEX, "REGEX", FIELD(names.ignore), "no stacks with such a frame"),
    OPTION(0, "show-from", REGEX, "REGEX", FIELD(names.show_from),
           "as --focus, and without the frames outside the outermost such frame"),
    OPTION(0, "process", COUNT, "PID", FIELD(names.pid), "only this process", .minimum = 1),
    OPTION(0, "thread", TEXT, "TID|NAME", FIELD(names.thread),
           "only threads with this id or name; * and ? are wildcards"),
    OPTION(0, "time", TIME_RANGE, "FROM..TO", FIELD(time),
           "only blocks allocated in this part of the run: 2s..5s, 1m..; leaked then means live at "
           "its end"),
    OPTION(0, "classes", TEXT, "LIST", FIELD(classes),
           "with --time: blocks to count, by where they were allocated and freed: in_in, in_out, "
           "out_in, out_out (default: in_in,in_out)"),
    OPTION(0, "size", SIZE_RANGE, "MIN..MAX", FIELD(sizes),
           "only blocks of these sizes, rounded outwards: 1MiB.., 16..64, 4096"),
    OPTION(0, "lifetime", TIME_RANGE, "MIN..MAX", FIELD(lifetimes),
           "only blocks with these lifetimes, rounded outwards: ..1ms, 10s.."),
    SUPPRESSION_OPTION_SPECS(filter_words, rules),
};
// clang-format on

// Parse a list of classes with commas. Return 0 if one is invalid.
static uint32_t parse_classes(const char *text)
{
    uint32_t classes = 0;
    while (true) {
        size_t len = strcspn(text, ",");
        uint32_t found = 0;
        for (size_t i = 0; block_class_names[i] != NULL; i++) {
            const char *name = block_class_names[i];
            found |= strlen(name) == len && strncmp(text, name, len) == 0 ? 1U << i : 0;
        }
        if (found == 0) {
            return 0;
        }
        classes |= found;
        if (text[len] == '\0') {
            return classes;
        }
        text += len + 1;
    }
}

enum err filter_words_check(const struct filter_words *words, struct err_info *info)
{
    if (words->classes != NULL && !words->time.is_set) {
        return err_set(info, ERR_INVALID, "--classes says which blocks of a --time FROM..TO count");
    }
    if (words->classes != NULL && parse_classes(words->classes) == 0) {
        return err_set(info, ERR_INVALID,
                       "--classes: '%.100s' is not a list of in_in, in_out, out_in and out_out",
                       words->classes);
    }
    if (words->time.is_set && words->time.low == words->time.high) {
        return err_set(info, ERR_INVALID, "--time: a range is required: FROM..TO");
    }
    return ERR_OK;
}

bool filter_words_cut(const struct filter_words *words)
{
    return words->time.is_set || words->sizes.is_set || words->lifetimes.is_set ||
           words->names.function != NULL || words->names.file != NULL ||
           words->names.module != NULL || words->names.site_text != NULL ||
           words->names.thread != NULL || words->classes != NULL || words->names.pid != 0;
}

enum err filter_words_apply(const struct filter_words *words,
                            const struct recording *recording,
                            struct applied_filter *out,
                            struct err_info *info)
{
    *out = (struct applied_filter){0};
    const struct suppression_choice rules = {
        .path = words->rules.path,
        .no_built_in = words->rules.no_built_in || !words->suppresses,
        .no_embedded = words->rules.no_embedded || !words->suppresses};
    TRY(suppressions_add_chosen(&out->rules, &rules, recording, info));
    struct filter filter = words->names;
    filter.suppressions = out->rules.rules.len > 0 ? &out->rules : NULL;
    filter.has_range = words->time.is_set;
    filter.has_sizes = words->sizes.is_set;
    filter.has_lifetimes = words->lifetimes.is_set;
    if (words->time.is_set) {
        if (!time_range_is_known(recording)) {
            return err_set(info, ERR_UNSUPPORTED, "--time: the recording has no allocation times");
        }
        uint32_t classes =
            words->classes != NULL ? parse_classes(words->classes) : BLOCKS_IN_IN | BLOCKS_IN_OUT;
        const bool is_after_end = words->time.low >= recording->slice_count * recording->slice_ms;
        filter.range = time_range_covering(recording, words->time.low, words->time.high,
                                           is_after_end ? 0 : classes);
    }
    if (words->sizes.is_set) {
        filter.sizes = bucket_range_covering(words->sizes.low, words->sizes.high);
    }
    if (words->lifetimes.is_set) {
        filter.lifetimes = bucket_range_covering(words->lifetimes.low, words->lifetimes.high);
    }
    out->filter = filter;
    return ERR_OK;
}

void applied_filter_release(struct applied_filter *applied)
{
    suppressions_release(&applied->rules);
}

static struct human format_ms(uint64_t duration_ms)
{
    return format_duration(duration_ms * NS_PER_MS);
}

static void print_time(const struct selection *selection, const struct filter *filter, FILE *out)
{
    uint64_t slice_ms = selection->profile->recording.slice_ms;
    const struct human end = format_ms(filter->range.end * slice_ms);
    if (filter->range.classes == 0) {
        (void)fprintf(out, "    no blocks: the recording ends after %s\n", end.text);
        return;
    }
    (void)fprintf(out, "    blocks by the time from %s to %s:",
                  format_ms(filter->range.first * slice_ms).text, end.text);
    const char *comma = "";
    for (size_t i = 0; block_class_names[i] != NULL; i++) {
        if ((filter->range.classes >> i & 1) != 0) {
            (void)fprintf(out, "%s %s", comma, block_class_names[i]);
            comma = ",";
        }
    }
    (void)fprintf(out, "\n    leaked means live at %s, freed later or not\n", end.text);
}

static void print_blocks(const char *phrase,
                         struct bucket_range range,
                         struct human (*format)(uint64_t),
                         FILE *out)
{
    if (range.end >= REC_BUCKET_COUNT) {
        (void)fprintf(out, "    blocks %s %s or more\n", phrase,
                      format(bucket_range_low(range)).text);
    } else {
        (void)fprintf(out, "    blocks %s %s to %s\n", phrase, format(bucket_range_low(range)).text,
                      format(bucket_range_high(range)).text);
    }
}

// Print a line with the costs whose bit is set.
static void print_costs(const char *phrase, uint32_t bits, size_t columns, FILE *out)
{
    CLEANUP(strbuf_release) struct strbuf line = {0};
    strbuf_append_text(&line, phrase);
    const char *comma = "";
    for (int cost = 0; cost < COST_COUNT; cost++) {
        if ((bits >> cost & 1) != 0) {
            strbuf_printf(&line, "%s %s", comma, cost_get_info((enum cost)cost)->option);
            comma = ",";
        }
    }
    if (bits != 0) {
        screen_print_wrapped(out, strbuf_text(&line), INDENT, columns);
    }
}

static uint32_t estimated_bits(const struct selection *selection)
{
    uint32_t bits = 0;
    for (int cost = 0; cost < COST_COUNT; cost++) {
        bits |= selection->estimated.values[cost] > 0 ? 1U << cost : 0;
    }
    return bits;
}

void filter_print(const struct selection *selection,
                  const struct filter *filter,
                  size_t columns,
                  FILE *out)
{
    const struct {
        const char *phrase;
        const char *value;
    } parts[] = {{"stacks through a function that matches ", filter->function},
                 {"stacks through a source file that matches ", filter->file},
                 {"stacks through a module that matches ", filter->module},
                 {"stacks through a frame that matches ", filter->focus},
                 {"no stacks through a frame that matches ", filter->ignore},
                 {"stacks from a frame that matches ", filter->show_from},
                 {"call sites with ", filter->site_text},
                 {"thread ", filter->thread}};
    CLEANUP(strbuf_release) struct strbuf text = {0};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        if (parts[i].value != NULL) {
            strbuf_clear(&text);
            screen_append(&text, parts[i].value);
            CLEANUP(strbuf_release) struct strbuf cut = {0};
            screen_append_cut(&cut, strbuf_text(&text), columns - INDENT - strlen(parts[i].phrase),
                              SCREEN_CUT_MIDDLE);
            // Output errors are found when the stream is closed.
            (void)fprintf(out, "    %s%s\n", parts[i].phrase, strbuf_text(&cut));
        }
    }
    if (filter->pid != 0) {
        (void)fprintf(out, "    process %" PRIu32 "\n", filter->pid);
    }
    if (filter->has_range) {
        print_time(selection, filter, out);
    }
    if (filter->has_sizes) {
        print_blocks("of", filter->sizes, format_bytes, out);
    }
    if (filter->has_lifetimes) {
        print_blocks("freed after", filter->lifetimes, format_ms, out);
    }
    print_costs("in part an estimate:", estimated_bits(selection), columns, out);
    print_costs("not known:", selection->unknown & ~profile_unknown_costs(selection->profile),
                columns, out);
}

// Append "a, b and 7 more" of the user's rules without a matching leak. Return their number.
static size_t append_unused_rules(const struct selection *new,
                                  const struct selection *old,
                                  const struct filter *filter,
                                  struct strbuf *out)
{
    enum {
        SHOWN = 5
    };
    size_t count = 0;
    for (size_t i = 0; i < new->matches.len; i++) {
        // The user's rules come first, and so have the same numbers on both sides. The programs'
        // own rules differ.
        if (filter->suppressions->rules.items[i].source != SUPPRESSION_FILE) {
            break;
        }
        bool is_used = new->matches.items[i].stack_count > 0 ||
                       (old != NULL && old->matches.items[i].stack_count > 0);
        if (!is_used && count++ < SHOWN) {
            strbuf_append_text(out, count > 1 ? ", leak:" : "leak:");
            screen_append(out, suppression_pattern(filter->suppressions, i));
        }
    }
    if (count > SHOWN) {
        strbuf_printf(out, " and %zu more", count - SHOWN);
    }
    return count;
}

static void explain_rules(const struct selection *new,
                          const struct selection *old,
                          const struct filter *filter,
                          struct strbuf *out)
{
    CLEANUP(strbuf_release) struct strbuf rules = {0};
    size_t unused = append_unused_rules(new, old, filter, &rules);
    if (unused > 0) {
        strbuf_printf(out, "no leak matches %s of the suppressions: %s\n",
                      unused == 1 ? "one" : format_count(unused).text, strbuf_text(&rules));
    }
}

bool filter_matches_nothing(const struct selection *new, const struct selection *old)
{
    const bool is_empty = new->rows.len == 0 && (old == NULL || old->rows.len == 0);
    return is_empty && !new->is_everything;
}

void filter_explain_nothing(const struct selection *new,
                            const struct selection *old,
                            const struct filter *filter,
                            struct strbuf *out)
{
    const struct {
        const char *phrase;
        const char *wanted;
    } parts[FILTER_NAME_COUNT] = {
        [FILTER_FUNCTION] = {"no function of the recording matches", filter->function},
        [FILTER_FILE] = {"no source file of the recording matches", filter->file},
        [FILTER_MODULE] = {"no executable or library of the recording matches", filter->module},
        [FILTER_FOCUS] = {"no function, file or module of the recording matches", filter->focus},
        [FILTER_IGNORE] = {"no function, file or module of the recording matches", filter->ignore},
        [FILTER_SHOW_FROM] = {"no function, file or module of the recording matches",
                              filter->show_from},
        [FILTER_SITE] = {"no function, file or module of the recording has", filter->site_text},
        [FILTER_THREAD] = {"no thread of the recording has the id or name", filter->thread},
    };
    uint32_t unmatched = new->unmatched &(old != NULL ? old->unmatched : UINT32_MAX);
    for (int name = 0; name < FILTER_NAME_COUNT; name++) {
        if ((unmatched >> name & 1) != 0 && parts[name].wanted != NULL) {
            strbuf_printf(out, "%s \"", parts[name].phrase);
            screen_append(out, parts[name].wanted);
            strbuf_append_text(out, "\"\n");
        }
    }
    if ((unmatched >> FILTER_PROCESS & 1) != 0) {
        strbuf_printf(out, "no process of the recording has the pid %" PRIu32 "\n", filter->pid);
    }
    if (unmatched == 0 && filter_matches_nothing(new, old)) {
        strbuf_append_text(out, "nothing matches the filter: every number is 0\n");
    }
    explain_rules(new, old, filter, out);
}

void filter_warn(const struct selection *new,
                 const struct selection *old,
                 const struct filter *filter)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    filter_explain_nothing(new, old, filter, &text);
    for (const char *at = strbuf_text(&text); *at != '\0';) {
        int len = (int)strcspn(at, "\n");
        (void)fprintf(stderr, "cairn: %.*s\n", len, at); // no other place to report an error
        at += len + 1;
    }
}

void filter_print_suppressions(const struct selection *selection,
                               const struct filter *filter,
                               size_t columns,
                               FILE *out)
{
    enum {
        PATTERN_AT = 42
    };
    for (size_t i = 0; i < selection->matches.len; i++) {
        const struct suppression_match *match = &selection->matches.items[i];
        if (match->stack_count == 0) {
            continue;
        }
        CLEANUP(strbuf_release) struct strbuf safe = {0};
        CLEANUP(strbuf_release) struct strbuf cut = {0};
        screen_append(&safe, suppression_pattern(filter->suppressions, i));
        screen_append_cut(&cut, strbuf_text(&safe), columns - PATTERN_AT, SCREEN_CUT_MIDDLE);
        (void)fprintf(out, "  %12s in %16s  %-8s  %s\n", format_bytes(match->live_bytes).text,
                      format_things(match->live_blocks, "block ", "blocks").text,
                      suppression_source_name(filter->suppressions->rules.items[i].source),
                      strbuf_text(&cut));
    }
}
