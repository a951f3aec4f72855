package jobpoll_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// tableJob is one job of the set that all lines of the table share.
type tableJob struct {
	id, profile    string
	starts, takes  time.Duration
	expected, late time.Duration // late: how long its webhook is under way
	luck           float64       // its webhook is delivered where less than the part
	counts         bool          // it began after the first of its profile had ended
}

const (
	tableWarm = 20 // jobs a profile that end before others are counted
	tableJobs = 270
)

// tableSet are jobs of two profiles, in the order of their start.
func tableSet() []tableJob {
	rnd := rand.New(rand.NewPCG(5, 2026))
	profiles := []struct {
		name          string
		median, sigma float64
	}{{"standard", 60, 0.15}, {"long", 200, 0.2}}
	var set []tableJob
	at := 0.0
	for i := range tableJobs {
		for _, p := range profiles {
			at += 5 + 10*rnd.Float64()
			set = append(set, tableJob{
				id: fmt.Sprint(p.name, i), profile: p.name, starts: tableSeconds(at), expected: tableSeconds(p.median),
				takes: tableSeconds(p.median * math.Exp(p.sigma*rnd.NormFloat64())), late: tableSeconds(0.2 + rnd.ExpFloat64()/2),
				luck: rnd.Float64(),
			})
		}
	}
	for _, p := range profiles {
		var ends []time.Duration
		for _, j := range set {
			if j.profile == p.name {
				ends = append(ends, j.starts+j.takes+j.late)
			}
		}
		slices.Sort(ends)
		for i, j := range set {
			set[i].counts = j.counts || j.profile == p.name && j.starts > ends[tableWarm-1]
		}
	}
	return set
}

func tableSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// tableLine is how one line of the table went.
type tableLine struct {
	polls, delay float64 // a job; the delay in seconds
	coverage     float64 // that the looks went by in the end
}

// playTable runs the set through a Poller; part of the webhooks are delivered.
func playTable(t *testing.T, set []tableJob, schedule jobpoll.Schedule, policy jobpoll.WebhookPolicy, part float64) tableLine {
	clock := polltest.NewClock(time.Time{})
	start := clock.Now()
	ends := map[string]time.Time{}
	for _, j := range set {
		ends[j.id] = start.Add(j.starts + j.takes)
	}
	report := func(id string) jobpoll.Report {
		if end := ends[id]; !clock.Now().Before(end) {
			return jobpoll.Report{State: jobpoll.StateSucceeded, CompletedAt: end}
		}
		return jobpoll.Report{State: jobpoll.StateRunning}
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	var mu sync.Mutex
	rec := &polltest.Recorder{}
	h := polltest.Start(t, jobpoll.Config{
		Clock: clock, Callbacks: rec.Callbacks(), Rand: func() float64 { mu.Lock(); defer mu.Unlock(); return rnd.Float64() },
		Routes: []jobpoll.Route{{Name: "r", Schedule: schedule, Webhook: policy, Checker: jobpoll.CheckerFunc(func(_ context.Context, job jobpoll.Job) (jobpoll.Report, error) {
			return report(job.ID), nil
		})}},
	})
	for _, j := range set {
		clock.Advance(j.starts - clock.Monotonic())
		require.NoError(t, h.Watch(t.Context(), jobpoll.Job{Route: "r", ID: j.id, Profile: j.profile, Expected: j.expected}))
		if j.luck < part {
			clock.AfterFunc(j.takes+j.late, func() {
				assert.NoError(t, h.Notify(context.Background(), jobpoll.Notice{
					Key: jobpoll.Key{Route: "r", ID: j.id}, EventID: j.id, Report: report(j.id), Trust: jobpoll.TrustAuthoritative,
				}))
			})
		}
	}
	for h.Metrics().Total.Unresolved > 0 {
		clock.Advance(time.Minute)
	}
	counted := map[string]bool{}
	for _, j := range set {
		counted[j.id] = j.counts
	}
	var line tableLine
	n := 0.0
	for _, o := range rec.Outcomes() {
		require.Equal(t, jobpoll.ReasonSucceeded, o.Reason)
		if counted[o.Job.ID] {
			n++
			line.polls += float64(o.Polls)
			line.delay += o.DetectedAt.Sub(ends[o.Job.ID]).Seconds()
		}
	}
	require.Greater(t, n, float64(tableJobs), "most of both profiles")
	line.polls /= n
	line.delay /= n
	line.coverage = h.Metrics().Routes["r"].Webhook.Recent
	h.Stop()
	return line
}

// go test -run TestWebhookAndReconcilingPollInOneTable -v .
func TestWebhookAndReconcilingPollInOneTable(t *testing.T) {
	set := tableSet()
	var table strings.Builder
	fmt.Fprintf(&table, "\n%-36s %6s %12s %9s\n", "", "polls", "mean delay", "coverage")
	fmt.Fprintf(&table, "%-36s %6s %12s\n", "", "a job", "s")
	for _, schedule := range []jobpoll.Schedule{{PollCost: jobpoll.NoPlan}, {}} {
		name := "table"
		if schedule.PollCost == 0 {
			name = "plan"
		}
		row := func(what string, l tableLine) {
			fmt.Fprintf(&table, "%-36s %6.3f %12.2f %9.2f\n", name+", "+what, l.polls, l.delay, l.coverage)
		}
		poll := playTable(t, set, schedule, jobpoll.WebhookPolicy{Mode: jobpoll.WebhookAbsent}, 0)
		row("poll only", poll)
		for _, m := range []jobpoll.WebhookMode{jobpoll.WebhookExpected, jobpoll.WebhookLearned} {
			for _, part := range []float64{1, 0.9, 0.5, 0} {
				l := playTable(t, set, schedule, jobpoll.WebhookPolicy{Mode: m}, part)
				row(fmt.Sprintf("webhook %3.0f %%, %s", 100*part, m), l)
				switch part {
				case 1:
					assert.LessOrEqual(t, l.polls, 0.05, m)
				case 0.9:
					assert.LessOrEqual(t, l.polls, 0.3, m)
					// Looks by a learned plan are late by half as much as those by the
					// table, and the spread of the durations leaves no such room below it.
					if name == "table" {
						assert.LessOrEqual(t, l.delay, poll.delay/3, m)
					} else {
						assert.Less(t, l.delay, poll.delay, m)
					}
				case 0:
					assert.InEpsilon(t, poll.polls, l.polls, 0.1, m)
					assert.InEpsilon(t, poll.delay, l.delay, 0.1, m)
				}
			}
		}
	}
	t.Log(table.String())
}
