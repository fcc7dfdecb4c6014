// SPDX-License-Identifier: MIT
// leaking_server: answers 600 requests in about three seconds, and forgets the session of each one
// whose login fails. docs/user/first-screens.md shows how cairn reports it.
//
//   cc -g -O1 -o leaking_server examples/leaking_server.c && cairn ./leaking_server
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct session {
    char user[32];
    char scratch[4064];
};

static struct session *open_session(unsigned number)
{
    struct session *session = calloc(1, sizeof(*session));
    if (session != NULL) {
        snprintf(session->user, sizeof(session->user), "user%u", number);
    }
    return session;
}

// Return the length of the answer, 0 if the login fails.
static size_t answer(unsigned number)
{
    struct session *session = open_session(number);
    if (session == NULL || number % 3 == 0) {
        return 0; // the session is forgotten here
    }
    char *page = malloc(20000);
    const size_t length =
        page == NULL ? 0 : (size_t)snprintf(page, 20000, "<p>Hello, %s", session->user);
    free(page);
    free(session);
    return length;
}

int main(void)
{
    size_t sent = 0;
    for (unsigned number = 0; number < 600; number++) {
        sent += answer(number);
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    printf("%zu bytes sent\n", sent);
    return 0;
}
