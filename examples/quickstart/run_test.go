package main

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

// short is a plan of few jobs, none of which takes longer than 40 s.
func short(jobs int, providers ...string) plan {
	p := plan{
		options:  options{seed: 7, jobs: jobs, speed: 60, providers: providers},
		orders:   draw(7, jobs, providers),
		patience: 2 * time.Minute,
	}
	for i := range p.orders {
		p.orders[i].takes = min(p.orders[i].takes, 40*time.Second)
	}
	return p
}

func TestEveryJobIsAccountedForWithTheReasonOfItsFate(t *testing.T) {
	for _, providers := range [][]string{allProviders, {"replicate"}} {
		t.Run(strings.Join(providers, "+"), func(t *testing.T) {
			t.Parallel()
			var out strings.Builder
			p := short(12, providers...)
			sum, err := demonstrate(t.Context(), p, newScreen(&out, func(string) string { return "" }))
			require.NoError(t, err)
			require.Empty(t, sum.problems)
			for _, o := range p.orders {
				require.True(t, strings.HasPrefix(sum.ours.ends[o.n].reason, o.reason().String()), "%s: %s", o.key(), sum.ours.ends[o.n].reason)
				require.NotZero(t, sum.loop.ends[o.n].told, "the loop has no end of %s", o.key())
			}
			require.NotZero(t, sum.ours.limited, "nobody met a rate limit")
			require.Equal(t, 2, sum.ours.open())
			require.Contains(t, out.String(), "asks to be left alone")
			require.NotContains(t, out.String(), "\x1b", "it is no terminal")
			require.Contains(t, sum.table(), "all 12 jobs are accounted for")
		})
	}
}

func TestTheLoopAsksEveryFiveSecondsAndTheServersCountTheSame(t *testing.T) {
	orders := []order{{n: 1, provider: "atlas", takes: 12 * time.Second}, {n: 2, provider: "atlas", fate: hangs, takes: 12 * time.Second}}
	clock := newClock(60)
	vendors, err := startVendors([]string{"atlas"}, orders, clock)
	require.NoError(t, err)
	defer closeAll(vendors)
	l := &loop{clock: clock, vendors: vendors, patience: 18 * time.Second, ends: newEnds(len(orders))}
	l.run(t.Context(), orders)

	<-l.ends.done
	require.Equal(t, "succeeded", l.ends.all[1].reason)
	require.LessOrEqual(t, l.ends.all[1].looks, 3, "at 5, 10 and 15 s, or later")
	require.Equal(t, "gave up", l.ends.all[2].reason)
	require.LessOrEqual(t, l.ends.all[2].looks, 4, "and at 20 s")
	for _, e := range l.ends.all {
		require.Len(t, vendors[0].server.Looks(e.id), e.looks)
	}
	f := measure(orders, l.ends, vendors)
	require.Equal(t, 1, f.classes[0].jobs, "the job that hangs has no end to be late for")
	require.InDelta(t, l.ends.all[1].looks, f.classes[0].polls, 0)
	require.GreaterOrEqual(t, f.classes[0].p50, time.Duration(0), "nobody knows an end before it is there")
	require.Equal(t, 2, f.accepted)
	require.Equal(t, 1, f.open())
}

func TestExitCodes(t *testing.T) {
	run := func(ctx context.Context, args ...string) (int, string) {
		var errs strings.Builder
		return run(ctx, args, io.Discard, &errs), errs.String()
	}
	code, _ := run(t.Context(), "-jobs", "1", "-speed", "50")
	require.Zero(t, code)
	code, text := run(t.Context(), "-h")
	require.Zero(t, code)
	require.Contains(t, text, "-seed")
	code, text = run(t.Context(), "-speed", "0")
	require.Equal(t, exitUsage, code)
	require.Equal(t, "quickstart: -speed 0: give a number from 1 to 200\n", text)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	code, text = run(ctx)
	require.Equal(t, exitInterrupted, code)
	require.Equal(t, "quickstart: interrupted\n", text)
}

// A disk that is full has no table: that is no success.
func TestATableThatCannotBeWrittenIsAFailure(t *testing.T) {
	var errs strings.Builder
	code := run(t.Context(), []string{"-jobs", "1", "-speed", "100"}, fullDisk{}, &errs)
	require.Equal(t, exitFailed, code)
	require.Equal(t, "quickstart: the disk is full\n", errs.String())
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("the disk is full") }

func TestFlags(t *testing.T) {
	o, err := parse(nil, io.Discard)
	require.NoError(t, err)
	require.Equal(t, options{seed: 1, jobs: 60, speed: 20, providers: allProviders}, o)
	o, err = parse([]string{"-seed", "3", "-jobs=600", "-speed", "1", "-provider", "fal"}, io.Discard)
	require.NoError(t, err)
	require.Equal(t, options{seed: 3, jobs: 600, speed: 1, providers: []string{"fal"}}, o)

	for args, want := range map[string]string{
		"-jobs 0":         "-jobs 0: give a number from 1 to 600",
		"-jobs 601":       "-jobs 601: give a number from 1 to 600",
		"-speed -1":       "-speed -1: give a number from 1 to 200",
		"-speed 201":      "-speed 201: give a number from 1 to 200",
		"-provider acme":  `-provider "acme": give all, ark, atlas, azure-lro`,
		"-seed x":         "-h lists the flags",
		"-verbose":        "-h lists the flags",
		"fal":             "there are only flags",
		"-provider fal x": "there are only flags",
	} {
		_, err := parse(strings.Fields(args), io.Discard)
		require.ErrorContains(t, err, want, args)
	}
}

func TestWhatIsNotAccountedForIsTold(t *testing.T) {
	orders := []order{{n: 1}, {n: 2, fate: fails}, {n: 3, fate: hangs}}
	good := func() figures {
		return figures{accepted: 3, ends: map[int]end{
			1: {told: 1, state: jobpoll.StateSucceeded}, 2: {told: 1, state: jobpoll.StateFailed}, 3: {told: 1, state: jobpoll.StateRunning},
		}}
	}
	require.Empty(t, unaccounted(orders, good()))
	for _, c := range []struct {
		name, want string
		spoil      func(*figures)
	}{
		{"no end", "order-1 has no end", func(f *figures) { delete(f.ends, 1) }},
		{"told twice", "told 2 times", func(f *figures) { f.ends[1] = end{told: 2, state: jobpoll.StateSucceeded} }},
		{"given up though it succeeded", "order-1 ended as", func(f *figures) { f.ends[1] = end{told: 1, state: jobpoll.StateRunning} }},
		{"failed though it succeeded", "order-1 ended as", func(f *figures) { f.ends[1] = end{told: 1, state: jobpoll.StateFailed} }},
		{"succeeded though it failed", "order-2 ended as", func(f *figures) { f.ends[2] = end{told: 1, state: jobpoll.StateSucceeded} }},
		{"ended though it hangs", "order-3 ended as", func(f *figures) { f.ends[3] = end{told: 1, state: jobpoll.StateFailed} }},
		{"bought twice", "3 jobs were submitted, the providers made 4", func(f *figures) { f.accepted = 4 }},
	} {
		f := good()
		c.spoil(&f)
		got := unaccounted(orders, f)
		require.Len(t, got, 1, c.name)
		require.Contains(t, got[0], c.want, c.name)
	}
}
