// SPDX-License-Identifier: MIT
// name_regex_compile: from the text of an expression to its program. See name_regex.h.
//
// A recursive descent, no deeper than NAME_REGEX_MAX_DEPTH, that writes instructions as it reads. A
// part that has been written is a range of instructions with relative jumps inside: alternation and
// repetition insert a split before it, and counted repetition copies it.
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "profile/select/name_regex.h"
#include "profile/select/name_regex_ops.h"

enum {
    COUNT_MAX = 32767, // RE_DUP_MAX
    COUNT_OPEN = COUNT_MAX + 1,
};

struct compiler {
    struct name_regex *out;
    const char *at;
    const char *name; // borrowed, for errors
    const char *whole;
    unsigned depth;
    struct err_info *info;
};

static MUST_USE enum err refuse(const struct compiler *c, const char *reason)
{
    return err_set(c->info, ERR_INVALID, "%s: \"%.200s\" is not a regular expression: %s", c->name,
                   c->whole, reason);
}

// Makes room for `count` instructions at `place` and moves what follows.
static MUST_USE enum err insert(struct compiler *c, size_t place, size_t count)
{
    struct name_regex_op_vec *ops = &c->out->ops;
    if (ops->len + count >= NAME_REGEX_MAX_OPS) {
        return err_set(c->info, ERR_LIMIT, "%s: the regular expression is too large", c->name);
    }
    size_t moved = ops->len - place;
    TRY(name_regex_op_vec_resize(ops, ops->len + count));
    if (moved > 0) {
        memmove(ops->items + place + count, ops->items + place, moved * sizeof(ops->items[0]));
    }
    return ERR_OK;
}

static MUST_USE enum err append(struct compiler *c, struct name_regex_op op)
{
    size_t place = c->out->ops.len;
    TRY(insert(c, place, 1));
    c->out->ops.items[place] = op;
    return ERR_OK;
}

static MUST_USE enum err append_copy(struct compiler *c, const struct name_regex_op *ops, size_t n)
{
    size_t place = c->out->ops.len;
    TRY(insert(c, place, n));
    if (n > 0) {
        memcpy(c->out->ops.items + place, ops, n * sizeof(*ops));
    }
    return ERR_OK;
}

static struct name_regex_op split(size_t left, size_t right)
{
    return (struct name_regex_op){.kind = OP_SPLIT, .left = (int16_t)left, .right = (int16_t)right};
}

static MUST_USE enum err append_set(struct compiler *c, struct name_regex_set set)
{
    struct name_regex_op op = {.kind = OP_SET, .left = (int16_t)c->out->sets.len};
    TRY(append(c, op)); // bounds the number of sets, too
    return name_regex_set_vec_push(&c->out->sets, set);
}

static void set_add(struct name_regex_set *set, unsigned char byte)
{
    set->bits[byte / 64] |= (uint64_t)1 << (byte % 64);
}

static void set_invert(struct name_regex_set *set)
{
    for (size_t i = 0; i < 4; i++) {
        set->bits[i] = ~set->bits[i];
    }
}

static bool set_add_class(struct name_regex_set *set, const char *name, size_t len)
{
    static const struct {
        const char *name;
        int (*holds)(int character);
    } classes[] = {
        {"alnum", isalnum}, {"alpha", isalpha}, {"blank", isblank}, {"cntrl", iscntrl},
        {"digit", isdigit}, {"graph", isgraph}, {"lower", islower}, {"print", isprint},
        {"punct", ispunct}, {"space", isspace}, {"upper", isupper}, {"xdigit", isxdigit},
    };
    for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
        if (strlen(classes[i].name) == len && memcmp(classes[i].name, name, len) == 0) {
            for (int byte = 0; byte < 256; byte++) {
                if (classes[i].holds(byte) != 0) {
                    set_add(set, (unsigned char)byte);
                }
            }
            return true;
        }
    }
    return false;
}

// One element of a bracket expression: a character, or [.c.] or [=c=] of one character.
static MUST_USE enum err read_element(struct compiler *c, unsigned char *out)
{
    if (c->at[0] == '[' && (c->at[1] == '.' || c->at[1] == '=')) {
        char mark = c->at[1];
        if (c->at[2] == '\0' || c->at[3] != mark || c->at[4] != ']') {
            return refuse(c, "an unknown collating element");
        }
        *out = (unsigned char)c->at[2];
        c->at += 5;
        return ERR_OK;
    }
    if (*c->at == '\0') {
        return refuse(c, "a [ without its ]");
    }
    *out = (unsigned char)*c->at++;
    return ERR_OK;
}

