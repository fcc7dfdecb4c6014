// SPDX-License-Identifier: MIT
// budget: a test that says how much the code under test may allocate, and events with a weight.
//
//   cc -I/usr/include examples/budget.c -o budget && cairn ./budget
//
// Without cairn it runs as well, and counts nothing. `budget over` and `budget high` break a budget
// and abort.
// TRUTH: allocations=5 frees=4 allocated_bytes=69 freed_bytes=58 live_bytes=11
// TRUTH: live_blocks=1 temporary=3
#define CAIRN_ASSERTS
#include <cairn.h>
#include <stdlib.h>
#include <string.h>

static char *join(const char *left, const char *right)
{
    const size_t bytes = strlen(left) + strlen(right) + 1;
    char *text = malloc(bytes);
    if (text != NULL) {
        strcpy(text, left);
        strcat(text, right);
    }
    cairn_event("bytes joined", bytes);
    return text;
}

// Holds 16 bytes, and then 24.
static void grow(void)
{
    char *text = malloc(16);
    free(realloc(text, 24));
}

int main(int count, char **arguments)
{
    const int is_over = count == 2 && strcmp(arguments[1], "over") == 0;
    const int is_high = count == 2 && strcmp(arguments[1], "high") == 0;
    char *kept = NULL;
    CAIRN_ASSERT_AT_MOST(allocations, is_over ? 0 : 1, kept = join("peak", " bytes"));
    CAIRN_ASSERT_AT_MOST(live_bytes, 0, free(join("leaked", "")));
    CAIRN_ASSERT_PEAK_AT_MOST(is_high ? 23 : 24, grow());

    struct cairn_scope scope;
    struct cairn_stats spent;
    cairn_scope_begin(&scope, CAIRN_THREAD);
    char *text = join(kept, "");
    free(kept);
    // 0: nobody records, and there is nothing to be held to.
    if (cairn_scope_end(&scope, &spent) &&
        (spent.allocations != 1 || spent.allocated_bytes != 11 || spent.live_bytes != 0)) {
        return 1;
    }
    return text == NULL;
}
