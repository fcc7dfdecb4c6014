// SPDX-License-Identifier: MIT
// http_client: see http_client.h.
//
// Only functions of libcurl 7.74 (Debian 11) and older are used.
#include "host/http/http_client.h"

#include <ctype.h>
#include <curl/curl.h>
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/minmax.h"
#include "host/text/number.h"

enum {
    HEADERS_MAX_BYTES = 64 << 10,
    RESULT_TOO_LARGE = 100, // CURLE_TOO_LARGE, since 8.6
};

static const char library_file[] = "libcurl.so.4";

// X(name): the functions that are called.
#define FUNCTIONS(X) \
    X(global_init)   \
    X(easy_init)     \
    X(easy_cleanup)  \
    X(easy_reset)    \
    X(easy_setopt)   \
    X(easy_perform)  \
    X(easy_getinfo)  \
    X(easy_strerror) \
    X(slist_append)  \
    X(slist_free_all)

#undef curl_easy_setopt
#undef curl_easy_getinfo

// Written once, by the first http_client_new.
static struct {
#define X(name) __typeof__(curl_##name) *name;
    FUNCTIONS(X)
#undef X
} library;

struct http_client {
    CURL *curl;          // owned
    char *authorization; // owned; of a Bearer token, as a header; NULL: none
    char *login;         // owned; USER:PASSWORD; NULL: none
    char *ca_file;       // owned; NULL: the system's
    uint64_t timeout_ms;
    size_t body_max_bytes;
};

// A request in progress.
struct transfer {
    const struct http_client *client;
    const struct http_request *request;
    struct http_answer answer;
    size_t headers_bytes;
    char message[CURL_ERROR_SIZE];
};

static MUST_USE enum err load_library(struct err_info *info)
{
    static const struct {
        const char *name;
        void **slot;
    } functions[] = {
#define X(name) {"curl_" #name, (void **)&library.name},
        FUNCTIONS(X)
#undef X
    };
    if (library.global_init != NULL) {
        return ERR_OK;
    }
    void *handle = dlopen(library_file, RTLD_NOW | RTLD_LOCAL); // stays loaded
    if (handle == NULL) {
        return err_set(info, ERR_UNSUPPORTED, "cannot load libcurl, which sends requests: %s",
                       dlerror());
    }
    for (size_t i = ARRAY_LEN(functions); i-- > 0;) { // global_init last: it marks success
        *functions[i].slot = dlsym(handle, functions[i].name);
        if (*functions[i].slot == NULL) {
            return err_set(info, ERR_UNSUPPORTED, "'%s' lacks the function %s", library_file,
                           functions[i].name);
        }
    }
    if (library.global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        return err_set(info, ERR_UNSUPPORTED, "libcurl cannot be initialized");
    }
    return ERR_OK;
}

static MUST_USE enum err copy_text(const char *text, char **out)
{
    *out = text != NULL ? strdup(text) : NULL;
    return text == NULL || *out != NULL ? ERR_OK : ERR_NO_MEMORY;
}

static MUST_USE enum err copy_options(struct http_client *client,
                                      const struct http_client_options *options)
{
    client->timeout_ms = options->timeout_ms;
    client->body_max_bytes = options->body_max_bytes;
    TRY(copy_text(options->ca_file, &client->ca_file));
    if (options->credentials == NULL) {
        return ERR_OK;
    }
    if (strchr(options->credentials, ':') != NULL) {
        return copy_text(options->credentials, &client->login);
    }
    CLEANUP(strbuf_release) struct strbuf header = {0};
    strbuf_printf(&header, "Authorization: Bearer %s", options->credentials);
    client->authorization = strbuf_take(&header);
    return client->authorization != NULL ? ERR_OK : ERR_NO_MEMORY;
}

enum err http_client_new(const struct http_client_options *options,
                         struct http_client **out,
                         struct err_info *info)
{
    TRY(load_library(info));
    struct http_client *client = calloc(1, sizeof(*client));
    if (client != NULL) {
        client->curl = library.easy_init();
    }
    if (client == NULL || client->curl == NULL || copy_options(client, options) != ERR_OK) {
        http_client_free(client);
        return ERR_NO_MEMORY;
    }
    *out = client;
    return ERR_OK;
}

void http_client_free(struct http_client *client)
{
    if (client == NULL) {
        return;
    }
    if (client->curl != NULL) {
        library.easy_cleanup(client->curl);
    }
    free(client->authorization);
    free(client->login);
    free(client->ca_file);
    free(client);
}

// --- the URL ------------------------------------------------------------------------------------

bool http_is_unreserved(char character)
{
    return character != '\0' &&
           (isalnum((unsigned char)character) != 0 || strchr("-._~", character) != NULL);
}

