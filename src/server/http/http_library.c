// SPDX-License-Identifier: MIT
// http_library: see http_library.h.
//
// Invariant: nothing of the library is called before its functions have been found, all of them.
#include "server/http/http_library.h"

#include <dlfcn.h>
#include <microhttpd.h>
#include <stdarg.h>

#include "base/compiler.h"

// X(result, name, parameters, arguments)
#define FORWARDED(X)                                                                            \
    X(void, stop_daemon, (struct MHD_Daemon * daemon), (daemon))                                \
    X(MHD_socket, quiesce_daemon, (struct MHD_Daemon * daemon), (daemon))                       \
    X(int, get_connection_values,                                                               \
      (struct MHD_Connection * connection, enum MHD_ValueKind kind, MHD_KeyValueIterator each,  \
       void *context),                                                                          \
      (connection, kind, each, context))                                                        \
    X(int, get_connection_values_n,                                                             \
      (struct MHD_Connection * connection, enum MHD_ValueKind kind, MHD_KeyValueIteratorN each, \
       void *context),                                                                          \
      (connection, kind, each, context))                                                        \
    X(const char *, lookup_connection_value,                                                    \
      (struct MHD_Connection * connection, enum MHD_ValueKind kind, const char *key),           \
      (connection, kind, key))                                                                  \
    X(enum MHD_Result, queue_response,                                                          \
      (struct MHD_Connection * connection, unsigned status, struct MHD_Response *response),     \
      (connection, status, response))                                                           \
    X(struct MHD_Response *, create_response_from_callback,                                     \
      (uint64_t size, size_t block_size, MHD_ContentReaderCallback reader, void *context,       \
       MHD_ContentReaderFreeCallback release),                                                  \
      (size, block_size, reader, context, release))                                             \
    X(struct MHD_Response *, create_response_from_buffer,                                       \
      (size_t size, void *buffer, enum MHD_ResponseMemoryMode mode), (size, buffer, mode))      \
    X(void, destroy_response, (struct MHD_Response * response), (response))                     \
    X(enum MHD_Result, add_response_header,                                                     \
      (struct MHD_Response * response, const char *name, const char *value),                    \
      (response, name, value))

// Written once, by http_library_load.
static struct {
#define X(result, name, parameters, arguments) result(*name) parameters;
    FORWARDED(X)
#undef X
    __typeof__(MHD_start_daemon_va) *start_daemon_va;
    __typeof__(MHD_get_connection_info) *get_connection_info;
} library;

enum err http_library_load(struct err_info *info)
{
    static const struct {
        const char *name;
        void **slot;
    } functions[] = {
#define X(result, name, parameters, arguments) {"MHD_" #name, (void **)&library.name},
        FORWARDED(X)
#undef X
            {"MHD_start_daemon_va", (void **)&library.start_daemon_va},
        {"MHD_get_connection_info", (void **)&library.get_connection_info}};
    void *handle = dlopen(MICROHTTPD_FILE, RTLD_NOW | RTLD_LOCAL); // stays loaded
    for (size_t i = 0; handle != NULL && i < ARRAY_LEN(functions); i++) {
        *functions[i].slot = dlsym(handle, functions[i].name);
        handle = *functions[i].slot != NULL ? handle : NULL;
    }
    return handle != NULL ? ERR_OK
                          : err_set(info, ERR_IO, "cannot load the web server: %s", dlerror());
}

#define X(result, name, parameters, arguments) \
    result MHD_##name parameters               \
    {                                          \
        return library.name arguments;         \
    }
FORWARDED(X)
#undef X

struct MHD_Daemon *MHD_start_daemon(unsigned flags,
                                    uint16_t port,
                                    MHD_AcceptPolicyCallback accept,
                                    void *accept_context,
                                    MHD_AccessHandlerCallback handle,
                                    void *handle_context,
                                    ...)
{
    va_list options;
    va_start(options, handle_context);
    struct MHD_Daemon *daemon = library.start_daemon_va(flags, port, accept, accept_context, handle,
                                                        handle_context, options);
    va_end(options);
    return daemon;
}

// The server requests no kind of information that needs further arguments.
const union MHD_ConnectionInfo *
MHD_get_connection_info(struct MHD_Connection *connection, enum MHD_ConnectionInfoType type, ...)
{
    return library.get_connection_info(connection, type);
}
