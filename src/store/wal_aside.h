// SPDX-License-Identifier: MIT
// wal_aside: SQLite's write-ahead log on another file system, for a store whose disk is full.
//
//   store.db                           in place, as ever
//   store.db-wal  -> /var/tmp/cairn-store.XXXXXX/wal    a link of this user's
//
// What removes rows has to write first, so a full disk cannot be emptied where it is. The log has
// all that SQLite needs after a crash. So it can be elsewhere, as long as everybody who opens the
// store finds it: the link leads cairn there, and every other program refuses it (SQLite opens its
// log with O_NOFOLLOW). The link goes with the log, when the last connection closes.
//
// SQLite calls its file system through a table (sqlite3_vfs). This one is the usual one, except for
// where the log is. Only links that this user made to a file in a private folder of his own are
// followed. Context: H; one thread. Failure: SQLite's codes.
#pragma once

#include <sqlite3.h>
#include <stdbool.h>

#include "base/err.h"

struct wal_aside;

// Make the file system of one connection. The caller frees it after the connection is closed.
enum err wal_aside_new(struct wal_aside **out, struct err_info *info) MUST_USE;
void wal_aside_free(struct wal_aside *aside); // accepts NULL

// The name of the file system, for sqlite3_open_v2. Borrowed.
const char *wal_aside_name(const struct wal_aside *aside);

// Let the next connection move the log to a folder that has room for it. SQLite must lock the store
// for itself (locking_mode=EXCLUSIVE), so that no other program has the log open.
void wal_aside_move(struct wal_aside *aside);

// Whether there was no folder with room.
bool wal_aside_has_no_room(const struct wal_aside *aside);

// Where the log should be, by a link that was not followed; NULL: there was none. Borrowed.
const char *wal_aside_refused(const struct wal_aside *aside);
