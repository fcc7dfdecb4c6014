// SPDX-License-Identifier: MIT
#include "cli/user_options.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/compiler.h"
#include "host/os/file.h"
#include "host/os/new_file.h"
#include "host/text/toml.h"

#define VARIABLE "CAIRN_OPTIONS"

enum {
    VALUE_DIGITS = 24,
    WHERE_MAX = 256,
};

void user_options_release(struct user_options *options)
{
    strbuf_release(&options->path);
    strbuf_release(&options->words);
}

// Whether the user has such a file. A home that this user may not enter has none.
static bool file_exists(const char *path)
{
    return path[0] != '\0' &&
           (access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR && errno != EACCES));
}

static bool any_command_has(command_list commands, const char *name)
{
    for (command_list command = commands; *command != NULL; command++) {
        if (options_find((*command)->options, name) != NULL) {
            return true;
        }
    }
    return false;
}

// Append an option as a word if `command` has it. `where` begins the sentence of an error.
static MUST_USE enum err add_option(struct user_options *options,
                                    const struct command *command,
                                    const char *name,
                                    const char *value,
                                    const char *where,
                                    struct err_info *info)
{
    struct err_info reason = {0};
    if (options_find(command->options, name) == NULL) {
        return any_command_has(options->commands, name)
                   ? ERR_OK
                   : err_set(info, ERR_INVALID, "%s: unknown option '%.100s'", where, name);
    }
    if (options_check(command->options, name, value, &reason) != ERR_OK) {
        return err_set(info, ERR_INVALID, "%s: %s", where, err_text(&reason));
    }
    strbuf_printf(&options->words, value != NULL ? "--%s=%s" : "--%s", name, value);
    strbuf_append_char(&options->words, '\0');
    options->word_count++;
    return strbuf_result(&options->words);
}

// The entry's value as the text of an option.
static const char *
value_of(const struct toml *toml, const struct toml_entry *entry, char digits[VALUE_DIGITS])
{
    switch (entry->type) {
    case TOML_TEXT:
        return toml_text(toml, entry->text);
    case TOML_INTEGER:
        (void)snprintf(digits, VALUE_DIGITS, "%" PRId64, entry->integer); // fits
        return digits;
    case TOML_BOOLEAN:
        break;
    }
    return NULL;
}

// Add the entries of one table. The first has those for all commands.
static MUST_USE enum err add_table(struct user_options *options,
                                   const struct command *command,
                                   const struct toml *toml,
                                   uint32_t table,
                                   struct err_info *info)
{
    const char *name = toml_text(toml, toml->tables.items[table].name);
    const struct command *named = table == 0 ? command : command_find(options->commands, name);
    if (named == NULL || toml->tables.items[table].is_element) {
        return err_set(info, ERR_INVALID, "%s:%" PRIu32 ": [%.100s] is not a command",
                       strbuf_text(&options->path), toml->tables.items[table].line, name);
    }
    // Of the tables of other commands, only the names and values are checked.
    CLEANUP(user_options_release) struct user_options unused = {.commands = options->commands};
    for (size_t i = 0; i < toml->entries.len; i++) {
        const struct toml_entry *entry = &toml->entries.items[i];
        const char *key = toml_text(toml, entry->key);
        char digits[VALUE_DIGITS];
        char where[WHERE_MAX];
        if (entry->table != table) {
            continue;
        }
        (void)snprintf(where, sizeof(where), "%s:%" PRIu32, strbuf_text(&options->path),
                       entry->line); // may truncate
        if (table != 0 && options_find(named->options, key) == NULL) {
            return err_set(info, ERR_INVALID, "%s: cairn %s has no option '%.100s'", where, name,
                           key);
        }
        if (entry->type != TOML_BOOLEAN || entry->boolean) {
            TRY(add_option(named == command ? options : &unused, named, key,
                           value_of(toml, entry, digits), where, info));
        } else if (!any_command_has(options->commands, key)) {
            return err_set(info, ERR_INVALID, "%s: unknown option '%.100s'", where, key);
        }
    }
    return ERR_OK;
}

