// SPDX-License-Identifier: MIT
// distinct_name: a function's name in a sentence or a list, where others have its short form, too.
//
//   leaf<63>             the instances of a template, by what follows the short name
//   insert [policy<1>]   else the words in which the whole names differ
//   insert               no other function has this short name, or nothing in the names differs
//
// A name has *peers*: the others that its short form could stand for. Only the lengths of what all
// of them begin and end with are kept. Context: H; pure.
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "host/text/strbuf.h"

struct name_peers {
    const char *name; // borrowed
    size_t count;     // of the peers whose whole names differ
    size_t head;      // bytes that all begin with
    size_t tail;      // bytes that all end with; the two may overlap
    size_t shortest;  // bytes of the shortest name
};

struct name_peers name_peers_of(const char *name);
void name_peers_add(struct name_peers *peers, const char *other);

// Whether `other` has the short form `shortest` (NAME_NO_ANONYMOUS).
bool name_has_short_form(const char *other, const char *shortest);

// Append the words in which the name differs from its peers: "policy<1>". Nothing without a peer,
// or if the others only add something to the name.
void name_append_difference(struct strbuf *out, const struct name_peers *peers);

// Append the name in its form for a sentence, with what differs.
void name_append_distinct(struct strbuf *out, const struct name_peers *peers);
