package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll"
)

// table tells all at the end, in plain text of at most 76 columns.
func (s summary) table() string {
	var b strings.Builder
	say := func(format string, args ...any) {
		b.WriteString(strings.TrimRight(fmt.Sprintf(format, args...), " ") + "\n")
	}
	say("")
	say("%d jobs at %s, seed %d: %s min in %.0f s of real time", s.jobs, strings.Join(s.providers, ", "), s.seed,
		minutes(s.took), s.took.Seconds()/float64(s.speed))
	say("")
	say("%-12s %5s  %18s  %31s", "", "", "polls / completion", "known after the end, p50 / p95")
	say("%-12s %5s  %8s  %8s  %14s   %14s", "class", "jobs", "jobpoll", "5 s loop", "jobpoll", "5 s loop")
	for i, c := range classes {
		ours, loop := s.ours.classes[i], s.loop.classes[i]
		say("%-12s %5d  %8s  %8s  %14s   %14s", c.name, ours.jobs, ours.perJob(), loop.perJob(), ours.delays(), loop.delays())
	}
	say("jobs: those that the provider ended; polls: as the providers counted them")
	say("")
	say("%-26s  %8s  %8s", "", "jobpoll", "5 s loop")
	say("%-26s  %8d  %8d", "requests", s.ours.requests, s.loop.requests)
	say("%-26s  %8d  %8d  (the account's budget: %.0f)", "  in the busiest second", s.ours.busiest, s.loop.busiest, accountRate(len(s.providers)))
	say("%-26s  %8.1f  %8.1f", "  in a second, on average", s.ours.average, s.loop.average)
	say("%-26s  %8d  %8d", "rate limits hit", s.ours.limited, s.loop.limited)
	say("%-26s  %8d  %8d", "given up without an end", s.ours.open(), s.loop.open())
	say("")
	say("stops that are no success")
	none := true
	for _, o := range s.orders {
		v, ok := s.ours.ends[o.n]
		if !ok || v.state == jobpoll.StateSucceeded {
			continue
		}
		none = false
		say("  %-8s %s/%s", classes[o.class].name, o.provider, v.id)
		say("  %-8s %s, after %s", "", v.reason, looks(v.looks))
	}
	if none {
		say("  none")
	}
	say("")
	if len(s.problems) == 0 {
		say("all %d jobs are accounted for", s.jobs)
	}
	for _, p := range s.problems {
		say("NOT ACCOUNTED FOR: %s", p)
	}
	return b.String()
}

func (c classFigures) perJob() string {
	if c.jobs == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", c.polls)
}

func (c classFigures) delays() string {
	if c.jobs == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f / %4.1f s", c.p50.Seconds(), c.p95.Seconds())
}

// open counts the jobs of which no end was learned.
func (f figures) open() int {
	n := 0
	for _, v := range f.ends {
		if !v.state.Terminal() {
			n++
		}
	}
	return n
}

// looks writes a number of them.
func looks(n int) string {
	if n == 1 {
		return "1 look"
	}
	return fmt.Sprintf("%d looks", n)
}

// minutes writes a duration as minutes and seconds.
func minutes(d time.Duration) string {
	s := int(d.Round(time.Second) / time.Second)
	return fmt.Sprintf("%d:%02d", s/60, s%60)
}
