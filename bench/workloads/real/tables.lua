-- SPDX-License-Identifier: MIT
-- tables: builds tables of tables, joins strings, and sorts.
--
-- usage: tables.lua ROUNDS
local state = 1

local function drawn(below)
    state = (state * 1103515245 + 12345) % 2147483648
    return state % below
end

local length = 0
for round = 1, tonumber(arg[1]) do
    local people = {}
    for i = 1, 10000 do
        people[i] = {name = "person " .. drawn(100000), age = drawn(100), tags = {round, i}}
    end
    table.sort(people, function(a, b)
        return a.age < b.age or (a.age == b.age and a.name < b.name)
    end)
    local lines = {}
    for i, person in ipairs(people) do
        lines[i] = person.age .. "," .. person.name:upper() .. "," .. table.concat(person.tags, ";")
    end
    length = length + #table.concat(lines, "\n")
end
print(length)