void http_append_escaped(struct strbuf *out, const char *text)
{
    for (; *text != '\0'; text++) {
        if (http_is_unreserved(*text)) {
            strbuf_append_char(out, *text);
        } else {
            strbuf_printf(out, "%%%02X", (unsigned)(unsigned char)*text);
        }
    }
}

static bool is_loopback(const char *host, size_t len)
{
    static const char *const names[] = {"localhost", "[::1]", "127.0.0.1"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strlen(names[i]) == len && strncasecmp(host, names[i], len) == 0) {
            return true;
        }
    }
    return false;
}

// Return the length of HOST in HOST:PORT. HOST may have colons itself: [::1]:80.
static size_t host_len(const char *authority, size_t len)
{
    const char *end = authority[0] == '[' ? memchr(authority, ']', len) : NULL;
    const size_t skipped = end != NULL ? (size_t)(end - authority) : 0;
    const char *colon = memchr(authority + skipped, ':', len - skipped);
    return colon != NULL ? (size_t)(colon - authority) : len;
}

// Check the port of HOST:PORT, which may be empty. libcurl would refuse it at each request.
static bool has_valid_port(const char *authority, size_t host, size_t len)
{
    enum {
        DIGITS_MAX = 5
    };
    char digits[DIGITS_MAX + 1] = "";
    uint64_t port = 0;
    if (host + 1 >= len) {
        return true;
    }
    const size_t digit_count = len - host - 1;
    memcpy(digits, authority + host + 1, min_u64(digit_count, DIGITS_MAX));
    return digit_count <= DIGITS_MAX && number_parse(digits, UINT16_MAX, &port) && port > 0;
}

// Whether a URL that http_client_check_url accepts leads to this machine.
static bool leads_to_loopback(const char *url)
{
    const char *authority = strstr(url, "://");
    authority = authority != NULL ? authority + 3 : url;
    return is_loopback(authority, host_len(authority, strcspn(authority, "/?#")));
}

enum err http_client_check_url(const char *url,
                               bool has_credentials,
                               const char *option,
                               struct err_info *info)
{
    const bool is_secret = strncasecmp(url, "https://", 8) == 0;
    if (!is_secret && strncasecmp(url, "http://", 7) != 0) {
        return err_set(info, ERR_INVALID, "%s: the URL must begin with http:// or https://",
                       option);
    }
    const char *authority = url + (is_secret ? 8 : 7);
    const size_t len = strcspn(authority, "/?#");
    for (const char *at = url; *at != '\0'; at++) {
        if ((unsigned char)*at <= ' ' || *at == '\x7f') {
            return err_set(info, ERR_INVALID, "%s: the URL has a blank or a control character",
                           option);
        }
    }
    if (memchr(authority, '@', len) != NULL) {
        return err_set(info, ERR_INVALID,
                       "%s: credentials do not belong into the URL, which every user of this "
                       "machine can see",
                       option);
    }
    const size_t host = host_len(authority, len);
    if (host == 0) {
        return err_set(info, ERR_INVALID, "%s: the URL has no host", option);
    }
    if (!has_valid_port(authority, host, len)) {
        return err_set(info, ERR_INVALID, "%s: the port of the URL is not a number from 1 to 65535",
                       option);
    }
    if (has_credentials && !is_secret && !is_loopback(authority, host)) {
        return err_set(info, ERR_INVALID, "%s: beyond the loopback, credentials need https://",
                       option);
    }
    return ERR_OK;
}

// --- a request ----------------------------------------------------------------------------------

static size_t take_header(char *data, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    (void)data;
    transfer->headers_bytes += size * count;
    return transfer->headers_bytes <= HEADERS_MAX_BYTES ? size * count : 0; // 0 ends the transfer
}

static size_t take_body(char *data, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    struct http_answer *answer = &transfer->answer;
    const size_t len = size * count;
    const size_t room = transfer->client->body_max_bytes - answer->body.len;
    strbuf_append(&answer->body, data, min_u64(len, room));
    answer->is_cut = len > room;
    return answer->is_cut ? 0 : len;
}

static int
take_progress(void *context, curl_off_t down, curl_off_t got, curl_off_t up, curl_off_t sent)
{
    const struct http_request *request = ((const struct transfer *)context)->request;
    (void)down;
    (void)got;
    (void)up;
    (void)sent;
    return request->is_cancelled != NULL && request->is_cancelled(request->owner);
}

// Append a header. Without memory the list stays as it was.
static MUST_USE enum err add_header(struct curl_slist **list, const char *header)
{
    struct curl_slist *longer = library.slist_append(*list, header);
    if (longer == NULL) {
        return ERR_NO_MEMORY;
    }
    *list = longer;
    return ERR_OK;
}

