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


def as_rows(value, answer):
    """What an answer in columns says, in rows: tables are lists of objects, and code is spelt out. `answer` is
    the whole answer, whose tables `code` and `frames` are meant."""
    if isinstance(value, list):
        return [as_rows(item, answer) for item in value]
    if not isinstance(value, dict):
        return value
    if "count" in value:
        columns = {key: column for key, column in value.items() if key != "count"}
        return [row_of(columns, place, answer) for place in range(value["count"])]
    return members_of(value, answer)


def row_of(columns, place, answer):
    return members_of({key: {cost: values[place] for cost, values in column.items()}
                       if isinstance(column, dict) else column[place] for key, column in columns.items()}, answer)


def members_of(value, answer):
    """The members of one object."""
    found = {}
    for key, inner in value.items():
        if key == "location" and "function" in value:
            continue  # where one of the function's frames is, which only the API says
        if key == "location":
            function, file, line, module = ("", "", 0, "") if inner is None else spot_of(answer, inner)
            found |= {"function": function, "file": file, "line": line, "module": module}
        elif key == "function" and "code" in answer and not isinstance(inner, str):
            found |= {"function": name_of(answer, inner), "module": module_of(answer, inner)}
        elif key == "frame_first":
            frames = range(inner, inner + value["frame_count"])
            found["frames"] = [row_of({"location": answer["frames"]["location"],
                                       "inlined": answer["frames"]["inlined"]}, at, answer) for at in frames]
        elif key in ("stack_first", "mapping_first"):
            name, count = {"stack_first": ("stacks", "stacks_shown"),
                           "mapping_first": ("mappings", "mapping_count")}[key]
            columns = {column: values for column, values in answer[name].items() if column != "count"}
            found[name] = [row_of(columns, at, answer) for at in range(inner, inner + value[count])]
        elif key not in ("frame_count", "mapping_count"):
            found[key] = as_rows(inner, answer)
    return found


def module_of(answer, function):
    module = None if function is None else answer["code"]["functions"]["module"][function]
    return None if function is None else "" if module is None else answer["code"]["modules"]["path"][module]


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
