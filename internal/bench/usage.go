package main

import (
	"runtime"
	"runtime/metrics"
	"syscall"
	"time"
)

// cpuUsed is the CPU time of this process, in user and kernel mode.
func cpuUsed() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		panic(err) // it has no reason to fail
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// memoryUsed is the heap in objects plus the stacks in use, in bytes.
func memoryUsed() int64 {
	s := []metrics.Sample{{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64() + s[1].Value.Uint64())
}

// collect forces a garbage collection and returns the CPU time that it took:
// what the runtime itself counts as such, so that looks meanwhile are not in it.
func collect() time.Duration {
	before := collecting()
	runtime.GC()
	return collecting() - before
}

func collecting() time.Duration {
	s := []metrics.Sample{{Name: "/cpu/classes/gc/total:cpu-seconds"}}
	metrics.Read(s)
	return time.Duration(s[0].Value.Float64() * float64(time.Second))
}
