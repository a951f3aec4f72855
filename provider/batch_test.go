package provider

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// listing are the adapters that look at many jobs in one call.
func listing(t *testing.T) []string {
	var names []string
	for _, name := range everyAdapter() {
		if _, ok := newAdapterFor(t, name, Config{BaseURL: "https://api.example", Credentials: Secret(kitKey)}).(jobpoll.BatchChecker); ok {
			names = append(names, name)
		}
	}
	require.NotEmpty(t, names)
	return names
}

// crowd is a Poller with many jobs at a provider on loopback, due all the time.
type crowd struct {
	*polltest.Harness
	server *loopback.Server
	seen   polltest.Recorder
	jobs   []jobpoll.Job
}

// newCrowd adds so many jobs, a look at each every 20 s; script is that of the nth.
func newCrowd(t *testing.T, name string, n int, singly bool, script func(n int) string, change ...func(*loopback.Config)) *crowd {
	t.Helper()
	p := wiredProviders()[name]
	c := &crowd{}
	clock := polltest.NewClock(time.Time{})
	cfg := loopback.Config{Wire: p.wire, Clock: clock, Credential: kitKey}
	for _, f := range change {
		f(&cfg)
	}
	c.server = loopback.Start(cfg)
	t.Cleanup(c.server.Close)
	var checker jobpoll.Checker = newAdapterFor(t, name, Config{BaseURL: c.server.URL() + p.base, Credentials: Secret(kitKey), Clock: clock})
	if singly {
		checker = jobpoll.CheckerFunc(checker.Check)
	}
	const gap = 20 * time.Second
	c.Harness = polltest.Start(t, jobpoll.Config{
		Clock: clock, Callbacks: c.seen.Callbacks(), Workers: 64,
		Routes: []jobpoll.Route{{
			Name: name, Checker: checker, Schedule: jobpoll.Schedule{Delays: []time.Duration{gap}},
			Stop: jobpoll.StopRules{MissingGrace: time.Minute, MissingLooks: 3},
		}},
	})
	for i := range n {
		job := jobpoll.Job{
			Route: name, ID: p.wire.ID(i + 1), SubmittedAt: clock.Now().Add(-time.Duration(i) * gap / time.Duration(n)),
		}
		if s := script(i); s != "" {
			c.server.Add(job.ID, s)
		}
		require.NoError(t, c.Watch(t.Context(), job))
		c.jobs = append(c.jobs, job)
	}
	return c
}

// Through the Poller, over HTTP: of 1,000 jobs calls are almost all full, in batches of
// 50 there is one for twenty looks or more, and ends are seen no later. Of 100 a call
// is what is due about then, some nine looks, and ends are seen a little later.
func TestListsSaveCallsAndDelayNothing(t *testing.T) {
	for _, name := range listing(t) {
		most := newAdapterFor(t, name, Config{BaseURL: "https://api.example", Credentials: Secret(kitKey)}).(jobpoll.BatchChecker).MaxBatch()
		for _, c := range []struct {
			jobs    int
			looks   float64 // of a call, at least
			slower  time.Duration
			figures string // of README.md, which are Ark's
		}{
			{1000, 0.7 * float64(most), 90 * time.Millisecond, "With 1,000 jobs of Ark's a call is 47 looks, and ends are seen no later"},
			{100, 6, 700 * time.Millisecond, "with 100 it is 9, and ends are seen 0.6 s later"},
		} {
			t.Run(fmt.Sprint(name, " ", c.jobs), func(t *testing.T) {
				play := func(singly bool) (looks, calls int, delay time.Duration) {
					g := newCrowd(t, name, c.jobs, singly, func(n int) string {
						return fmt.Sprintf(`running; at %dms succeeded`, 30_000+n*10_007%40_000)
					})
					g.Clock.Advance(3 * time.Minute)
					for i, job := range g.jobs {
						o, ok := g.seen.Outcome(job.Key())
						require.True(t, ok, job.ID)
						require.Equal(t, jobpoll.ReasonSucceeded, o.Reason, "%+v", o)
						require.True(t, HasOutput(o.Report.Output))
						delay += o.DetectedAt.Sub(polltest.NewClock(time.Time{}).Now()) - time.Duration(30_000+i*10_007%40_000)*time.Millisecond
					}
					m, s := g.Metrics().Total, g.server.Stats()
					require.EqualValues(t, m.Calls, s.Lists+s.Statuses)
					return int(m.Looks), int(m.Calls), delay / time.Duration(c.jobs)
				}
				looks, calls, delay := play(true)
				together, fewer, sooner := play(false)
				t.Logf("singly: %d looks, %d calls, %v; in lists: %d looks, %d calls, %v", looks, calls, delay, together, fewer, sooner)
				require.GreaterOrEqual(t, float64(together), c.looks*float64(fewer))
				require.LessOrEqual(t, sooner, delay+c.slower)
				readme, err := os.ReadFile("../README.md")
				require.NoError(t, err)
				require.Contains(t, strings.Join(strings.Fields(string(readme)), " "), c.figures)
			})
		}
	}
}