static MUST_USE enum err read_bracket_item(struct compiler *c, struct name_regex_set *set)
{
    if (c->at[0] == '[' && c->at[1] == ':') {
        const char *end = strstr(c->at + 2, ":]");
        if (end == NULL || !set_add_class(set, c->at + 2, (size_t)(end - c->at) - 2)) {
            return refuse(c, "an unknown character class");
        }
        c->at = end + 2;
        return ERR_OK;
    }
    unsigned char first = 0;
    TRY(read_element(c, &first));
    unsigned char last = first;
    if (c->at[0] == '-' && c->at[1] != ']') {
        c->at++;
        TRY(read_element(c, &last));
    }
    if (last < first) {
        return refuse(c, "a range that ends before it begins");
    }
    for (unsigned byte = first; byte <= last; byte++) {
        set_add(set, (unsigned char)byte);
    }
    return ERR_OK;
}

// c->at is behind the opening bracket.
static MUST_USE enum err read_brackets(struct compiler *c)
{
    struct name_regex_set set = {0};
    bool is_inverted = *c->at == '^';
    c->at += is_inverted;
    bool is_first = true; // a ] in the first place is itself
    while (is_first || *c->at != ']') {
        is_first = false;
        TRY(read_bracket_item(c, &set));
    }
    c->at++;
    if (is_inverted) {
        set_invert(&set);
    }
    return append_set(c, set);
}

static MUST_USE enum err append_class(struct compiler *c, const char *name, bool with_underscore)
{
    struct name_regex_set set = {0};
    (void)set_add_class(&set, name, strlen(name)); // of our own words
    if (with_underscore) {
        set_add(&set, '_');
    }
    if (isupper((unsigned char)c->at[-1]) != 0) {
        set_invert(&set);
    }
    return append_set(c, set);
}

static MUST_USE enum err append_assertion(struct compiler *c, enum op_assertion assertion)
{
    return append(c, (struct name_regex_op){.kind = OP_ASSERT, .detail = assertion});
}

// c->at is behind the backslash.
static MUST_USE enum err read_escape(struct compiler *c)
{
    char character = *c->at;
    if (character == '\0') {
        return refuse(c, "it ends with a backslash");
    }
    c->at++;
    switch (character) {
    case 'w':
    case 'W':
        return append_class(c, "alnum", true);
    case 's':
    case 'S':
        return append_class(c, "space", false);
    case 'b':
        return append_assertion(c, ASSERT_WORD_EDGE);
    case 'B':
        return append_assertion(c, ASSERT_NO_WORD_EDGE);
    case '<':
        return append_assertion(c, ASSERT_WORD_BEGIN);
    case '>':
        return append_assertion(c, ASSERT_WORD_END);
    case '`':
        return append_assertion(c, ASSERT_BEGIN);
    case '\'':
        return append_assertion(c, ASSERT_END);
    default:
        break;
    }
    if (character >= '1' && character <= '9') {
        return err_set(c->info, ERR_UNSUPPORTED, "%s: back-references are not supported", c->name);
    }
    return append(c, (struct name_regex_op){.kind = OP_CHAR, .detail = (uint8_t)character});
}

static MUST_USE enum err read_alternatives(struct compiler *c);

static MUST_USE enum err read_group(struct compiler *c)
{
    if (c->depth == NAME_REGEX_MAX_DEPTH) {
        return err_set(c->info, ERR_LIMIT, "%s: more than %d groups inside each other", c->name,
                       NAME_REGEX_MAX_DEPTH);
    }
    c->depth++;
    TRY(read_alternatives(c));
    c->depth--;
    if (*c->at != ')') {
        return refuse(c, "a ( without its )");
    }
    c->at++;
    return ERR_OK;
}

static bool is_repetition(char character)
{
    return character == '*' || character == '+' || character == '?' || character == '{';
}

static MUST_USE enum err read_atom(struct compiler *c)
{
    char character = *c->at++;
    switch (character) {
    case '(':
        return read_group(c);
    case '[':
        return read_brackets(c);
    case '\\':
        return read_escape(c);
    case '.':
        return append(c, (struct name_regex_op){.kind = OP_ANY});
    case '^':
    case '$':
        return append_assertion(c, character == '^' ? ASSERT_BEGIN : ASSERT_END);
    default:
        break;
    }
    if (is_repetition(character)) {
        return refuse(c, "nothing to repeat");
    }
    return append(c, (struct name_regex_op){.kind = OP_CHAR, .detail = (uint8_t)character});
}

static MUST_USE enum err read_number(struct compiler *c, unsigned *out)
{
    unsigned number = 0;
    for (; isdigit((unsigned char)*c->at) != 0; c->at++) {
        number = number * 10 + (unsigned)(*c->at - '0');
        if (number > COUNT_MAX) {
            return refuse(c, "too many repetitions");
        }
    }
    *out = number;
    return ERR_OK;
}

