// SPDX-License-Identifier: MIT
// http_client: sends a request to an HTTP server and reads a bounded answer, over libcurl.
//
// libcurl is loaded when the first client is made: loading it and its libraries takes longer than
// some recorded runs. Certificates are verified. A redirection is never followed: it is an answer
// as any other, and no proxy stands between this machine and itself, so credentials reach no other
// host. Every request has a time limit, and headers and body of an answer are cut off at a bound.
// Context: H. A client is for one thread at a time. Trust: answers are hostile.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/err.h"
#include "host/text/strbuf.h"

struct http_client_options {
    const char *credentials; // "USER:PASSWORD" (Basic) or a token (Bearer); NULL: none
    const char *ca_file;     // PEM file of trusted certificates; NULL: those of the system
    uint64_t timeout_ms;     // of a request, connecting included
    size_t body_max_bytes;   // what of an answer's body is kept; the rest is not read
};

struct http_request {
    const char *url; // http:// or https://
    struct bytes body;
    const char *content_type;          // of the body; NULL: a GET without body
    bool (*is_cancelled)(void *owner); // asked at least once a second; may be NULL
    void *owner;                       // borrowed
};

struct http_answer {
    unsigned status;
    uint64_t retry_after_ms; // as the server asks; 0: it does not
    struct strbuf body;      // owned
    bool is_cut;             // the body was longer
};

struct http_client;

// Make a client. The texts of the options are copied. ERR_UNSUPPORTED: libcurl is not installed;
// ERR_NO_MEMORY, with a sentence.
enum err http_client_new(const struct http_client_options *options,
                         struct http_client **out,
                         struct err_info *info) MUST_USE;
void http_client_free(struct http_client *client); // accepts NULL

// Append a text as a part of a URL: each byte that RFC 3986 reserves as %XX.
void http_append_escaped(struct strbuf *out, const char *text);
bool http_is_unreserved(char character);

// Check that a request to the URL with credentials or without them would be sent: http or https, no
// credentials within the URL, none in clear text beyond the loopback. ERR_INVALID with a sentence
// that begins with `option`.
enum err http_client_check_url(const char *url,
                               bool has_credentials,
                               const char *option,
                               struct err_info *info) MUST_USE;

// Send a request. Any status of a whole answer is a success, and so is an answer that is cut.
// ERR_IO with a sentence: no connection, no answer within the time, no HTTP. ERR_CANCELLED.
enum err http_client_send(struct http_client *client,
                          const struct http_request *request,
                          struct http_answer *out,
                          struct err_info *info) MUST_USE;
void http_answer_release(struct http_answer *answer);
