// SPDX-License-Identifier: MIT
// heap: writes a heap profile of its own with runtime/pprof, for the tests of import.
//
//	heap FILE RATE    one sample in RATE bytes; 1: every allocation
package main

import (
	"os"
	"runtime"
	"runtime/pprof"
	"strconv"
)

var kept [][]byte
var passing []byte

//go:noinline
func keep(count int) {
	for i := 0; i < count; i++ {
		kept = append(kept, make([]byte, 1000+i))
	}
}

//go:noinline
func churn(count int) {
	for i := 0; i < count; i++ {
		passing = make([]byte, 4096)
	}
}

//go:noinline
func deep(depth int) {
	if depth == 0 {
		keep(100)
		return
	}
	deep(depth - 1)
}

func main() {
	rate, _ := strconv.Atoi(os.Args[2])
	runtime.MemProfileRate = rate
	deep(20)
	churn(5000)
	keep(50)
	runtime.GC() // a profile is as of the latest collection
	file, err := os.Create(os.Args[1])
	if err != nil {
		panic(err)
	}
	if err := pprof.Lookup("heap").WriteTo(file, 0); err != nil {
		panic(err)
	}
	file.Close()
}
