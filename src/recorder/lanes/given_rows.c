// SPDX-License-Identifier: MIT
#include "recorder/lanes/given_rows.h"

void given_rows_add(struct given_rows *given,
                    const struct session *session,
                    uint32_t process,
                    const struct u32_vec *numbers)
{
    if (given->list == NULL && !given->is_refused) {
        given->list = session_map_free_rows(session, process);
        given->is_refused = given->list == NULL;
    }
    for (size_t i = 0; i < numbers->len && given->list != NULL; i++) {
        free_rows_give(given->list, numbers->items[i]);
    }
}

void given_rows_release(struct given_rows *given)
{
    session_unmap_free_rows(given->list);
    *given = (struct given_rows){0};
}
