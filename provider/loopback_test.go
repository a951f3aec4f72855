package provider

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// wired is a provider on loopback that an adapter is tried against.
type wired struct {
	wire     loopback.Wire
	base     string // after the server's URL
	order    Order
	noFilter bool // it cannot tell that a job was filtered
	noQueue  bool // it cannot tell that a job waits
	hides    bool // it tells nothing of a failure
	forgets  bool // a job that was canceled is not known
	expired  jobpoll.Reason
}

// wiredProviders are those of all adapters, by their names.
func wiredProviders() map[string]wired {
	model := Order{Model: "own/model", Input: map[string]any{"prompt": "a"}}
	at := func(path string) Order { return Order{Path: path, Input: map[string]any{"prompt": "a"}} }
	picture := Order{Model: "video", Input: Form{Files: []File{{Field: "image", Name: "a.png", Content: []byte("an image")}}}}
	vertex := "projects/p/locations/l/publishers/google/models/veo-x"
	return map[string]wired{
		"fal":        {wire: loopback.Fal(), order: model, expired: jobpoll.ReasonFailed},
		"replicate":  {wire: loopback.Replicate(), order: model, noFilter: true, expired: jobpoll.ReasonExpired},
		"atlas":      {wire: loopback.Atlas(), order: model, expired: jobpoll.ReasonExpired},
		"runway":     {wire: loopback.Runway(), order: model, forgets: true, expired: jobpoll.ReasonCanceled},
		"luma":       {wire: loopback.Luma(), order: model, expired: jobpoll.ReasonFailed},
		"openai":     {wire: loopback.OpenAI(), order: model, expired: jobpoll.ReasonFailed},
		"kling":      {wire: loopback.Kling(), order: model, expired: jobpoll.ReasonFailed},
		"kling3":     {wire: loopback.Kling(), order: at("/text-to-video/kling-3.0"), expired: jobpoll.ReasonFailed},
		"minimax":    {wire: loopback.MiniMax(), order: model, expired: jobpoll.ReasonFailed},
		"minimax2":   {wire: loopback.MiniMaxV2(), order: model, expired: jobpoll.ReasonExpired},
		"veo":        {wire: loopback.Veo(), base: "/v1beta", order: Order{Model: "veo-x"}, noQueue: true, expired: jobpoll.ReasonExpired},
		"vertex":     {wire: loopback.VertexVeo(), base: "/v1", order: Order{Model: vertex}, noQueue: true, expired: jobpoll.ReasonExpired},
		"google-lro": {wire: loopback.GoogleLRO(), base: "/v1", order: at("/projects/p/videos:generate"), noQueue: true, noFilter: true, expired: jobpoll.ReasonExpired},
		"dashscope":  {wire: loopback.DashScope(), order: model, expired: jobpoll.ReasonLost},
		"ark":        {wire: loopback.Ark(), order: model, expired: jobpoll.ReasonExpired},
		"wavespeed":  {wire: loopback.WaveSpeed(), order: model, expired: jobpoll.ReasonExpired},
		"xai":        {wire: loopback.XAI(), order: model, noQueue: true, expired: jobpoll.ReasonExpired},
		"stability":  {wire: loopback.Stability(), order: picture, hides: true, noQueue: true, expired: jobpoll.ReasonLost},
		"azure-lro":  {wire: loopback.AzureLRO(), order: at("/videos:generate?api-version=2026-01-01"), expired: jobpoll.ReasonFailed},
	}
}

// wireRig is a Poller with one job at a provider on loopback.
type wireRig struct {
	t       *testing.T
	clock   *polltest.Clock
	server  *loopback.Server
	adapter adapter
	harness *polltest.Harness
	seen    polltest.Recorder
	job     jobpoll.Job
}

// newWireRig submits a job and watches it. change may change the server.
func newWireRig(t *testing.T, name, script string, change ...func(*loopback.Config)) *wireRig {
	t.Helper()
	p := wiredProviders()[name]
	g := &wireRig{t: t, clock: polltest.NewClock(time.Time{})}
	cfg := loopback.Config{
		Wire: p.wire, Clock: g.clock, Credential: kitKey, Script: func(int, json.RawMessage) string { return script },
	}
	for _, f := range change {
		f(&cfg)
	}
	g.server = loopback.Start(cfg)
	t.Cleanup(g.server.Close)
	g.adapter = newAdapterFor(t, name, Config{BaseURL: g.server.URL() + p.base, Credentials: Secret(kitKey), Clock: g.clock})
	g.harness = polltest.Start(t, jobpoll.Config{
		Clock: g.clock, Callbacks: g.seen.Callbacks(), Routes: []jobpoll.Route{{Name: name, Checker: g.adapter}},
	})
	var err error
	g.job, _, err = g.adapter.Submit(t.Context(), p.order)
	require.NoError(t, err)
	g.job.Route = name
	require.NoError(t, g.harness.Watch(t.Context(), g.job))
	return g
}

