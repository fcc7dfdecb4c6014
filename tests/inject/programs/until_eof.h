// SPDX-License-Identifier: MIT
// until_eof: the common frame of targets. A target prints "ready", works until its input ends, and
// prints its verdict. The one thread that reads the input is itself blocked in a call.
#pragma once

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static _Atomic bool g_is_over;
static _Atomic unsigned long g_failures;
static _Atomic unsigned long g_checks;

__attribute__((format(printf, 1, 2), unused)) static void fail(const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    int len = vsnprintf(text, sizeof(text) - 1, format, arguments);
    va_end(arguments);
    if (atomic_fetch_add(&g_failures, 1) < 20) {
        const size_t end = len < (int)sizeof(text) - 1 ? (size_t)len : sizeof(text) - 2;
        text[end] = '\n';
        (void)!write(2, text, end + 1);
    }
}

static void *wait_for_eof(void *argument)
{
    char byte;
    (void)argument;
    ssize_t got;
    while ((got = read(0, &byte, 1)) > 0) {
    }
    if (got < 0) {
        fail("read of the input: %s", strerror(errno));
    }
    g_is_over = true;
    return NULL;
}

__attribute__((unused)) static pthread_t start(void *(*run)(void *), void *argument)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, argument) != 0) {
        perror("pthread_create");
        exit(3);
    }
    return thread;
}

__attribute__((unused)) static void begin(void)
{
    (void)start(wait_for_eof, NULL);
    (void)!write(1, "ready\n", 6);
}

static int verdict(void)
{
    printf("checks %lu failures %lu\n", g_checks, g_failures);
    return g_failures == 0 && g_checks > 0 ? 0 : 1;
}
