// SPDX-License-Identifier: MIT
// incomplete_plugin: calls a function that no module has, so that it can only be bound lazily.
int there_is_no_such_function(void);
int incomplete_plugin_call(void);

int incomplete_plugin_call(void)
{
    return there_is_no_such_function();
}