// end is how the job ended, at the latest after so long.
func (g *wireRig) end(within time.Duration) jobpoll.Outcome {
	g.t.Helper()
	g.harness.Clock.Advance(within)
	o, ok := g.seen.Outcome(g.job.Key())
	require.True(g.t, ok, "it goes on: %+v", g.seen.Updates(g.job.Key()))
	return o
}

// eachWired runs f for each provider.
func eachWired(t *testing.T, f func(t *testing.T, name string, p wired)) {
	all := wiredProviders()
	for _, name := range slices.Sorted(maps.Keys(all)) {
		t.Run(name, func(t *testing.T) { f(t, name, all[name]) })
	}
}

func TestEachAdapterHasALoopbackProvider(t *testing.T) {
	for _, name := range everyAdapter() {
		require.Contains(t, wiredProviders(), name)
	}
}

func TestAJobRunsToItsOutputAtEachProvider(t *testing.T) {
	eachWired(t, func(t *testing.T, name string, p wired) {
		g := newWireRig(t, name, `queued; at 20s running 40%; at 60s succeeded`)
		o := g.end(5 * time.Minute)
		require.Equal(t, jobpoll.ReasonSucceeded, o.Reason, "%+v", o)
		require.True(t, HasOutput(o.Report.Output), "%s", o.Report.Output)
		var states []jobpoll.State
		for _, u := range g.seen.Updates(g.job.Key()) {
			states = append(states, u.State)
		}
		require.Contains(t, states, jobpoll.StateRunning)
		if !p.noQueue {
			require.Contains(t, append(states, g.firstState()), jobpoll.StateQueued)
		}
		require.Zero(t, g.server.Stats().Unknown)
	})
}

// firstState is what a look tells of a job just submitted.
func (g *wireRig) firstState() jobpoll.State {
	again := newWireRig(g.t, g.job.Route, `queued`)
	r, err := again.adapter.Check(g.t.Context(), again.job)
	require.NoError(g.t, err)
	return r.State
}

func TestAFailureIsToldAtEachProvider(t *testing.T) {
	for _, kind := range []jobpoll.FailureKind{jobpoll.FailureFault, jobpoll.FailureFiltered} {
		eachWired(t, func(t *testing.T, name string, p wired) {
			g := newWireRig(t, name, fmt.Sprintf(`running; at 20s failed %s "the camera broke"`, map[jobpoll.FailureKind]string{
				jobpoll.FailureFault: "fault", jobpoll.FailureFiltered: "filtered",
			}[kind]))
			o := g.end(5 * time.Minute)
			require.Equal(t, jobpoll.ReasonFailed, o.Reason, "%+v", o)
			require.Nil(t, o.Report.Output)
			require.NotNil(t, o.Report.Failure)
			if kind == jobpoll.FailureFiltered && !p.noFilter {
				require.Equal(t, jobpoll.FailureFiltered, o.Report.Failure.Kind, "%+v", o.Report.Failure)
			}
			if kind == jobpoll.FailureFault && !p.hides {
				require.Contains(t, o.Report.Failure.Message, "the camera broke")
				require.NotEqual(t, jobpoll.FailureFiltered, o.Report.Failure.Kind)
			}
		})
	}
}

func TestAJobIsCanceledWhereAProviderCan(t *testing.T) {
	eachWired(t, func(t *testing.T, name string, p wired) {
		g := newWireRig(t, name, `queued`)
		canceler, ok := g.adapter.(jobpoll.Canceler)
		if !ok {
			return
		}
		require.NoError(t, canceler.Cancel(context.Background(), g.job))
		require.Len(t, g.server.Cancels(g.server.Requests()[0].ID), 1)
		if p.forgets {
			require.Empty(t, g.server.Jobs())
			return
		}
		require.Equal(t, jobpoll.ReasonCanceled, g.end(time.Hour).Reason)
	})
}

