package jobpoll

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// outlookWith is an outlook with that coverage and no ages measured.
func outlookWith(coverage float64) *WebhookOutlook { return &WebhookOutlook{Coverage: coverage} }

// aged is one with ages measured: half of the jobs end within 1 min.
func aged(coverage float64) *WebhookOutlook {
	return &WebhookOutlook{Coverage: coverage, P10: 40 * sec, P50: 60 * sec, P90: 90 * sec, P99: 2 * mnt}
}

func TestFirstLookWaitsForTheWebhookAsLongAsItIsWorthIt(t *testing.T) {
	policy := func(o *WebhookOutlook, w WebhookPolicy) *WebhookOutlook { o.Policy = w; return o }
	for _, c := range []struct {
		name     string
		outlook  *WebhookOutlook
		expected time.Duration
		want     time.Duration
		cause    Cause
	}{
		{"nothing is known", nil, 40 * sec, 6 * sec, CauseFirst},
		{"none comes", outlookWith(0), 40 * sec, 6 * sec, CauseFirst},
		{"all come: three times the expected", outlookWith(1), 40 * sec, 2 * mnt, CauseReconcile},
		{"and at least a minute", outlookWith(1), 10 * sec, mnt, CauseReconcile},
		{"nothing is expected", outlookWith(1), 0, mnt, CauseReconcile},
		{"no longer than half the life of a result", outlookWith(1), time.Hour, 30 * mnt, CauseReconcile},
		{"of a longer one", policy(outlookWith(1), WebhookPolicy{ResultLife: 24 * time.Hour}), time.Hour, 3 * time.Hour, CauseReconcile},
		{"as the policy says", policy(outlookWith(1), WebhookPolicy{First: 30 * sec}), 10 * mnt, 30 * sec, CauseReconcile},
		{"as was measured", aged(1), 10 * mnt, 2 * mnt, CauseReconcile},
		{"as the policy says, whatever was measured", policy(aged(1), WebhookPolicy{First: 70 * sec}), 10 * mnt, 70 * sec, CauseReconcile},
		{"one of fifty is lost", aged(0.98), 40 * sec, 108 * sec, CauseReconcile},
		{"one of ten", aged(0.9), 40 * sec, 85 * sec, CauseReconcile},
		{"half", aged(0.5), 40 * sec, 51 * sec, CauseReconcile},
		{"three of four", aged(0.25), 40 * sec, 9 * sec, CauseReconcile},
		{"four of five", aged(0.2), 40 * sec, 6 * sec, CauseFirst},
		{"a part that is none", outlookWith(math.NaN()), 40 * sec, 6 * sec, CauseFirst},
		{"a part above all", outlookWith(1.5), 40 * sec, 6 * sec, CauseFirst},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := Schedule{Delays: []time.Duration{6 * sec}, Jitter: NoJitter}
			d := s.Next(Input{Job: Job{Route: "r", ID: "j", Expected: c.expected, SubmittedAt: t0}, Webhook: c.outlook, Now: t0, Rand: 0.5})
			assert.InDelta(t, c.want.Seconds(), d.At.Sub(t0).Seconds(), 1)
			assert.Equal(t, c.cause, d.Cause)
		})
	}
}

// reconciled plays a job that runs for long; the ages of its looks.
func reconciledLooks(s Schedule, w *WebhookOutlook, expected time.Duration, n int) []time.Duration {
	in := Input{Job: Job{Route: "r", ID: "j", Expected: expected, SubmittedAt: t0}, Stop: StopRules{MaxAge: NoLimit}, Webhook: w, Now: t0, Rand: 0.5}
	var ages []time.Duration
	for range n {
		in.Now = s.Next(in).At
		ages = append(ages, in.Now.Sub(t0))
		in.Track, _ = in.Track.Observe(Report{State: StateRunning}, nil, in.Now)
	}
	return ages
}

func TestLaterLooksComeAtAPaceThatQuickensAsWebhooksStayAway(t *testing.T) {
	s := fixed(10 * sec)
	assert.Equal(t, secs(120, 240, 360), reconciledLooks(s, aged(1), 0, 3))
	ages := reconciledLooks(s, aged(0.99), 0, 2)
	assert.InDelta(t, 57.7, (ages[1] - ages[0]).Seconds(), 0.1, "10 s · √(1/3 / 0.01)")
	ages = reconciledLooks(s, aged(0.9), 0, 2)
	assert.InDelta(t, 18.3, (ages[1] - ages[0]).Seconds(), 0.1)
	ages = reconciledLooks(s, aged(0.6), 0, 2)
	assert.Equal(t, 10*sec, ages[1]-ages[0])
	slow := fixed(5 * mnt)
	assert.Equal(t, secs(300, 600, 900), reconciledLooks(slow, aged(1), 0, 3), "a longer ordinary gap holds")
	capped := Schedule{Delays: []time.Duration{10 * sec}, MaxDelay: 20 * sec, Jitter: NoJitter}
	assert.Equal(t, secs(20, 40), reconciledLooks(capped, aged(0.9), 0, 2), "the latency that the caller accepts")
	assert.Equal(t, secs(120, 240), reconciledLooks(capped, aged(1), 0, 2), "which no webhook breaks that comes")
}

