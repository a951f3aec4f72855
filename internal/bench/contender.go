package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// contender is one way to look at many jobs again and again.
type contender struct {
	name  string
	title string
	// most is the largest number of jobs that it is tried with, least the
	// shortest interval; zero: any.
	most  int
	least time.Duration
	start func(m *meter) way
}

// way is a contender at work. It lasts as long as the process.
type way struct {
	// admit takes up a job, whose first look is due at first (of meter.now).
	admit func(id string, first int64)
	// calls are what else can be asked of it while it works.
	calls []call
}

// call is one thing that is asked of a way again and again during a burst.
type call struct {
	name string
	// do does it for the k-th time, and took has how long that lasted. Without
	// do the way itself fills took: with how long it was until something came
	// of another call.
	do   func(k int)
	took *histogram
}

// contenders are in the order of the table.
var contenders = []contender{
	{name: "sleep", title: "goroutine + sleep", start: startSleep},
	{name: "backoff", title: "goroutine + backoff/v4 Retry", start: startBackoff},
	{name: "limiter", title: "goroutine + rate.Limiter.Wait + backoff", start: startLimiter},
	{name: "wait", title: "k8s wait.PollUntilContextCancel", start: startWait},
	{name: "workqueue", title: "client-go delaying workqueue, 64 workers", start: startWorkqueue},
	{name: "afterfunc", title: "time.AfterFunc a job", start: startAfterFunc},
	{name: "azcore", title: "azcore runtime.Poller", most: 10_000, least: time.Second, start: startAzcore},
	{name: "heaps", title: "reference: packed records, sharded heaps", start: startHeaps},
	{name: "wheel", title: "reference: one 64-byte line a job, wheel", start: startWheel},
	{name: "jobpoll", title: "jobpoll", start: startJobpoll},
}

func contenderNames() []string {
	var names []string
	for _, c := range contenders {
		names = append(names, c.name)
	}
	return names
}

func contenderNamed(name string) (contender, error) {
	i := slices.IndexFunc(contenders, func(c contender) bool { return c.name == name })
	if i < 0 {
		return contender{}, fmt.Errorf("no contender %q; there are: %s", name, strings.Join(contenderNames(), ", "))
	}
	return contenders[i], nil
}

// chosen are the contenders of a list of names with commas; empty: all.
func chosen(only string) ([]contender, error) {
	if only == "" {
		return contenders, nil
	}
	var all []contender
	for name := range strings.SplitSeq(only, ",") {
		c, err := contenderNamed(strings.TrimSpace(name))
		if err != nil {
			return nil, err
		}
		all = append(all, c)
	}
	return all, nil
}

// unfit says why a contender is not tried with a load; empty: it is.
func (c contender) unfit(l load) string {
	switch {
	case c.most > 0 && l.Jobs > c.most:
		return fmt.Sprintf("%s is only tried with up to %d jobs", c.name, c.most)
	case l.Interval < c.least:
		return fmt.Sprintf("%s needs an interval of %v or more", c.name, c.least)
	}
	return ""
}

// workersOr is the number of workers of a way that has them.
func (l load) workersOr(usual int) int {
	if l.Workers > 0 {
		return l.Workers
	}
	return usual
}
