package main

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

var update = flag.Bool("update", false, "write the golden files anew")

func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(file, []byte(got), 0o644))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), got)
}

func exampleSummary() summary {
	s := time.Second
	return summary{
		plan: plan{
			options: options{seed: 1, jobs: 3, speed: 20, providers: allProviders},
			orders: []order{
				{n: 1, provider: "fal"},
				{n: 2, class: 1, provider: "replicate", fate: hangs},
				{n: 3, class: 2, provider: "atlas", fate: isFiltered},
			},
		},
		took: 11*time.Minute + 7400*time.Millisecond,
		ours: figures{
			classes:  []classFigures{{1, 4, 2 * s, 2 * s}, {}, {20, 112.24, 13725 * time.Millisecond, 103 * s}},
			requests: 466, busiest: 10, average: 0.7, limited: 2, accepted: 3,
			ends: map[int]end{
				1: {id: "5c2f1d8e-0000-4000-8000-000000000001", state: jobpoll.StateSucceeded, looks: 4},
				2: {id: "rm0cpred000000000000000002", state: jobpoll.StateRunning, reason: "processing limit", looks: 22},
				3: {id: "a71a5c10000000000000000000000002", state: jobpoll.StateFailed, reason: "failed (filtered: held back)", looks: 1},
			},
		},
		loop: figures{
			classes:  []classFigures{{1, 5.1, 2900 * time.Millisecond, 16200 * time.Millisecond}, {}, {20, 55.9, 2 * s, 5 * s}},
			requests: 1785, busiest: 17, average: 2.7, limited: 78,
			ends: map[int]end{1: {state: jobpoll.StateSucceeded}, 2: {state: jobpoll.StateUnknown}, 3: {state: jobpoll.StateFailed}},
		},
	}
}

func TestTheTableShowsBothSides(t *testing.T) {
	s := exampleSummary()
	golden(t, "table.txt", s.table())
	for line := range strings.Lines(s.table()) {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 77, line)
	}
	s.problems = []string{"order-1 has no end"}
	require.Contains(t, s.table(), "NOT ACCOUNTED FOR: order-1 has no end\n")
	require.NotContains(t, s.table(), "all 3 jobs")
	s.orders = s.orders[:1]
	require.Contains(t, s.table(), "stops that are no success\n  none\n")
}

func exampleView() view {
	return view{
		at: "2:13", speed: 20, providers: "fal, replicate, atlas", allJobs: 60,
		classes: []tally{
			{name: "preview", jobs: 20, succeeded: 18, stopped: 2},
			{name: "standard", jobs: 20, succeeded: 9, stopped: 1, running: 7, queued: 1},
			{name: "long", jobs: 20, queued: 3},
		},
		requests: 212, limited: 2, loopAsks: 840, loopLimited: 78, loopEnds: 31,
		events: []string{" 0:20  replicate asks to be left alone until 0:41: its looks wait", " 1:18  standard  lost after 7 looks: atlas/a71a5c10000000000000000000000002"},
	}
}

func TestAFrameFitsTheTerminal(t *testing.T) {
	golden(t, "frame80.txt", frame(exampleView(), 80, false))
	escape := regexp.MustCompile("\x1b\\[[0-9]+m")
	height := strings.Count(frame(exampleView(), 80, false), "\n")
	for _, width := range []int{1, 2, 10, 20, 49, 50, 60, 79, 80, 120, 300} {
		plain := frame(exampleView(), width, false)
		for line := range strings.Lines(plain) {
			require.LessOrEqual(t, utf8.RuneCountInString(strings.TrimSuffix(line, "\n")), max(width-1, 0), "at %d columns: %q", width, line)
		}
		require.Equal(t, height, strings.Count(plain, "\n"), "the next frame is drawn over this one")
		require.Equal(t, plain, escape.ReplaceAllString(frame(exampleView(), width, true), ""), "colours change no text")
		require.NotContains(t, plain, "\x1b")
	}
}

func TestABarShowsWhatTheJobsDo(t *testing.T) {
	require.Equal(t, "[####x>>.......]", bar(tally{jobs: 14, succeeded: 4, stopped: 1, running: 2}, 14, false))
	require.Empty(t, bar(tally{jobs: 14}, 3, false), "there is no room")
}

func TestQuantilesAndRates(t *testing.T) {
	s := time.Second
	require.Zero(t, quantile(nil, 0.5))
	require.Equal(t, 3*s, quantile([]time.Duration{3 * s}, 0.95))
	require.Equal(t, 2*s, quantile([]time.Duration{4 * s, 1 * s, 3 * s, 2 * s}, 0.5))
	require.Equal(t, 4*s, quantile([]time.Duration{4 * s, 1 * s, 3 * s, 2 * s}, 0.95))

	begun := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	var at []time.Time
	for _, ms := range []int{4000, 0, 900, 1000, 1100, 1999, 2000} {
		at = append(at, begun.Add(time.Duration(ms)*time.Millisecond))
	}
	require.Equal(t, 3, busiest(at), "1000 to 1999 ms: 2000 is of the next second")
	require.InDelta(t, 7.0/4, average(at), 1e-9)
	require.Zero(t, busiest(nil))
	require.Zero(t, average(nil))
}

func TestWhatIsNoTerminalGetsLines(t *testing.T) {
	none := func(string) string { return "" }
	require.False(t, newScreen(&strings.Builder{}, none).live)
	f, err := os.Create(filepath.Join(t.TempDir(), "out"))
	require.NoError(t, err)
	defer f.Close()
	require.False(t, newScreen(f, none).live, "a file is no terminal")
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	require.False(t, newScreen(null, func(k string) string { return map[string]string{"TERM": "dumb"}[k] }).live)
	require.False(t, newScreen(null, func(k string) string { return map[string]string{"NO_COLOR": "1"}[k] }).color)
}