func TestNothingIsPutOffThatIsNotOrdinary(t *testing.T) {
	s := fixed(10 * sec)
	for name, answer := range map[string]struct {
		r   Report
		err error
	}{
		"an error":        {err: errPlain},
		"a job not known": {err: kindErr(ErrorNoSuchJob)},
		"refused":         {err: kindErr(ErrorAuth)},
		"a rate limit":    {err: limited(30 * sec)},
		"no output":       {r: Report{State: StateFailed, Failure: &Failure{Kind: FailureNoOutput}}},
	} {
		t.Run(name, func(t *testing.T) {
			in := Input{Job: Job{Route: "r", ID: "j", SubmittedAt: t0}, Now: after(mnt), Rand: 0.5}
			in.Track, _ = in.Track.Observe(answer.r, answer.err, in.Now)
			want := s.Next(in)
			in.Webhook = outlookWith(1)
			assert.Equal(t, want, s.Next(in))
		})
	}
}

func TestAJobIsLookedAtOnceBeforeItsLimitWhateverTheWebhook(t *testing.T) {
	in := Input{Job: Job{Route: "r", ID: "j", SubmittedAt: t0, Deadline: after(20 * sec)}, Webhook: outlookWith(1), Now: t0, Rand: 0.5}
	d := fixed(10 * sec).Next(in)
	assert.Equal(t, Decision{At: after(20 * sec), Cause: CauseDeadline}, d)
}

// The outlook only puts off, by no more than is bounded, and spreads upward.
func FuzzWebhookOutlook(f *testing.F) {
	f.Add(0.9, int64(40e9), int64(60e9), int64(120e9), int64(30e9), int64(0), int64(0), 0.5)
	f.Add(1.0, int64(0), int64(0), int64(0), int64(0), int64(1), int64(math.MaxInt64), 0.99)
	f.Add(math.Inf(1), int64(-1), int64(5), int64(3), int64(math.MaxInt64), int64(-5), int64(1), math.NaN())
	f.Fuzz(func(t *testing.T, coverage float64, p10, p50, p99, expected, first, life int64, rnd float64) {
		w := &WebhookOutlook{Coverage: coverage, P10: time.Duration(p10), P50: time.Duration(p50), P90: time.Duration(p50), P99: time.Duration(p99)}
		w.Policy = WebhookPolicy{First: time.Duration(first), ResultLife: time.Duration(life)}
		s := Schedule{}
		in := Input{Job: Job{Route: "r", ID: "j", Expected: time.Duration(expected), SubmittedAt: t0}, Stop: StopRules{MaxAge: NoLimit}, Now: t0, Rand: rnd}
		for range 4 {
			in.Webhook = nil
			plain := s.Next(in)
			in.Webhook = w
			put := s.Next(in)
			require.False(t, put.At.Before(plain.At))
			if put.Cause != plain.Cause {
				require.Equal(t, CauseReconcile, put.Cause)
				require.LessOrEqual(t, put.At.Sub(in.Now), w.Policy.longest())
			}
			in.Now = put.At
			in.Track, _ = in.Track.Observe(Report{State: StateRunning}, nil, in.Now)
		}
	})
}

// noChecker is one that is never asked.
var noChecker = CheckerFunc(func(context.Context, Job) (Report, error) { return Report{}, nil })

func TestFaultyWebhookPoliciesAreRefusedAllAtOnce(t *testing.T) {
	_, err := New(Config{Routes: []Route{
		{Name: "a", Checker: noChecker, Webhook: WebhookPolicy{Mode: 9, First: -1, Pace: -1, ResultLife: -1, Window: 7}},
		// B66
		{Name: "b", Checker: noChecker, Webhook: WebhookPolicy{Pace: 2 * time.Hour}},
		{Name: "c", Checker: noChecker, Webhook: WebhookPolicy{Pace: 31 * mnt, First: 31 * mnt, ResultLife: time.Hour, Window: 1001}},
	}})
	require.Error(t, err)
	for _, want := range []string{
		`("a").Webhook.Mode: 9`, `("a").Webhook.First: -1ns`, `("a").Webhook.Pace: -1ns`, `("a").Webhook.ResultLife: -1ns`, `("a").Webhook.Window: 7`,
		`("b").Webhook.Pace: 2h0m0s is more than half the life of a result (1h0m0s)`,
		`("c").Webhook.Pace: 31m0s`, `("c").Webhook.First: 31m0s`, `("c").Webhook.Window: 1001`,
	} {
		assert.ErrorContains(t, err, want)
	}
	good := WebhookPolicy{Mode: WebhookExpected, Pace: 2 * time.Hour, First: time.Hour, ResultLife: 4 * time.Hour, Window: 8}
	assert.Empty(t, good.faults("Webhook"))
	assert.Equal(t, 30*sec, (&WebhookPolicy{ResultLife: mnt}).pace(), "the default gives way to the life of the result")
}

func TestWebhookModesAreWrittenByName(t *testing.T) {
	for m, name := range map[WebhookMode]string{WebhookLearned: "learned", WebhookExpected: "expected", WebhookAbsent: "absent"} {
		b, err := json.Marshal(m)
		require.NoError(t, err)
		assert.Equal(t, fmt.Sprintf("%q", name), string(b))
		var back WebhookMode
		require.NoError(t, json.Unmarshal(b, &back))
		assert.Equal(t, m, back)
	}
	m := WebhookExpected
	require.NoError(t, json.Unmarshal([]byte(`"of a later version"`), &m))
	assert.Equal(t, WebhookLearned, m)
}
