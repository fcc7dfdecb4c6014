// SPDX-License-Identifier: MIT
#include "server/http/connection.h"

const char *http_header(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_HEADER_KIND, name);
}

const char *http_argument(struct MHD_Connection *connection, const char *name)
{
    return MHD_lookup_connection_value(connection, MHD_GET_ARGUMENT_KIND, name);
}

static enum MHD_Result add_argument(void *args,
                                    enum MHD_ValueKind kind,
                                    const char *name,
                                    size_t name_len,
                                    const char *value,
                                    size_t value_len)
{
    (void)kind;
    if (name_len > 0 || value != NULL) { // two consecutive '&' are not an argument
        request_args_add(
            args, &(struct request_arg){
                      .name = name, .name_len = name_len, .value = value, .value_len = value_len});
    }
    return MHD_YES;
}

void http_arguments(struct MHD_Connection *connection, struct request_args *out)
{
    *out = (struct request_args){0};
    (void)MHD_get_connection_values_n(connection, MHD_GET_ARGUMENT_KIND, add_argument,
                                      out); // returns their number
}

int http_client_socket(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    return info != NULL ? info->connect_fd : -1;
}
