# SPDX-License-Identifier: MIT
"""reading: taking answers of the API apart."""


def need_args(route):
    """What a route cannot be asked without."""
    return {"function": {"name": "load"}, "source": {"file_path": "/src/app.c"}}.get(route, {})


def rows(table, *columns):
    """The rows of a table as tuples; "total.allocations" names a column of a costs table."""
    picked = []
    for column in columns:
        values = table
        for part in column.split("."):
            values = values[part]
        picked.append(values)
    return list(zip(*picked))


def name_of(answer, function):
    return None if function is None else answer["code"]["functions"]["name"][function]


def spot_of(answer, location):
    """A location as (function, file, line, module), as the report has it."""
    code = answer["code"]
    function = code["locations"]["function"][location]
    file = code["locations"]["file"][location]
    module = code["functions"]["module"][function]
    return (code["functions"]["name"][function],
            "" if file is None else code["files"]["path"][file],
            code["locations"]["line"][location],
            "" if module is None else code["modules"]["path"][module])
