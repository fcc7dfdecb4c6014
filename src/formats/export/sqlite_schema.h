// SPDX-License-Identifier: MIT
// sqlite_schema: the schema of a database by export_sqlite.c.
//
// docs/user/export.md documents it. Its version, the database's user_version, grows when a column
// changes its meaning or is removed. Indexes are made last, when the tables are full: that is
// faster, and the file is smaller.
#pragma once

static const char sqlite_tables[] =
    "PRAGMA journal_mode=OFF;"
    "PRAGMA synchronous=OFF;"
    "PRAGMA application_id=0x6361726e;"
    "PRAGMA user_version=1;"
    "BEGIN;"
    "CREATE TABLE run(key TEXT PRIMARY KEY, value) WITHOUT ROWID;"
    "CREATE TABLE processes(id INTEGER PRIMARY KEY, pid INT, parent_pid INT, epoch INT,"
    " executable TEXT, command_line TEXT, start_ms INT, end_ms INT, peak_bytes INT,"
    " peak_rss_bytes INT);"
    "CREATE TABLE threads(id INTEGER PRIMARY KEY, process_id INT REFERENCES processes, tid INT,"
    " name TEXT, merged_count INT, start_ms INT, end_ms INT);"
    "CREATE TABLE modules(id INTEGER PRIMARY KEY, path TEXT, build_id TEXT, is_executable INT);"
    "CREATE TABLE functions(id INTEGER PRIMARY KEY, name TEXT, module_id INT REFERENCES modules);"
    "CREATE TABLE frames(id INTEGER PRIMARY KEY, function_id INT REFERENCES functions, file TEXT,"
    " line INT, module_offset INT);"
    "CREATE TABLE stacks(id INTEGER PRIMARY KEY, parent_id INT REFERENCES stacks,"
    " frame_id INT REFERENCES frames, depth INT, is_inlined INT);"
    "CREATE TABLE rows(id INTEGER PRIMARY KEY, stack_id INT REFERENCES stacks,"
    " thread_id INT REFERENCES threads, peak_bytes INT, peak_blocks INT, allocations INT,"
    " allocated_bytes INT, frees INT, freed_bytes INT, temporary INT, temporary_bytes INT,"
    " leaked_bytes INT, leaked_allocations INT, own_peak_bytes INT);"
    "CREATE TABLE slices(id INTEGER PRIMARY KEY, start_ms INT, end_ms INT, allocations INT,"
    " allocated_bytes INT, frees INT, freed_bytes INT, temporary INT, live_bytes INT);"
    "CREATE TABLE series(row_id INT REFERENCES rows, slice_id INT REFERENCES slices,"
    " allocations INT, allocated_bytes INT, frees INT, freed_bytes INT, temporary INT);"
    "CREATE TABLE sizes(row_id INT REFERENCES rows, from_bytes INT, below_bytes INT, blocks INT,"
    " bytes INT);"
    "CREATE TABLE lifetimes(row_id INT REFERENCES rows, from_ms INT, below_ms INT, blocks INT,"
    " bytes INT);"
    "CREATE TABLE cohorts(row_id INT REFERENCES rows, born_slice_id INT REFERENCES slices,"
    " freed_slice_id INT REFERENCES slices, blocks INT, bytes INT);"
    "CREATE TABLE blocks(id INTEGER PRIMARY KEY, row_id INT REFERENCES rows, address INT,"
    " size_bytes INT, born_ms INT, freed_ms INT, is_at_peak INT, is_at_end INT);"
    "CREATE TABLE memory(time_ms INT, process_id INT REFERENCES processes, rss_bytes INT,"
    " anonymous_bytes INT, file_bytes INT, shmem_bytes INT, swap_bytes INT, minor_faults INT,"
    " major_faults INT);"
    "CREATE TABLE adhoc(id INTEGER PRIMARY KEY, process_id INT REFERENCES processes, name TEXT,"
    " events INT, weight INT);"
    "CREATE TABLE adhoc_frames(adhoc_id INT REFERENCES adhoc, level INT,"
    " frame_id INT REFERENCES frames, is_inlined INT, PRIMARY KEY(adhoc_id, level)) WITHOUT ROWID;";

// Sums of all costs, for views.
#define SQLITE_COST_SUMS                                                         \
    " sum(peak_bytes) AS peak_bytes, sum(peak_blocks) AS peak_blocks,"           \
    " sum(allocations) AS allocations, sum(allocated_bytes) AS allocated_bytes," \
    " sum(frees) AS frees, sum(freed_bytes) AS freed_bytes,"                     \
    " sum(temporary) AS temporary, sum(temporary_bytes) AS temporary_bytes,"     \
    " sum(leaked_bytes) AS leaked_bytes,"                                        \
    " sum(leaked_allocations) AS leaked_allocations,"                            \
    " sum(own_peak_bytes) AS own_peak_bytes"