// Whatever a list answers, each job ends once and as it should.
func TestAListThatDoesBadlyHarmsNoJob(t *testing.T) {
	const jobs = 30
	running := func(int) string { return `running; at 5m succeeded` }
	for what, script := range map[string]func(n int) string{
		"one is too many calls": func(n int) string {
			if n == 3 {
				return `running; at 30s 429 "slow down" retry-after 20s once; at 31s running; at 5m succeeded`
			}
			return running(n)
		},
		"one is broken": func(n int) string {
			if n == 3 {
				return `running; at 30s broken html x2; at 31s running; at 5m succeeded`
			}
			return running(n)
		},
		"one hangs": func(n int) string {
			if n == 3 {
				return `running; at 30s hang once; at 31s running; at 5m succeeded`
			}
			return running(n)
		},
		"one is not known for a while": func(n int) string {
			if n == 3 {
				return `404; at 50s running; at 5m succeeded`
			}
			return running(n)
		},
	} {
		t.Run(what, func(t *testing.T) {
			for _, name := range listing(t) {
				c := newCrowd(t, name, jobs, false, script)
				c.Clock.Advance(20 * time.Minute)
				for _, job := range c.jobs {
					o, ok := c.seen.Outcome(job.Key())
					require.True(t, ok, "%s: %s", name, job.ID)
					require.Equal(t, jobpoll.ReasonSucceeded, o.Reason, "%s: %+v", name, o)
				}
				require.Positive(t, c.server.Stats().Lists, name)
			}
		})
	}
}

// A list shows only what is young; a job beyond it is not lost.
func TestAJobThatTheListShowsNoMoreIsLookedAtByItself(t *testing.T) {
	for _, name := range listing(t) {
		c := newCrowd(t, name, 20, false, func(int) string { return `running; at 10m succeeded` }, func(cfg *loopback.Config) {
			cfg.Wire = forgetful{Wire: cfg.Wire, gone: cfg.Wire.ID(4)}
		})
		c.Clock.Advance(11 * time.Minute)
		for _, job := range c.jobs {
			o, ok := c.seen.Outcome(job.Key())
			require.True(t, ok, "%s: %s", name, job.ID)
			require.Equal(t, jobpoll.ReasonSucceeded, o.Reason, "%s: %+v", name, o)
		}
	}
}

// forgetful is a wire whose lists of several leave one job out.
type forgetful struct {
	loopback.Wire
	gone string
}

func (w forgetful) Write(r loopback.Reply) loopback.Answer {
	if r.Op == loopback.OpList && len(r.Only) > 1 {
		var page []loopback.View
		for _, v := range r.Page {
			if v.ID != w.gone {
				page = append(page, v)
			}
		}
		r.Page = page
	}
	return w.Wire.Write(r)
}

// A job that nobody knows is lost after the grace, and holds up nobody.
func TestAJobThatNoListAndNoLookKnowsIsLost(t *testing.T) {
	for _, name := range listing(t) {
		c := newCrowd(t, name, 20, false, func(n int) string {
			if n == 3 {
				return "" // the provider has never heard of it
			}
			return `running; at 5m succeeded`
		})
		c.Clock.Advance(6 * time.Minute)
		for i, job := range c.jobs {
			o, ok := c.seen.Outcome(job.Key())
			require.True(t, ok, "%s: %s", name, job.ID)
			want := jobpoll.ReasonSucceeded
			if i == 3 {
				want = jobpoll.ReasonLost
			}
			require.Equal(t, want, o.Reason, "%s: %+v", name, o)
		}
	}
}

