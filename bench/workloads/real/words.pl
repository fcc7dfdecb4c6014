# SPDX-License-Identifier: MIT
# words: counts words in hashes, and sorts them in three ways.
#
# usage: words.pl ROUNDS
use strict;
use warnings;

my $state = 1;

sub drawn {
    $state = ($state * 1103515245 + 12345) % 2147483648;
    return $state % $_[0];
}

my $length = 0;
for my $round (1 .. $ARGV[0]) {
    my %count;
    my %places;
    for my $at (1 .. 5000) {
        my $word = "word" . drawn(2000);
        $count{$word}++;
        push @{ $places{$word} }, "$round:$at";
    }
    my @by_name = sort keys %count;
    my @by_count = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
    my @by_places = sort map { join(",", @{ $places{$_} }) } @by_name;
    $length += length($_) for @by_name, @by_count, @by_places;
}
print "$length\n";
