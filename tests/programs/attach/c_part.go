// SPDX-License-Identifier: MIT
// c_part [wait]: a Go program with a part in C. With "wait" it reads a line first.
//
// TRUTH. c_work takes 10 blocks of 700 bytes from C's malloc and keeps them. Go's own heap gets 1000
// slices of 1000 bytes, none of which is malloc's.
package main

// #include <stdlib.h>
// #include <string.h>
// static int c_work(void) {
//     for (int i = 0; i < 10; i++) {
//         memset(malloc(700), 1, 700);
//     }
//     return 10;
// }
import "C"

import (
	"bufio"
	"os"
)

var kept [][]byte

func main() {
	if len(os.Args) > 1 {
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	}
	if C.c_work() != 10 {
		os.Exit(1)
	}
	for i := 0; i < 1000; i++ {
		kept = append(kept, make([]byte, 1000))
	}
}
