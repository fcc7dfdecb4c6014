# SPDX-License-Identifier: MIT
"""drawings: the recordings that the tests of the server look at, in the notation of
src/recording/test_support/recording_text.h and tests/cli/draw_recording.c."""

SLICES = 16

HEAD = """\
!program /opt/bin/server
!command_line server --threads 2
!host buildbox
!peak_time_ms 450
!runtime_ms 1600
!start_unix_ms 1000000000000
!unknown_frees 3
!rss 100 0 90000000
!rss 300 1 10000000
!rss 900 0 95000000
!snapshot 100 0 0 20000000 1000000 9000000 40000000 1000000 12000000 2000000 500000 4500000
!snapshot 900 0 1 30000000 1000000 4000000 35000000 1000000 12000000 7000000 500000 4500000
!snapshot 900 1 1 1000000 0 0 0 0 9000000 0 0 0
!snapshot 1500 0 18 10000000 1000000 24000000 35000000 1000000 12000000 7000000 500000 4500000
!part 1 1 0 30000000 31000000 [heap]
!part 1 2 0 1000000 2000000 [heap]
!part 1 3 0 4000000 5000000 [heap]
!part 1 4 1 34000000 34000000
!part 1 4 2 1000000 8000000
!part 1 5 0 1000000 8000000 [stack]
!part 1 6 0 12000000 12000000 /opt/bin/server
!part 1 7 0 7000000 7000000 /dev/shm/<b>&
!part 1 8 0 500000 500000 /memfd:cairn-session (deleted)
!part 1 9 0 4500000 4500000
!part 2 1 0 1000000 1000000 [heap]
!part 2 6 0 9000000 9000000 /lib/libc.so.6
!part 3 1 0 10000000 11000000 [heap]
!part 3 2 0 1000000 2000000 [heap]
!part 3 3 0 24000000 25000000 [heap]
!part 3 4 1 35000000 42000000
!part 3 5 0 1000000 8000000 [stack]
!part 3 6 0 12000000 12000000 /opt/bin/server
!part 3 7 0 7000000 7000000 /dev/shm/<b>&
!part 3 8 0 500000 500000 /memfd:cairn-session (deleted)
!part 3 9 0 4500000 4500000
!advice 1 install the package with its debug information
!loss lost_events 0 events that were lost
!note unnamed_code 2 frames in code without a file
"""

# allocations bytes frees freed temporary temporary_bytes peak_blocks peak_bytes own_peak
SERVER = HEAD + """\
process server
thread main
/opt/bin/server!main(/src/app.c:1);/opt/bin/server!load(/src/app.c:10);/lib/libc.so.6!strdup 1000 64000 400 25600 200 12800 600 38400 38400
@0 600 38400 0 0 200
@4 400 25600 400 25600 0
size 21 1000 64000
life 3 400 25600
cohort 0 - 600 38400
/opt/bin/server!main(/src/app.c:1);/opt/bin/server!load(/src/app.c:12)=>push(/src/vec.h:7)=>operator new(unsigned long)(/src/new.h:1) 5 500 5 500 5 500 0 0 100
@3 5 500 5 500 5
size 22 5 500
life 1 5 500
/opt/bin/server!main(/src/app.c:1);/opt/bin/server!walk<std::vector<int> >(/src/app.c:20);/opt/bin/server!walk<std::vector<int> >(/src/app.c:21);/opt/bin/server!load(/src/app.c:12) 16 1600 4 400 0 0 8 800 1200
@0 1 100 0 0 0
@2 1 100 0 0 0
@4 2 200 0 0 0
@6 4 400 4 400 0
@8 2 200 0 0 0
@10 2 200 0 0 0
@12 2 200 0 0 0
@14 2 200 0 0 0
size 20 10 1000
size 23 6 600
life 0 3 300
life 5 1 100
cohort 0 - 1 100
cohort 2 - 1 100
cohort 4 - 2 200
cohort 8 - 2 200
cohort 10 - 2 200
cohort 12 - 2 200
cohort 14 - 2 200
thread worker-1
/opt/bin/server!start;/opt/bin/server!work(app.c:20);/opt/bin/server!load(/src/app.c:10);/lib/libc.so.6!strdup 30 300 30 300 0 0 0 0 300
@5 30 300 0 0 0
@9 0 0 30 300 0
size 9 30 300
life 40 30 300
cohort 5 9 30 300
process helper
thread main
/opt/bin/helper!spin(/src/l.c:1);/opt/bin/helper!spin(/src/l.c:1) 8 64 8 64 0 0 0 0 64
@15 8 64 8 64 0
size 8 8 64
life 2 8 64
"""

OLD = HEAD + """\
process server
thread main
/old/bin/server!main(/src/app.c:3);/old/bin/server!load(/src/app.c:99);/lib/libc.so.6!strdup 10 640 10 640 0 0 0 0 64
/old/bin/server!main(/src/app.c:3);/old/bin/server!forget(/src/app.c:50) 7 700 0 0 0 0 7 700 700
"""