// "{n}", "{n,}", "{,m}" or "{n,m}"; c->at is behind the brace.
static MUST_USE enum err read_counts(struct compiler *c, unsigned *least, unsigned *most)
{
    bool has_least = isdigit((unsigned char)*c->at) != 0;
    TRY(read_number(c, least));
    *most = *least;
    if (*c->at == ',') {
        c->at++;
        bool has_most = isdigit((unsigned char)*c->at) != 0;
        TRY(read_number(c, most));
        *most = has_most ? *most : COUNT_OPEN;
    } else if (!has_least) {
        return refuse(c, "a { without numbers");
    }
    if (*c->at != '}') {
        return refuse(c, "a { without its }");
    }
    c->at++;
    return *most < *least ? refuse(c, "a { with numbers the wrong way round") : ERR_OK;
}

// Makes the part from `first` to the end repeat any number of times.
static MUST_USE enum err loop(struct compiler *c, size_t first)
{
    size_t len = c->out->ops.len - first;
    TRY(insert(c, first, 1));
    c->out->ops.items[first] = split(1, len + 2);
    return append(c, (struct name_regex_op){.kind = OP_JUMP, .left = (int16_t) - (int)(len + 1)});
}

static MUST_USE enum err repeat(struct compiler *c, size_t first, unsigned least, unsigned most)
{
    struct name_regex_op_vec *ops = &c->out->ops;
    size_t len = ops->len - first;
    CLEANUP(name_regex_op_vec_release) struct name_regex_op_vec part = {0};
    TRY(name_regex_op_vec_resize(&part, len));
    if (len > 0) {
        memcpy(part.items, ops->items + first, len * sizeof(part.items[0]));
    }
    ops->len = first;
    for (unsigned i = 0; i < least; i++) {
        TRY(append_copy(c, part.items, len));
    }
    if (most == COUNT_OPEN) {
        size_t last = ops->len;
        TRY(append_copy(c, part.items, len));
        return loop(c, last);
    }
    for (unsigned left = most - least; left > 0; left--) { // each may end it all
        size_t behind = left * (len + 1);
        if (behind >= NAME_REGEX_MAX_OPS) {
            return err_set(c->info, ERR_LIMIT, "%s: the regular expression is too large", c->name);
        }
        TRY(append(c, split(1, behind)));
        TRY(append_copy(c, part.items, len));
    }
    return ERR_OK;
}

static MUST_USE enum err read_repetitions(struct compiler *c, size_t first)
{
    while (is_repetition(*c->at)) {
        char character = *c->at++;
        unsigned least = character == '+';
        unsigned most = character == '?' ? 1 : COUNT_OPEN;
        if (character == '{') {
            TRY(read_counts(c, &least, &most));
        }
        TRY(repeat(c, first, least, most));
    }
    return ERR_OK;
}

static MUST_USE enum err read_branch(struct compiler *c)
{
    while (*c->at != '\0' && *c->at != '|' && (*c->at != ')' || c->depth == 0)) {
        size_t first = c->out->ops.len;
        TRY(read_atom(c));
        bool is_assertion = c->out->ops.len == first + 1 &&
                            c->out->ops.items[first].kind == OP_ASSERT && c->at[-1] != ')';
        if (is_assertion && is_repetition(*c->at)) {
            return refuse(c, "nothing to repeat");
        }
        TRY(read_repetitions(c, first));
    }
    return ERR_OK;
}

static MUST_USE enum err read_alternatives(struct compiler *c)
{
    size_t first = c->out->ops.len;
    TRY(read_branch(c));
    while (*c->at == '|') {
        c->at++;
        size_t len = c->out->ops.len - first;
        TRY(insert(c, first, 1));
        c->out->ops.items[first] = split(1, len + 2);
        size_t jump = c->out->ops.len;
        TRY(append(c, (struct name_regex_op){.kind = OP_JUMP}));
        // The next turn's split goes before all that was read so far.
        TRY(read_branch(c));
        c->out->ops.items[jump].left = (int16_t)(c->out->ops.len - jump);
    }
    return ERR_OK;
}

static MUST_USE enum err make_room_to_run(struct name_regex *regex)
{
    size_t count = regex->ops.len;
    TRY(op_index_vec_reserve(&regex->current, count));
    TRY(op_index_vec_reserve(&regex->next, count));
    TRY(op_index_vec_reserve(&regex->pending, count));
    return u32_vec_resize(&regex->seen, count);
}

enum err name_regex_compile(struct name_regex *out,
                            const char *text,
                            const char *name,
                            struct err_info *info)
{
    CLEANUP(name_regex_release) struct name_regex regex = {0};
    struct compiler c = {.out = &regex, .at = text, .whole = text, .name = name, .info = info};
    TRY(read_alternatives(&c));
    TRY(append(&c, (struct name_regex_op){.kind = OP_MATCH}));
    TRY(make_room_to_run(&regex));
    *out = regex;
    regex = (struct name_regex){0};
    return ERR_OK;
}
