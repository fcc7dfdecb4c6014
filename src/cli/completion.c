// SPDX-License-Identifier: MIT
#include "cli/completion.h"

#include <dirent.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "cli/command_table.h"
#include "formats/export/exporter.h"
#include "host/os/file.h"
#include "host/os/proc_file.h"
#include "host/text/number.h"
#include "host/text/strbuf.h"
#include "profile/model/cost.h"

// A command line up to the word that is typed.
struct unfinished {
    const struct command *command;
    const struct option_spec *waiting; // an option whose value is typed; NULL: none
    int operand_count;                 // before that word
    bool is_ended;                     // no option follows
};

// Answer with a word if it begins with the typed one. `before` is a part of both that ends in "=".
static void offer_word(
    FILE *out, const char *typed, const char *before, const char *word, const char *description)
{
    const size_t len = strlen(before);
    if (strncmp(word, typed + len, strlen(typed + len)) == 0) {
        // Output errors are found when the stream is closed.
        (void)fprintf(out, "%s%s\t%s\n", before, word, description);
    }
}

// Return the option that takes the word after `word` as its value, or NULL.
static const struct option_spec *find_waiting(struct option_table table, const char *word)
{
    const struct option_spec *found = NULL;
    if (strncmp(word, "--", 2) == 0) {
        found = options_find(table, word + 2);
    }
    for (size_t i = 0; i < options_count(table) && word[1] != '-' && word[2] == '\0'; i++) {
        const struct option_spec *spec = options_at(table, i);
        found = spec->letter == word[1] ? spec : found;
    }
    return found != NULL && found->value != NULL && found->when_alone == NULL ? found : NULL;
}

static struct unfinished read_words(int count, char *const *words)
{
    const struct command *named = count > 1 ? command_find(command_table, words[0]) : NULL;
    struct unfinished line = {.command = named != NULL ? named : &command_record};
    for (int i = named != NULL ? 1 : 0; i < count - 1; i++) {
        const char *word = words[i];
        if (line.waiting != NULL) {
            line.waiting = NULL;
        } else if (!line.is_ended && strcmp(word, "--") == 0) {
            line.is_ended = true;
        } else if (!line.is_ended && word[0] == '-' && word[1] != '\0') {
            line.waiting = find_waiting(line.command->options, word);
        } else {
            line.operand_count++;
            line.is_ended = line.is_ended || !line.command->options.follows_operands;
        }
    }
    return line;
}

// Answer with the processes whose executable may be read here: others, and threads of the kernel,
// cannot be recorded.
static void offer_processes(FILE *out, bool is_by_name, const char *typed, const char *before)
{
    enum {
        COMM_BYTES_MAX = 64
    };
    CLEANUP(directory_closep) DIR *folder = opendir("/proc");
    for (const struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        CLEANUP(strbuf_release) struct strbuf comm = {0};
        char exe[64];
        char target;
        const pid_t pid = (pid_t)number_field(entry->d_name);
        (void)snprintf(exe, sizeof(exe), "/proc/%d/exe", (int)pid); // fits
        if (pid == 0 || pid == getpid() || readlink(exe, &target, 1) < 0 ||
            !proc_file_read(pid, "comm", COMM_BYTES_MAX, &comm) || comm.len < 2) {
            continue;
        }
        strbuf_truncate(&comm, comm.len - 1); // the line feed
        const char *name = strbuf_text(&comm);
        offer_word(out, typed, before, is_by_name ? name : entry->d_name, is_by_name ? "" : name);
    }
}

static void
offer_values(FILE *out, const struct option_spec *spec, const char *typed, const char *before)
{
    static const struct {
        const char *value;
        const char *answer;
    } kinds[] = {{"FILE", ":files"}, {"OLD", ":files"}, {"DIR", ":directories"}};
    for (const char *const *choice = spec->choices; choice != NULL && *choice != NULL; choice++) {
        offer_word(out, typed, before, *choice, "");
    }
    for (int cost = 0; cost < COST_COUNT && spec->kind == OPTION_COST; cost++) {
        const struct cost_info *info = cost_get_info((enum cost)cost);
        offer_word(out, typed, before, info->option, info->phrase);
    }
    if (strcmp(spec->value, "FORMAT") == 0) {
        for (const struct exporter *const *exporter = exporters; *exporter != NULL; exporter++) {
            offer_word(out, typed, before, (*exporter)->name, (*exporter)->help);
        }
    }
    const bool is_by_name = spec == options_find(command_record.options, "name");
    if (is_by_name || strcmp(spec->name, "pid") == 0) {
        offer_processes(out, is_by_name, typed, before);
    }
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (strcmp(spec->value, kinds[i].value) == 0) {
            (void)fprintf(out, "%s\n", kinds[i].answer);
        }
    }
}

static void offer_options(FILE *out, struct option_table table, const char *typed)
{
    const char *equals = strchr(typed, '=');
    const struct option_spec *named = NULL;
    char before[80];
    if (equals > typed + 1) {
        (void)snprintf(before, sizeof(before), "%.*s", (int)(equals - typed) - 2, typed + 2);
        named = options_find(table, before); // a longer name is none
    }
    if (named != NULL && named->value != NULL) {
        (void)snprintf(before, sizeof(before), "--%s=", named->name); // fits
        offer_values(out, named, typed, before);
        return;
    }
    for (size_t i = 0; i < options_count(table); i++) {
        const struct option_spec *spec = options_at(table, i);
        if (!spec->is_hidden && spec->kind != OPTION_REFUSED) {
            (void)snprintf(before, sizeof(before), "--%s", spec->name); // fits
            offer_word(out, typed, "", before, spec->help);
        }
    }
    for (const struct option_spec *const *spec = options_of_all; *spec != NULL; spec++) {
        (void)snprintf(before, sizeof(before), "--%s", (*spec)->name); // fits
        offer_word(out, typed, "", before, (*spec)->help);
    }
}

static void offer_commands(FILE *out, const char *typed)
{
    for (command_list command = command_table; *command != NULL; command++) {
        offer_word(out, typed, "", (*command)->name, (*command)->summary);
    }
}

static void offer_operand(FILE *out, const struct unfinished *line, const char *typed)
{
    const struct command *command = line->command;
    const char *const *word = command->words;
    for (; word != NULL && line->operand_count == command->words_after && *word != NULL; word++) {
        offer_word(out, typed, "", *word, "");
    }
    if (command == &command_help) {
        offer_commands(out, typed);
    } else if (strstr(command->synopsis, "PROGRAM") != NULL && line->operand_count == 0) {
        (void)fprintf(out, ":programs\n");
    } else if (command->words == NULL || line->operand_count < command->words_after) {
        (void)fprintf(out, ":files\n");
    }
}

void completion_write(int count, char *const *words, FILE *out)
{
    const char *typed = count > 0 ? words[count - 1] : "";
    const struct unfinished line = read_words(count, words);
    if (line.waiting != NULL) {
        offer_values(out, line.waiting, typed, "");
    } else if (!line.is_ended && typed[0] == '-') {
        offer_options(out, line.command->options, typed);
        if (count <= 1) {
            offer_word(out, typed, "", "--version", "print the version");
        }
    } else {
        if (count <= 1) {
            offer_commands(out, typed);
        }
        offer_operand(out, &line, typed);
    }
}
