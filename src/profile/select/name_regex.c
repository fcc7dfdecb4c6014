// SPDX-License-Identifier: MIT
// name_regex: running a compiled expression. See name_regex.h.
//
// `seen` holds the number of the round (one for each character) in which an instruction was last
// entered: each runs at most once a round, and loops that take no character end.
#include "profile/select/name_regex.h"

#include <ctype.h>
#include <string.h>

#include "profile/select/name_regex_ops.h"

void name_regex_release(struct name_regex *regex)
{
    name_regex_op_vec_release(&regex->ops);
    name_regex_set_vec_release(&regex->sets);
    op_index_vec_release(&regex->current);
    op_index_vec_release(&regex->next);
    op_index_vec_release(&regex->pending);
    u32_vec_release(&regex->seen);
}

static bool is_word(unsigned char character)
{
    return isalnum(character) != 0 || character == '_';
}

static bool holds(enum op_assertion assertion, const unsigned char *text, size_t at)
{
    bool before = at > 0 && is_word(text[at - 1]);
    bool after = is_word(text[at]); // the final zero is none
    switch (assertion) {
    case ASSERT_BEGIN:
        return at == 0;
    case ASSERT_END:
        return text[at] == '\0';
    case ASSERT_WORD_EDGE:
        return before != after;
    case ASSERT_NO_WORD_EDGE:
        return before == after;
    case ASSERT_WORD_BEGIN:
        return !before && after;
    case ASSERT_WORD_END:
        return before && !after;
    }
    return false;
}

static void follow(struct name_regex *regex, size_t op)
{
    if (regex->seen.items[op] != regex->round) {
        regex->seen.items[op] = regex->round;
        regex->pending.items[regex->pending.len++] = (uint16_t)op;
    }
}

// Enters `first` and what can be reached from it without a character; those that wait for one are
// added to `states`. Returns whether the end was among them. All vectors have room for every
// instruction once, which `seen` sees to.
static bool enter(struct name_regex *regex,
                  size_t first,
                  const unsigned char *text,
                  size_t at,
                  struct op_index_vec *states)
{
    bool is_match = false;
    follow(regex, first);
    while (regex->pending.len > 0) {
        size_t here = regex->pending.items[--regex->pending.len];
        const struct name_regex_op *op = &regex->ops.items[here];
        switch ((enum op_kind)op->kind) {
        case OP_CHAR:
        case OP_ANY:
        case OP_SET:
            states->items[states->len++] = (uint16_t)here;
            break;
        case OP_SPLIT:
            follow(regex, here + (size_t)(ptrdiff_t)op->left);
            follow(regex, here + (size_t)(ptrdiff_t)op->right);
            break;
        case OP_JUMP:
            follow(regex, here + (size_t)(ptrdiff_t)op->left);
            break;
        case OP_ASSERT:
            if (holds((enum op_assertion)op->detail, text, at)) {
                follow(regex, here + 1);
            }
            break;
        case OP_MATCH:
            is_match = true;
            break;
        }
    }
    return is_match;
}

static bool
takes(const struct name_regex *regex, const struct name_regex_op *op, unsigned char character)
{
    switch ((enum op_kind)op->kind) {
    case OP_CHAR:
        return op->detail == character;
    case OP_ANY:
        return true;
    case OP_SET:
        return (regex->sets.items[op->left].bits[character / 64] >> (character % 64) & 1) != 0;
    case OP_SPLIT:
    case OP_JUMP:
    case OP_ASSERT:
    case OP_MATCH:
        break;
    }
    return false;
}

static void begin_round(struct name_regex *regex)
{
    if (++regex->round == 0) { // after 2^32 characters all marks are old
        memset(regex->seen.items, 0, regex->seen.len * sizeof(regex->seen.items[0]));
        regex->round = 1;
    }
}

static void swap_states(struct name_regex *regex)
{
    struct op_index_vec states = regex->current;
    regex->current = regex->next;
    regex->next = states;
    regex->next.len = 0;
}

bool name_regex_matches(struct name_regex *regex, const char *name, uint64_t *work)
{
    const unsigned char *text = (const unsigned char *)name;
    regex->current.len = 0;
    regex->next.len = 0;
    begin_round(regex);
    bool is_match = enter(regex, 0, text, 0, &regex->current);
    for (size_t at = 0; !is_match && text[at] != '\0'; at++) {
        begin_round(regex);
        *work += regex->current.len + 1;
        for (size_t i = 0; i < regex->current.len && !is_match; i++) {
            size_t here = regex->current.items[i];
            if (takes(regex, &regex->ops.items[here], text[at])) {
                is_match = enter(regex, here + 1, text, at + 1, &regex->next);
            }
        }
        // A match may begin anywhere.
        is_match = is_match || enter(regex, 0, text, at + 1, &regex->next);
        swap_states(regex);
    }
    return is_match;
}
