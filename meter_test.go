package jobpoll

import (
	"encoding/json"
	"expvar"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var meterNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// finish runs one job from birth to end, with polls looks of which the first
// failed are transient errors.
func finish(r *routeMeter, polls, failed int, o Outcome) {
	born := meterNow.Add(-time.Minute)
	r.watched(born, false, 0)
	streak := 0
	for i := range polls {
		r.lookStarted(20 * time.Millisecond)
		if i < failed {
			r.lookEnded(ErrorTransient, Hint{}, streak, streak+1)
			streak++
		} else {
			r.lookEnded(ErrorNone, Hint{}, streak, 0)
			streak = 0
		}
	}
	o.Polls = polls
	r.stopped(&o, born, streak)
}

// labels lists the path of every number in the encoded metrics.
func labels(t *testing.T, m Metrics) []string {
	t.Helper()
	b, err := json.Marshal(m)
	require.NoError(t, err)
	var v any
	require.NoError(t, json.Unmarshal(b, &v))
	var all []string
	var walk func(path string, v any)
	walk = func(path string, v any) {
		if m, ok := v.(map[string]any); ok {
			for k, v := range m {
				walk(path+"/"+k, v)
			}
			return
		}
		all = append(all, path)
	}
	walk("", v)
	return all
}

func TestEmptyMetricsNameEveryReasonAndKind(t *testing.T) {
	m := newMeter()
	m.route("kling")
	b, err := json.Marshal(m.snapshot(meterNow, levels{}))
	require.NoError(t, err)
	var got struct {
		Total   struct{ Stops, LookErrors map[string]uint64 }
		Routes  map[string]map[string]any
		Budgets map[string]any
	}
	require.NoError(t, json.Unmarshal([]byte(strings.ReplaceAll(string(b), "look_errors", "lookerrors")), &got))
	for _, r := range Reasons() {
		n, ok := got.Total.Stops[r.String()]
		assert.True(t, ok && n == 0, "total: %v", r)
		assert.Contains(t, got.Routes["kling"]["stops"], r.String())
	}
	assert.Len(t, got.Total.Stops, len(Reasons()))
	for k := ErrorTransient; k <= ErrorUnknown; k++ {
		assert.Contains(t, got.Total.LookErrors, k.String())
	}
	assert.NotContains(t, string(b), "null", "maps and lists are there from the start")
}

func TestMetricsWithNoRouteEncode(t *testing.T) {
	b, err := json.Marshal(newMeter().snapshot(meterNow, levels{}))
	require.NoError(t, err)
	assert.Contains(t, string(b), `"routes":{}`)
	assert.Contains(t, string(b), `"budgets":{}`)
	assert.Contains(t, string(b), `"ambiguous submission":0`)
	assert.NotContains(t, string(b), "null")
}

func TestMetricsAreServedAsExpvarAndReadBack(t *testing.T) {
	m := newMeter()
	finish(m.route("kling"), 4, 3, Outcome{Reason: ReasonSucceeded, DetectionDelay: 3 * time.Second})
	m.route("kling").unknownWord("NOT_START")
	s := m.snapshot(meterNow, levels{budgets: map[string]BudgetMetrics{"account": {}}})
	text := expvar.Func(func() any { return s }).String()
	var back Metrics
	require.NoError(t, json.Unmarshal([]byte(text), &back))
	assert.Equal(t, s, back)
}

// B79(a): labels stay few, whatever 10,000 jobs and their provider say.
func TestLabelsAreBounded(t *testing.T) {
	m := newMeter()
	for i := range 10_000 {
		r := m.route(fmt.Sprintf("route-%c", 'a'+i%3))
		id := fmt.Sprintf("9f31c0de%08d", i)
		word := fmt.Sprintf("word%c%c", 'a'+(i%50)/26, 'a'+(i%50)%26)
		r.unknownWord(word)
		r.unknownWord("stuck at " + id)
		finish(r, 2, 1, Outcome{Job: Job{Route: "route", ID: id}, Reason: ReasonSucceeded, Message: id})
	}
	s := m.snapshot(meterNow, levels{})
	all := labels(t, s)
	assert.Less(t, len(all), 600)
	assert.NotContains(t, strings.Join(all, "\n"), "9f31c0de")
	assert.Len(t, s.Routes, 3)
	for name, r := range s.Routes {
		assert.Len(t, r.UnknownWords, maxWords+1, name)
		assert.Positive(t, r.UnknownWords["other"], name)
	}
	assert.Len(t, s.Total.UnknownWords, maxWords+1)
	sum := uint64(0)
	for _, n := range s.Total.UnknownWords {
		sum += n
	}
	assert.EqualValues(t, 20_000, sum)
	assert.EqualValues(t, 10_000, s.Total.Stops[ReasonSucceeded])
}

// B79(b): one job is one job, however often it was looked at and told.
func TestARetriedAndTwiceToldJobCountsOnce(t *testing.T) {
	m := newMeter()
	r := m.route("kling")
	finish(r, 4, 3, Outcome{Reason: ReasonSucceeded, Via: ViaPoll})
	r.notice(NoticeDuplicate, false)
	s := m.snapshot(meterNow, levels{})
	for _, got := range []RouteMetrics{s.Total, s.Routes["kling"]} {
		assert.EqualValues(t, 1, got.Stops[ReasonSucceeded])
		assert.EqualValues(t, 1, got.PollsPerCompletion.Count)
		assert.InDelta(t, 4, got.PollsPerCompletion.Mean(), 0)
		assert.EqualValues(t, 4, got.Looks)
		assert.EqualValues(t, 3, got.LookErrors[ErrorTransient])
		assert.EqualValues(t, 1, got.Webhook.Duplicates)
		assert.EqualValues(t, 1, got.Webhook.Notices)
		assert.Zero(t, got.Webhook.Coverage)
		assert.Zero(t, got.Unresolved)
	}
}

func TestGaugesReturnToZeroOnEveryEnding(t *testing.T) {
	m := newMeter()
	r := m.route("kling")
	born := meterNow.Add(-time.Hour)
	for i := range Reasons() {
		r.watched(born, i%2 == 0, i)
		r.lookStarted(0)
	}
	s := m.snapshot(meterNow, levels{}).Total
	n := len(Reasons())
	assert.Equal(t, n, s.Unresolved)
	assert.Equal(t, n, s.InFlight)
	assert.Equal(t, n-1, s.Failing)
	assert.Equal(t, n-1, s.LongestStreak)
	assert.EqualValues(t, n, s.Watched+s.Restored)
	assert.Equal(t, time.Hour, s.Age.Oldest)
	for i, reason := range Reasons() {
		r.stopped(&Outcome{Reason: reason}, born, i)
		if i%2 == 0 {
			r.lookDropped()
		} else {
			r.lookEnded(ErrorTransient, Hint{}, 0, 0) // the watch had ended before
		}
	}
	r.watched(born, true, 5)
	r.released(born, 5)
	s = m.snapshot(meterNow, levels{}).Total
	assert.Zero(t, s.Unresolved)
	assert.Zero(t, s.InFlight)
	assert.Zero(t, s.Failing)
	assert.Zero(t, s.LongestStreak)
	assert.Equal(t, AgeMetrics{}, s.Age)
	for _, reason := range Reasons() {
		assert.EqualValues(t, 1, s.Stops[reason], reason.String())
	}
	assert.EqualValues(t, 4, s.PollsPerCompletion.Count, "only ends that the provider told")
}

// B45(c): a streak of failures shows before it ends a job.
func TestFailureStreakShowsAndClears(t *testing.T) {
	m := newMeter()
	r := m.route("kling")
	r.watched(meterNow, false, 0)
	for n := range 100 {
		r.lookStarted(0)
		r.lookEnded(ErrorTransient, Hint{}, n, n+1)
		s := m.snapshot(meterNow, levels{}).Routes["kling"]
		require.Equal(t, 1, s.Failing)
		require.Equal(t, min(n+1, 64), s.LongestStreak)
	}
	r.lookStarted(0)
	r.lookEnded(ErrorNone, Hint{}, 100, 0)
	s := m.snapshot(meterNow, levels{}).Total
	assert.Zero(t, s.Failing)
	assert.Zero(t, s.LongestStreak)
}

func TestWhatALookSaysIsCounted(t *testing.T) {
	m := newMeter()
	r := m.route("kling")
	for _, k := range []ErrorKind{ErrorNone, ErrorRateLimited, ErrorConcurrency, ErrorNoSuchJob, ErrorNoSuchJob, ErrorKind(200)} {
		r.lookStarted(3 * time.Second)
		r.lookEnded(k, Hint{Malformed: k == ErrorRateLimited}, 0, 0)
	}
	s := m.snapshot(meterNow, levels{}).Total
	assert.EqualValues(t, 6, s.Looks)
	assert.EqualValues(t, 2, s.RateLimited)
	assert.EqualValues(t, 2, s.LookErrors[ErrorNoSuchJob])
	assert.EqualValues(t, 1, s.MalformedHints)
	assert.EqualValues(t, 1, s.LookErrors[ErrorUnknown])
	assert.EqualValues(t, 6, s.Lateness.Count)
	assert.InDelta(t, 3, s.Lateness.Mean(), 1e-9)
}

func TestDelaysAreKeptApartByWhatIsKnown(t *testing.T) {
	m := newMeter()
	r := m.route("kling")
	finish(r, 1, 0, Outcome{Reason: ReasonSucceeded, DetectionDelay: 2 * time.Second, DelayExact: true})
	finish(r, 1, 0, Outcome{Reason: ReasonFailed, DetectionDelay: 8 * time.Second})
	finish(r, 1, 0, Outcome{Reason: ReasonDeadline, DetectionDelay: time.Hour})
	s := m.snapshot(meterNow, levels{}).Total
	assert.EqualValues(t, 1, s.DelayExact.Count)
	assert.InDelta(t, 2, s.DelayExact.Sum, 1e-9)
	assert.EqualValues(t, 1, s.DelayBound.Count)
	assert.InDelta(t, 8, s.DelayBound.Sum, 1e-9)
}

func TestWebhookNumbers(t *testing.T) {
	m := newMeter()
	r := m.route("kling")
	for k := NoticeApplied; k <= NoticeLate; k++ {
		r.notice(k, false)
	}
	r.notice(NoticeApplied, true) // the early one, once its job is there
	finish(r, 0, 0, Outcome{Reason: ReasonSucceeded, Via: ViaWebhook})
	for range 3 {
		finish(r, 1, 0, Outcome{Reason: ReasonSucceeded, Via: ViaPoll})
	}
	finish(m.route("fal"), 1, 0, Outcome{Reason: ReasonFailed, Via: ViaPoll})
	s := m.snapshot(meterNow, levels{})
	want := WebhookMetrics{Notices: 8, Applied: 2, Hints: 1, Duplicates: 1, Stale: 1, Conflicts: 1, Early: 1, EarlyDropped: 1, Late: 1, Ends: 1, Coverage: 0.25}
	assert.Equal(t, want, s.Routes["kling"].Webhook)
	want.Coverage = 0.2
	assert.Equal(t, want, s.Total.Webhook)
	assert.Zero(t, s.Routes["fal"].Webhook)
}

func TestTotalIsTheSumOfTheRoutes(t *testing.T) {
	m := newMeter()
	a, b := m.route("a"), m.route("b")
	assert.Same(t, a, m.route("a"))
	for i := range 90 {
		a.watched(meterNow.Add(-time.Duration(i)*time.Second), false, 0)
	}
	for range 10 {
		b.watched(meterNow.Add(-10*time.Minute), true, 3)
	}
	finish(a, 2, 0, Outcome{Reason: ReasonSucceeded})
	finish(b, 4, 0, Outcome{Reason: ReasonSucceeded})
	s := m.snapshot(meterNow, levels{
		parked: 4,
		routes: map[string]routeLevels{"a": {backlog: BacklogMetrics{Jobs: 2, Lag: time.Second}}, "b": {backlog: BacklogMetrics{Jobs: 5, Lag: time.Minute}},
			"gone": {backlog: BacklogMetrics{Jobs: 9}}},
	})
	assert.Equal(t, 100, s.Total.Unresolved)
	assert.EqualValues(t, 92, s.Total.Watched)
	assert.EqualValues(t, 10, s.Total.Restored)
	assert.Equal(t, AgeMetrics{Oldest: 10 * time.Minute, P50: 49 * time.Second, P95: 10 * time.Minute}, s.Total.Age)
	assert.Equal(t, 89*time.Second, s.Routes["a"].Age.Oldest)
	assert.InDelta(t, 3, s.Total.PollsPerCompletion.Mean(), 1e-9)
	assert.Equal(t, BacklogMetrics{Jobs: 7, Lag: time.Minute}, s.Total.Backlog)
	assert.Equal(t, BacklogMetrics{Jobs: 2, Lag: time.Second}, s.Routes["a"].Backlog)
	assert.Equal(t, 10, s.Total.Failing)
	assert.Equal(t, 4, s.ParkedNotices)
}

// With one route the total must be equal in every field, also in new ones.
func TestTotalOfOneRouteIsThatRoute(t *testing.T) {
	m := newMeter()
	r := m.route("a")
	finish(r, 3, 1, Outcome{Reason: ReasonSucceeded, Via: ViaWebhook, DetectionDelay: time.Second})
	finish(r, 3, 1, Outcome{Reason: ReasonFailed, DelayExact: true, DetectionDelay: time.Second})
	for k := NoticeApplied; k <= NoticeLate; k++ {
		r.notice(k, false)
	}
	for k := ErrorTransient; k <= ErrorUnknown; k++ {
		r.lookStarted(0)
		r.lookEnded(k, Hint{Malformed: true}, 0, 0)
	}
	r.unknownWord("NOT_START")
	r.watched(meterNow.Add(-time.Minute), true, 4)
	r.lookStarted(0)
	r.submitSent()
	r.submitDoubted()
	r.submitResolved()
	r.submitTaken(ViaLookup)
	for _, e := range []SubmitMeaning{SubmitNotSent, SubmitRefused, SubmitAbsent, SubmitAmbiguous} {
		r.submitEnded(e)
	}
	s := m.snapshot(meterNow, levels{routes: map[string]routeLevels{"a": {
		backlog: BacklogMetrics{Jobs: 1, Lag: time.Second}, hung: 2, submits: submitLevels{1, 2, 3, 4, 5, 6, 7}, price: 2,
	}}})
	assert.Equal(t, s.Routes["a"], s.Total)
	sub := reflect.ValueOf(s.Total.Submissions)
	for i := range sub.NumField() {
		assert.False(t, sub.Field(i).IsZero(), "Submissions.%s is not exercised here", sub.Type().Field(i).Name)
	}
	v := reflect.ValueOf(s.Total)
	for i := range v.NumField() {
		assert.False(t, v.Field(i).IsZero(), "%s is not exercised here", v.Type().Field(i).Name)
	}
}

func TestSnapshotIsItsReadersOwn(t *testing.T) {
	m := newMeter()
	finish(m.route("a"), 1, 0, Outcome{Reason: ReasonSucceeded})
	before := m.snapshot(meterNow, levels{})
	spoilt := m.snapshot(meterNow, levels{})
	spoilt.Total.Stops[ReasonFailed] = 7
	spoilt.Routes["a"].Stops[ReasonFailed] = 7
	spoilt.Routes["a"].Lateness.Bounds[0] = 7
	spoilt.Total.Lateness.Bounds[0] = 7
	spoilt.Total.Lateness.Counts[0] = 7
	assert.Equal(t, before, m.snapshot(meterNow, levels{}))
}

func TestPollerWideCounters(t *testing.T) {
	m := newMeter()
	m.updates.Add(5)
	m.coalesced.Add(2)
	m.stops.Add(3)
	m.stopFailures.Add(1)
	m.panics.Add(4)
	m.storeErrors.Add(6)
	m.clockJumps.Add(7)
	s := m.snapshot(meterNow, levels{})
	assert.Equal(t, CallbackMetrics{Updates: 5, Coalesced: 2, Stops: 3, StopFailures: 1}, s.Callbacks)
	assert.Equal(t, []uint64{4, 6, 7}, []uint64{s.Panics, s.StoreErrors, s.ClockJumps})
}

func TestCountingFromManyGoroutinesLosesNothing(t *testing.T) {
	m := newMeter()
	var wg sync.WaitGroup
	for g := range 8 {
		wg.Go(func() {
			for i := range 300 {
				r := m.route(fmt.Sprint(g % 3))
				finish(r, 2, 1, Outcome{Reason: ReasonSucceeded})
				r.unknownWord(fmt.Sprint("w", i))
				r.notice(NoticeApplied, false)
				if i%50 == 0 {
					m.snapshot(meterNow, levels{})
				}
			}
		})
	}
	wg.Wait()
	s := m.snapshot(meterNow, levels{}).Total
	assert.EqualValues(t, 2400, s.Stops[ReasonSucceeded])
	assert.EqualValues(t, 4800, s.Looks)
	assert.EqualValues(t, 2400, s.Webhook.Applied)
	assert.Zero(t, s.Unresolved+s.InFlight+s.Failing)
}

// B85: counters forget the jobs that have ended.
func TestFinishedJobsLeaveNothingInTheMeter(t *testing.T) {
	m := newMeter()
	r := m.route("a")
	for i := range 20_000 {
		born := meterNow.Add(time.Duration(i) * time.Second)
		r.watched(born, false, 0)
		r.stopped(&Outcome{Reason: ReasonSucceeded}, born, 0)
	}
	assert.Empty(t, r.births.list(nil))
}

func TestCountingAllocatesNothing(t *testing.T) {
	r := newMeter().route("a")
	o := Outcome{Reason: ReasonSucceeded, Via: ViaWebhook}
	one := func() { countOne(r, &o) }
	one()
	assert.Zero(t, testing.AllocsPerRun(1000, one))
}

func countOne(r *routeMeter, o *Outcome) {
	r.watched(meterNow, false, 0)
	r.lookStarted(time.Millisecond)
	r.lookEnded(ErrorTransient, Hint{}, 0, 1)
	r.unknownWord("NOT_START")
	r.notice(NoticeApplied, false)
	r.stopped(o, meterNow, 1)
}

func BenchmarkMeterOneJob(b *testing.B) {
	r := newMeter().route("a")
	o := Outcome{Reason: ReasonSucceeded}
	b.ReportAllocs()
	for b.Loop() {
		countOne(r, &o)
	}
}

func BenchmarkMeterSnapshotOfAMillionJobs(b *testing.B) {
	m := newMeter()
	r := m.route("a")
	for i := range 1_000_000 {
		r.watched(meterNow.Add(-time.Duration(i)*10*time.Millisecond), false, 0)
	}
	b.ReportAllocs()
	for b.Loop() {
		m.snapshot(meterNow, levels{})
	}
}
