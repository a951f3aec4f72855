package webhook_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/sign"
	"github.com/jobpoll/jobpoll/webhook"
)

func jsonBody(s string) io.Reader { return strings.NewReader(s) }

// hookPoller is a Handler before a Poller that runs.
func hookPoller(t *testing.T, cfg jobpoll.Config) (*polltest.Harness, *hookRig) {
	cfg.Clock = newHookClock()
	provider := polltest.NewProvider(cfg.Clock.(*polltest.Clock))
	provider.Add("rp-1", `running`)
	cfg.Routes = []jobpoll.Route{{Name: "replicate", Checker: provider}}
	h := polltest.Start(t, cfg)
	rig := newHookRig(t, func(c *webhook.Config) {
		c.Clock, c.Notifier = cfg.Clock, h.Poller
		c.Routes = []webhook.Route{replicateRoute(t, cfg.Clock)}
	})
	rig.clock = h.Clock
	return h, rig
}

func TestTheAnswerDoesNotWaitForACallback(t *testing.T) {
	entered, hold := make(chan struct{}), make(chan struct{})
	var once sync.Once
	h, rig := hookPoller(t, jobpoll.Config{Callbacks: jobpoll.Callbacks{OnStop: func(context.Context, jobpoll.Outcome) error {
		once.Do(func() { close(entered); <-hold })
		return nil
	}}})
	require.NoError(t, h.Watch(t.Context(), jobpoll.Job{Route: "replicate", ID: "rp-1"}))
	require.Equal(t, 200, rig.do(rig.post(hookDone)).status)
	<-entered // it goes on still
	require.Equal(t, 200, rig.do(rig.post(hookDone)).status)
	close(hold)
	h.Clock.Settle()
}

// B58: what was captured is sent again while its time is still good.
func TestADeliveryThatIsSentAgainChangesNothing(t *testing.T) {
	var seen polltest.Recorder
	var kinds []jobpoll.NoticeKind
	h, rig := hookPoller(t, jobpoll.Config{Callbacks: seen.Callbacks(), Hooks: jobpoll.Hooks{
		Noticed: func(e jobpoll.NoticeEvent) { kinds = append(kinds, e.Kind) },
	}})
	require.NoError(t, h.Watch(t.Context(), jobpoll.Job{Route: "replicate", ID: "rp-1"}))
	capture, err := sign.Request(rig.server.URL+"/hook", []byte(hookDone), hookStandard, h.Clock.Now().Add(299*time.Second))
	require.NoError(t, err)
	again := func() int {
		r := capture.Clone(t.Context())
		r.Body = io.NopCloser(strings.NewReader(hookDone))
		return rig.do(r).status
	}
	require.Equal(t, http.StatusOK, again())
	h.Clock.Advance(590 * time.Second)
	require.Equal(t, http.StatusOK, again())
	h.Clock.Settle()
	require.Equal(t, []jobpoll.NoticeKind{jobpoll.NoticeApplied, jobpoll.NoticeDuplicate}, kinds)
	_, ok := seen.Outcome(jobpoll.Key{Route: "replicate", ID: "rp-1"})
	require.True(t, ok)
	h.Clock.Advance(10 * time.Second)
	require.Equal(t, http.StatusUnauthorized, again(), "it is too old now")
}