func TestTooManyJobsForAListAreRefused(t *testing.T) {
	for _, name := range listing(t) {
		a := newAdapterFor(t, name, Config{BaseURL: "http://127.0.0.1:1", Credentials: Secret(kitKey)}).(jobpoll.BatchChecker)
		jobs := make([]jobpoll.Job, a.MaxBatch()+1)
		_, err := a.CheckBatch(t.Context(), jobs)
		require.Equal(t, jobpoll.ErrorInvalid, kindOf(err), "%v", err)
		require.ErrorContains(t, err, fmt.Sprint(a.MaxBatch()))
		all, err := a.CheckBatch(t.Context(), nil)
		require.NoError(t, err, "nothing is asked for, and nobody is")
		require.Empty(t, all)
	}
}

// BenchmarkList is a list of 50 beside the struct of its parts.
func BenchmarkList(b *testing.B) {
	body := []byte(`{"items":[`)
	var jobs []string
	for i := range mostListed {
		if i > 0 {
			body = append(body, ',')
		}
		id := fmt.Sprintf("cgt-%02d", i)
		jobs = append(jobs, id)
		body = append(body, fmt.Sprintf(`{"id":%q,"status":"succeeded","content":{"video_url":"https://tos.example.test/a.mp4"},"updated_at":1767323145}`, id)...)
	}
	body = append(body, `]}`...)
	b.Run("results", func(b *testing.B) {
		for b.Loop() {
			var list struct{ Items jobList }
			require.NoError(b, json.Unmarshal(body, &list))
			require.Len(b, list.Items.results(&Answer{Status: 200, Body: body}, jobs, func() receipt { return &arkTask{} }), mostListed)
		}
	})
	b.Run("bare", func(b *testing.B) {
		for b.Loop() {
			var list struct{ Items []arkTask }
			require.NoError(b, json.Unmarshal(body, &list))
		}
	})
}

// A list of very many parts, which no list that was asked for a page has, costs about
// what its text does.
func TestAListWithoutEndIsReadUpToABound(t *testing.T) {
	for name, around := range map[string][2]string{
		"ark": {`{"items":[`, `]}`}, "minimax2": {`{"items":[`, `]}`}, "kling3": {`{"code":0,"data":[`, `]}`},
	} {
		require.Contains(t, listing(t), name)
		body := around[0] + `{"id":"a","status":"running"},` + strings.Repeat(`1,`, 200_000) + `{"id":"b","status":"running"}` + around[1]
		a := cannedAdapter(t, name, &canned{http.StatusOK, http.Header{"Content-Type": {"application/json"}}, []byte(body)}).(jobpoll.BatchChecker)
		var all map[string]jobpoll.Result
		var err error
		allocs := testing.AllocsPerRun(1, func() {
			all, err = a.CheckBatch(t.Context(), []jobpoll.Job{{ID: "a"}, {ID: "b"}})
		})
		require.NoError(t, err, name)
		require.Contains(t, all, "a", name)
		require.NotContains(t, all, "b", "%s: a look of its own tells of it", name)
		require.Less(t, allocs, 20_000.0, name)
	}
}

// An error beside an empty list tells of no job that it is gone.
func TestAnErrorBesideAnEmptyListIsOneOfTheCall(t *testing.T) {
	for name, want := range map[string]struct {
		body string
		kind jobpoll.ErrorKind
	}{
		"ark":      {`{"items":[],"error":{"code":"InternalServiceError","message":"try again"}}`, jobpoll.ErrorTransient},
		"minimax2": {`{"items":[],"error":{"message":"slow down","http_code":"429"}}`, jobpoll.ErrorRateLimited},
		"kling3":   {`{"code":1302,"message":"slow down","data":[]}`, jobpoll.ErrorRateLimited},
	} {
		a := cannedAdapter(t, name, &canned{http.StatusOK, http.Header{"Content-Type": {"application/json"}}, []byte(want.body)}).(jobpoll.BatchChecker)
		_, err := a.CheckBatch(t.Context(), []jobpoll.Job{{ID: "a"}, {ID: "b"}})
		require.Error(t, err, name)
		require.Equal(t, want.kind, kindOf(err), "%s: %v", name, err)
	}
}