static MUST_USE enum err list_headers(const struct transfer *transfer, struct curl_slist **list)
{
    CLEANUP(strbuf_release) struct strbuf type = {0};
    TRY(add_header(list, "Expect:")); // curl would wait a second for a server without "continue"
    if (transfer->client->authorization != NULL) {
        TRY(add_header(list, transfer->client->authorization));
    }
    if (transfer->request->content_type != NULL) {
        strbuf_printf(&type, "Content-Type: %s", transfer->request->content_type);
        TRY(strbuf_result(&type));
        TRY(add_header(list, strbuf_text(&type)));
    }
    return ERR_OK;
}

// Set the options. Those that fail for lack of memory make the request fail, too.
static void set_options(struct transfer *transfer, const struct curl_slist *headers)
{
    const struct http_client *client = transfer->client;
    const struct http_request *request = transfer->request;
    CURL *curl = client->curl;
    const long timeout_ms = (long)min_u64(client->timeout_ms, LONG_MAX);
    library.easy_reset(curl);
    (void)library.easy_setopt(curl, CURLOPT_URL, request->url);
    (void)library.easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    (void)library.easy_setopt(curl, CURLOPT_ERRORBUFFER, transfer->message);
    (void)library.easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
    (void)library.easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, timeout_ms);
    (void)library.easy_setopt(curl, CURLOPT_USERAGENT, "cairn");
    (void)library.easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    (void)library.easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    (void)library.easy_setopt(curl, CURLOPT_HEADERDATA, transfer);
    (void)library.easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    (void)library.easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
    (void)library.easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
    (void)library.easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, take_progress);
    (void)library.easy_setopt(curl, CURLOPT_XFERINFODATA, transfer);
    if (request->content_type != NULL) {
        (void)library.easy_setopt(curl, CURLOPT_POST, 1L);
        (void)library.easy_setopt(curl, CURLOPT_POSTFIELDS, (const char *)request->body.data);
        (void)library.easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
    }
    // http_proxy would take credentials, which the loopback gets in clear text, to another host.
    if (leads_to_loopback(request->url)) {
        (void)library.easy_setopt(curl, CURLOPT_PROXY, "");
    }
    if (client->ca_file != NULL) {
        (void)library.easy_setopt(curl, CURLOPT_CAINFO, client->ca_file);
    }
    if (client->login != NULL) {
        (void)library.easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BASIC);
        (void)library.easy_setopt(curl, CURLOPT_USERPWD, client->login);
    }
}

// Return whether a transfer failed at a header that exceeds a bound. libcurl has one of its own for
// a line, and calls that a lack of memory.
static bool has_long_header(const struct transfer *transfer, CURLcode result)
{
    double first_byte = 0;
    (void)library.easy_getinfo(transfer->client->curl, CURLINFO_STARTTRANSFER_TIME, &first_byte);
    return transfer->headers_bytes > HEADERS_MAX_BYTES ||
           (first_byte > 0 && (result == CURLE_OUT_OF_MEMORY || (int)result == RESULT_TOO_LARGE));
}

static MUST_USE enum err
finish_request(struct transfer *transfer, CURLcode result, struct err_info *info)
{
    struct http_answer *answer = &transfer->answer;
    CURL *curl = transfer->client->curl;
    long status = 0;
    curl_off_t retry_after = 0;
    (void)library.easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status); // 0 on failure
    (void)library.easy_getinfo(curl, CURLINFO_RETRY_AFTER, &retry_after);
    if (result == CURLE_ABORTED_BY_CALLBACK) {
        return err_set(info, ERR_CANCELLED, "the request was cancelled");
    }
    if (result != CURLE_OK && has_long_header(transfer, result)) {
        return err_set(info, ERR_IO, "the header of the server's answer is too long");
    }
    if (result != CURLE_OK && !answer->is_cut) {
        return err_set(info, ERR_IO, "%s",
                       transfer->message[0] != '\0' ? transfer->message
                                                    : library.easy_strerror(result));
    }
    TRY(strbuf_result(&answer->body));
    answer->status = status > 0 ? (unsigned)status : 0;
    answer->retry_after_ms =
        retry_after > 0 ? min_u64((uint64_t)retry_after, UINT32_MAX) * MS_PER_S : 0;
    return ERR_OK;
}

static void free_headers(struct curl_slist **list)
{
    library.slist_free_all(*list); // accepts NULL
}

enum err http_client_send(struct http_client *client,
                          const struct http_request *request,
                          struct http_answer *out,
                          struct err_info *info)
{
    struct transfer transfer = {.client = client, .request = request};
    CLEANUP(free_headers) struct curl_slist *headers = NULL;
    enum err err = list_headers(&transfer, &headers);
    if (err == ERR_OK) {
        set_options(&transfer, headers);
        err = finish_request(&transfer, library.easy_perform(client->curl), info);
    }
    if (err != ERR_OK) {
        http_answer_release(&transfer.answer);
        return err;
    }
    *out = transfer.answer;
    return ERR_OK;
}

void http_answer_release(struct http_answer *answer)
{
    strbuf_release(&answer->body);
    *answer = (struct http_answer){0};
}