static MUST_USE enum err
add_file(struct user_options *options, const struct command *command, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf text = {0};
    CLEANUP(toml_release) struct toml toml = {0};
    if (file_append_user_folder(&options->path, "XDG_CONFIG_HOME", ".config")) {
        strbuf_append_text(&options->path, "/config.toml");
    }
    TRY(strbuf_result(&options->path));
    const char *path = strbuf_text(&options->path);
    if (!file_exists(path)) {
        return ERR_OK;
    }
    TRY(file_read_trusted(path, TOML_MAX_BYTES, &text, info));
    TRY(toml_parse(strbuf_bytes(&text), path, &toml, info));
    options->is_read = true;
    for (uint32_t table = 0; table < toml.tables.len; table++) {
        TRY(add_table(options, command, &toml, table, info));
    }
    return ERR_OK;
}

// Take the next word of a text as a shell would: spaces separate words, and quotes keep spaces.
// Return false at the end of the text; *is_open tells about a quote without its end.
static bool take_word(const char **at, struct strbuf *out, bool *is_open)
{
    char quote = '\0';
    strbuf_clear(out);
    *at += strspn(*at, " \t\n");
    if (**at == '\0') {
        return false;
    }
    for (; **at != '\0' && (quote != '\0' || strchr(" \t\n", **at) == NULL); (*at)++) {
        if (quote == '\0' && (**at == '\'' || **at == '"')) {
            quote = **at;
        } else if (**at == quote) {
            quote = '\0';
        } else {
            strbuf_append_char(out, **at);
        }
    }
    *is_open = quote != '\0';
    return true;
}

static MUST_USE enum err
add_variable(struct user_options *options, const struct command *command, struct err_info *info)
{
    CLEANUP(strbuf_release) struct strbuf word = {0};
    const char *at = getenv(VARIABLE);
    bool is_open = false;
    while (at != NULL && take_word(&at, &word, &is_open)) {
        TRY(strbuf_result(&word));
        const char *text = strbuf_text(&word);
        if (is_open) {
            return err_set(info, ERR_INVALID, VARIABLE ": a quote has no end");
        }
        if (strncmp(text, "--", 2) != 0 || text[2] == '\0') {
            return err_set(info, ERR_INVALID,
                           VARIABLE ": '%.100s' is not an option; write --NAME or --NAME=VALUE",
                           text);
        }
        char *equals = strchr(word.data, '=');
        if (equals != NULL) {
            *equals = '\0';
        }
        TRY(add_option(options, command, text + 2, equals != NULL ? equals + 1 : NULL, VARIABLE,
                       info));
    }
    return ERR_OK;
}

enum err user_options_read(command_list commands,
                           const struct command *command,
                           struct user_options *out,
                           struct err_info *info)
{
    CLEANUP(user_options_release) struct user_options options = {.commands = commands};
    TRY(add_file(&options, command, info));
    TRY(add_variable(&options, command, info));
    *out = TAKE(options);
    return ERR_OK;
}

int user_options_run(command_list commands, const struct command *command, int argc, char **argv)
{
    struct err_info info = {0};
    CLEANUP(user_options_release) struct user_options options = {0};
    if (!command->ignores_user_options && !options_refuse_config(command->options, argc, argv) &&
        user_options_read(commands, command, &options, &info) != ERR_OK) {
        return command_error(&info);
    }
    const size_t count = (size_t)argc + options.word_count;
    char **words = calloc(count + 1, sizeof(*words));
    if (words == NULL) {
        return command_error(&info);
    }
    char *at = options.words.data;
    words[0] = argv[0];
    for (size_t i = 0; i < options.word_count; i++) {
        words[1 + i] = at;
        at += strlen(at) + 1;
    }
    memcpy(words + 1 + options.word_count, argv + 1, (size_t)(argc - 1) * sizeof(*words));
    const int status = command_run(commands, command, (int)count, words);
    free(words);
    return status;
}
