// SPDX-License-Identifier: MIT
#include "profile/names/distinct_name.h"

#include <ctype.h>
#include <string.h>

#include "base/compiler.h"
#include "base/minmax.h"
#include "profile/model/function_name.h"

struct name_peers name_peers_of(const char *name)
{
    const size_t len = strlen(name);
    return (struct name_peers){.name = name, .head = len, .tail = len, .shortest = len};
}

void name_peers_add(struct name_peers *peers, const char *other)
{
    const size_t len = strlen(peers->name);
    const size_t other_len = strlen(other);
    const size_t most = min_u64(len, other_len);
    if (strcmp(peers->name, other) == 0) {
        return;
    }
    size_t head = 0;
    size_t tail = 0;
    while (head < most && peers->name[head] == other[head]) {
        head++;
    }
    while (tail < most && peers->name[len - 1 - tail] == other[other_len - 1 - tail]) {
        tail++;
    }
    peers->head = min_u64(peers->head, head);
    peers->tail = min_u64(peers->tail, tail);
    peers->shortest = min_u64(peers->shortest, other_len);
    peers->count++;
}

// The last part of a qualified name without template arguments: "load" of "app::load".
static const char *last_part(const char *name)
{
    const char *last = name;
    for (const char *at; (at = strstr(last, "::")) != NULL;) {
        last = at + 2;
    }
    return last;
}

bool name_has_short_form(const char *other, const char *shortest)
{
    // Most names are told apart by this alone, which is much faster.
    if (strstr(other, last_part(shortest)) == NULL) {
        return false;
    }
    CLEANUP(strbuf_release) struct strbuf form = {0};
    name_append(&form, other, NAME_NO_ANONYMOUS);
    return strcmp(strbuf_text(&form), shortest) == 0;
}

static bool is_word(char character)
{
    return isalnum((unsigned char)character) || character == '_' || (character & 0x80) != 0;
}

// How many brackets of name[from..to) are open at its end.
static long open_brackets(const char *name, size_t from, size_t to)
{
    long depth = 0;
    for (size_t at = from; at < to; at++) {
        depth += (name[at] == '<' || name[at] == '(') - (name[at] == '>' || name[at] == ')');
    }
    return depth;
}

void name_append_difference(struct strbuf *out, const struct name_peers *peers)
{
    const char *name = peers->name;
    const size_t len = strlen(name);
    size_t from = peers->head;
    size_t to = len - min_u64(peers->tail, peers->shortest - peers->head);
    if (peers->count == 0) {
        return;
    }
    while (from > 0 && is_word(name[from - 1])) {
        from--;
    }
    if (from > 0 && (name[from - 1] == '<' || name[from - 1] == '(')) {
        from--;
        while (from > 0 && is_word(name[from - 1])) {
            from--;
        }
    }
    while (to < len && is_word(name[to])) {
        to++;
    }
    to += to < len && open_brackets(name, from, to) > 0 && (name[to] == '>' || name[to] == ')');
    strbuf_append(out, name + from, to - from);
}

void name_append_distinct(struct strbuf *out, const struct name_peers *peers)
{
    enum {
        WORDS_BYTES = 48
    };
    CLEANUP(strbuf_release) struct strbuf name = {0};
    CLEANUP(strbuf_release) struct strbuf words = {0};
    name_append_in_sentence(&name, peers->name);
    name_append_difference(&words, peers);
    const char *last = last_part(strbuf_text(&name));
    const size_t last_len = strlen(last);
    if (words.len == 0) {
        strbuf_append_text(out, strbuf_text(&name));
    } else if (words.len <= WORDS_BYTES && strncmp(strbuf_text(&words), last, last_len) == 0) {
        strbuf_append(out, strbuf_text(&name), name.len - last_len);
        strbuf_append_text(out, strbuf_text(&words));
    } else {
        strbuf_append_text(out, strbuf_text(&name));
        strbuf_append_text(out, " [");
        name_append_cut(out, strbuf_text(&words), WORDS_BYTES);
        strbuf_append_char(out, ']');
    }
    out->failed |= name.failed || words.failed;
}