// Whether a job waits is what a look tells, not what its script says later.
func TestAJobThatIsToldToWaitCanBeCanceled(t *testing.T) {
	eachWired(t, func(t *testing.T, name string, p wired) {
		for _, script := range []string{`queued; at 60s succeeded`, `queued; at 60s failed`, `queued; at 30s running; at 60s succeeded`} {
			g := newWireRig(t, name, script)
			if canceler, ok := g.adapter.(jobpoll.Canceler); ok {
				require.NoError(t, canceler.Cancel(context.Background(), g.job), script)
			}
		}
	})
}

// A job that is gone after its cancellation was canceled.
func TestACanceledJobIsToldAsSuch(t *testing.T) {
	eachWired(t, func(t *testing.T, name string, p wired) {
		g := newWireRig(t, name, `queued; at 60s succeeded`)
		if _, ok := g.adapter.(jobpoll.Canceler); !ok {
			return
		}
		require.NoError(t, g.harness.Cancel(t.Context(), g.job.Key(), nil))
		require.Equal(t, jobpoll.ReasonCanceled, g.end(30*time.Second).Reason)
	})
}

// A cancel that comes too late loses nothing that was paid for.
func TestACancelOfWhatHasEndedLeavesItsResult(t *testing.T) {
	eachWired(t, func(t *testing.T, name string, p wired) {
		g := newWireRig(t, name, `queued; at 20s succeeded`)
		canceler, ok := g.adapter.(jobpoll.Canceler)
		if !ok {
			return
		}
		g.clock.Advance(time.Minute)
		if err := canceler.Cancel(context.Background(), g.job); err != nil {
			var ce *jobpoll.CheckError
			require.ErrorAs(t, err, &ce)
		}
		rep, err := g.adapter.Check(t.Context(), g.job)
		require.NoError(t, err)
		require.Equal(t, jobpoll.StateSucceeded, rep.State)
	})
}

func TestAJobThatAProviderLetExpireHasEnded(t *testing.T) {
	eachWired(t, func(t *testing.T, name string, p wired) {
		g := newWireRig(t, name, `running; at 20s expired`)
		require.Equal(t, p.expired, g.end(24*time.Hour).Reason)
	})
}

func TestAYoungJobThatIsNotKnownYetIsFound(t *testing.T) {
	eachWired(t, func(t *testing.T, name string, _ wired) {
		g := newWireRig(t, name, `running; at 60s succeeded`, func(c *loopback.Config) { c.NotVisible = 12 * time.Second })
		o := g.end(10 * time.Minute)
		require.Equal(t, jobpoll.ReasonSucceeded, o.Reason, "%+v", o)
		require.Positive(t, g.server.Stats().NotVisible)
	})
}

func TestTooManyCallsAreWaitedOutAtEachProvider(t *testing.T) {
	for _, form := range []loopback.RetryForm{loopback.RetrySeconds, loopback.RetryNone} {
		eachWired(t, func(t *testing.T, name string, _ wired) {
			g := newWireRig(t, name, `running; at 5s 429 "slow down" retry-after 20s once; at 60s succeeded`, func(c *loopback.Config) { c.Retry = form })
			o := g.end(15 * time.Minute)
			require.Equal(t, jobpoll.ReasonSucceeded, o.Reason, "%+v", o)
			require.Positive(t, g.server.Stats().Faults)
		})
	}
}

func TestAWrongKeyIsToldAtEachProvider(t *testing.T) {
	eachWired(t, func(t *testing.T, name string, _ wired) {
		g := newWireRig(t, name, `running`)
		g.server.SetCredential("another")
		_, err := g.adapter.Check(t.Context(), g.job)
		require.Equal(t, jobpoll.ErrorAuth, kindOf(err), "%v", err)
		require.Positive(t, g.server.Stats().Unauthorized)
	})
}

func TestAFullAccountIsNotAFailureOfTheOrder(t *testing.T) {
	eachWired(t, func(t *testing.T, name string, p wired) {
		g := newWireRig(t, name, `running`, func(c *loopback.Config) { c.MaxJobs = 1 })
		_, _, err := g.adapter.Submit(t.Context(), p.order)
		if g.server.Stats().TooManyJobs == 0 {
			require.NoError(t, err) // it waits at the provider
			return
		}
		require.Contains(t, []jobpoll.ErrorKind{jobpoll.ErrorRateLimited, jobpoll.ErrorConcurrency}, kindOf(err), "%v", err)
		require.NotErrorIs(t, err, ErrAmbiguous)
	})
}