static const char sqlite_views[] =
    "CREATE INDEX stacks_parent ON stacks(parent_id);"
    "CREATE INDEX rows_stack ON rows(stack_id);"
    "CREATE INDEX series_row ON series(row_id);"
    "CREATE INDEX series_slice ON series(slice_id);"
    "CREATE INDEX cohorts_row ON cohorts(row_id);"
    "CREATE INDEX blocks_row ON blocks(row_id);"
    "CREATE INDEX blocks_address ON blocks(address);"
    "CREATE VIEW stack_frame_ids AS"
    " WITH RECURSIVE walk(stack_id, level, frame_id, is_inlined, up) AS ("
    "  SELECT id, 0, frame_id, is_inlined, parent_id FROM stacks"
    "  WHERE id IN (SELECT stack_id FROM rows) AND id <> 0"
    "  UNION ALL"
    "  SELECT walk.stack_id, level + 1, stacks.frame_id, stacks.is_inlined, stacks.parent_id"
    "  FROM walk JOIN stacks ON stacks.id = walk.up WHERE walk.up <> 0)"
    " SELECT stack_id, level, frame_id, is_inlined FROM walk;"
    "CREATE VIEW stack_frames AS"
    " SELECT ids.stack_id, ids.level, ids.is_inlined, ids.frame_id, functions.name AS function,"
    "  frames.file, frames.line, modules.path AS module"
    " FROM stack_frame_ids AS ids JOIN frames ON frames.id = ids.frame_id"
    " JOIN functions ON functions.id = frames.function_id"
    " LEFT JOIN modules ON modules.id = functions.module_id;"
    "CREATE VIEW stack_texts AS"
    " SELECT id AS stack_id,"
    "  (WITH RECURSIVE up(frame_id, parent_id, level) AS ("
    "   SELECT base.frame_id, base.parent_id, 0 UNION ALL"
    "   SELECT stacks.frame_id, stacks.parent_id, level + 1"
    "   FROM up JOIN stacks ON stacks.id = up.parent_id WHERE up.parent_id <> 0)"
    "  SELECT coalesce(group_concat(name, ';'), '') FROM"
    "   (SELECT functions.name FROM up JOIN frames ON frames.id = up.frame_id"
    "    JOIN functions ON functions.id = frames.function_id ORDER BY level DESC)) AS text"
    " FROM stacks AS base WHERE id IN (SELECT stack_id FROM rows);"
    "CREATE VIEW stack_costs AS SELECT stack_id," SQLITE_COST_SUMS " FROM rows GROUP BY stack_id;"
    "CREATE VIEW function_costs AS"
    " SELECT functions.name AS function, modules.path AS module, sums.*"
    " FROM (SELECT frames.function_id," SQLITE_COST_SUMS
    "  FROM rows JOIN stacks ON stacks.id = rows.stack_id"
    "  LEFT JOIN frames ON frames.id = stacks.frame_id GROUP BY frames.function_id) AS sums"
    " LEFT JOIN functions ON functions.id = sums.function_id"
    " LEFT JOIN modules ON modules.id = functions.module_id;"
    "CREATE VIEW function_inclusive_costs AS"
    " SELECT functions.name AS function, modules.path AS module, sums.*"
    " FROM (SELECT passed.function_id," SQLITE_COST_SUMS
    "  FROM (SELECT DISTINCT ids.stack_id, frames.function_id"
    "   FROM stack_frame_ids AS ids JOIN frames ON frames.id = ids.frame_id) AS passed"
    "  JOIN rows ON rows.stack_id = passed.stack_id GROUP BY passed.function_id) AS sums"
    " JOIN functions ON functions.id = sums.function_id"
    " LEFT JOIN modules ON modules.id = functions.module_id;"
    "CREATE VIEW adhoc_texts AS"
    " SELECT adhoc_id, group_concat(name, ';') AS text FROM"
    "  (SELECT adhoc_frames.adhoc_id, functions.name FROM adhoc_frames"
    "   JOIN frames ON frames.id = adhoc_frames.frame_id"
    "   JOIN functions ON functions.id = frames.function_id"
    "   ORDER BY adhoc_frames.adhoc_id, adhoc_frames.level DESC)"
    " GROUP BY adhoc_id;"
    "CREATE VIEW thread_costs AS"
    " SELECT processes.pid, threads.tid, threads.name, sums.*"
    " FROM (SELECT thread_id," SQLITE_COST_SUMS " FROM rows GROUP BY thread_id) AS sums"
    " JOIN threads ON threads.id = sums.thread_id"
    " JOIN processes ON processes.id = threads.process_id;"
    "COMMIT;";
