package webhook_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
	"github.com/jobpoll/jobpoll/polltest/sign"
	"github.com/jobpoll/jobpoll/provider"
	"github.com/jobpoll/jobpoll/webhook"
)

const hookDone = `{"id":"rp-1","status":"succeeded","output":"https://files.example/a.mp4"}`

// hookRig is a Handler on a loopback server.
type hookRig struct {
	t       testing.TB
	clock   *polltest.Clock
	notices *hookNotices
	handler *webhook.Handler
	server  *httptest.Server
	log     *lockedBuffer

	mu     sync.Mutex
	events []webhook.Event
}

type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *lockedBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// replicateRoute is one that believes what Replicate signs.
func replicateRoute(t testing.TB, clock jobpoll.Clock) webhook.Route {
	v, err := webhook.NewStandard(webhook.StandardConfig{Secrets: []string{hookSecret}, Clock: clock})
	require.NoError(t, err)
	return webhook.Route{Name: "replicate", Path: "/hook", Verifier: v, Parse: provider.ReplicateNotice, Trust: jobpoll.TrustAuthoritative}
}

func newHookRig(t testing.TB, change func(*webhook.Config)) *hookRig {
	rig := &hookRig{t: t, clock: newHookClock(), notices: &hookNotices{}, log: &lockedBuffer{}}
	cfg := webhook.Config{
		Notifier: rig.notices, Clock: rig.clock, Routes: []webhook.Route{replicateRoute(t, rig.clock)},
		Logger: slog.New(slog.NewTextHandler(rig.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Hook: func(e webhook.Event) {
			rig.mu.Lock()
			defer rig.mu.Unlock()
			rig.events = append(rig.events, e)
		},
	}
	if change != nil {
		change(&cfg)
	}
	h, err := webhook.New(cfg)
	require.NoError(t, err)
	rig.handler = h
	rig.server = httptest.NewServer(h)
	t.Cleanup(rig.server.Close)
	return rig
}

// signed makes a delivery to /hook; no event has the same id as another.
func (r *hookRig) signed(body string, s sign.Signer) *http.Request {
	req, err := sign.Request(r.server.URL+"/hook", []byte(body), s, r.clock.Now())
	require.NoError(r.t, err)
	return req
}

var hookStandard = sign.Standard{ID: "msg_1", Secrets: []string{hookSecret}}

func (r *hookRig) post(body string) *http.Request { return r.signed(body, hookStandard) }

type hookAnswer struct {
	status int
	header http.Header
	body   string
}

func (r *hookRig) do(req *http.Request) hookAnswer {
	resp, err := r.server.Client().Do(req)
	require.NoError(r.t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	require.NoError(r.t, err)
	resp.Header.Del("Date")
	return hookAnswer{resp.StatusCode, resp.Header, string(body)}
}

// last is the newest event; the Hook is told after the answer.
func (r *hookRig) last(n int) webhook.Event {
	var e webhook.Event
	require.Eventually(r.t, func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.events) < n {
			return false
		}
		e = r.events[n-1]
		return true
	}, 10*time.Second, time.Millisecond)
	return e
}

func TestASignedDeliveryIsHandedOverAsANotice(t *testing.T) {
	rig := newHookRig(t, nil)
	require.Equal(t, 200, rig.do(rig.post(hookDone)).status)
	n := rig.notices.got()
	require.Len(t, n, 1)
	require.Equal(t, jobpoll.Key{Route: "replicate", ID: "rp-1"}, n[0].Key)
	require.Equal(t, "msg_1", n[0].EventID)
	require.Equal(t, jobpoll.TrustAuthoritative, n[0].Trust)
	require.Equal(t, jobpoll.StateSucceeded, n[0].Report.State)
	e := rig.last(1)
	require.Equal(t, webhook.ResultTaken, e.Result)
	require.Equal(t, n[0].Key, e.Key)
	require.Equal(t, len(hookDone), e.Bytes)
	require.EqualValues(t, 1, rig.handler.Count("replicate", webhook.ResultTaken))
	require.Zero(t, rig.handler.Count("fal", webhook.ResultTaken))
}

// What is refused gets one answer, whatever is wrong.
func TestARefusalDoesNotSayWhy(t *testing.T) {
	rig := newHookRig(t, nil)
	spoil := func(change func(*http.Request)) *http.Request {
		r := rig.post(hookDone)
		change(r)
		return r
	}
	old, err := sign.Request(rig.server.URL+"/hook", []byte(hookDone), hookStandard, hookStart.Add(-time.Hour))
	require.NoError(t, err)
	cases := map[string]struct {
		r    *http.Request
		want error
	}{
		"no header":   {spoil(func(r *http.Request) { r.Header = http.Header{} }), webhook.ErrNoSignature},
		"another key": {rig.signed(hookDone, sign.Standard{ID: "m", Secrets: []string{hookOldSecret}}), webhook.ErrSignature},
		"another id":  {spoil(func(r *http.Request) { r.Header.Set("webhook-id", "msg_2") }), webhook.ErrSignature},
		"no scheme":   {spoil(func(r *http.Request) { r.Header.Set("webhook-signature", "v9,x") }), webhook.ErrNoScheme},
		"no stamp":    {spoil(func(r *http.Request) { r.Header.Set("webhook-timestamp", "x") }), webhook.ErrMalformed},
		"too old":     {old, webhook.ErrTimestamp},
	}
	n := 0
	for name, c := range cases {
		n++
		got := rig.do(c.r)
		require.Equal(t, 401, got.status, name)
		require.Empty(t, got.body, name)
		require.Equal(t, http.Header{"Content-Length": {"0"}}, got.header, name)
		e := rig.last(n)
		require.Equal(t, webhook.ResultRefused, e.Result)
		require.ErrorIs(t, e.Err, c.want, name)
	}
	require.EqualValues(t, len(cases), rig.handler.Count("replicate", webhook.ResultRefused))
	require.Empty(t, rig.notices.got())
}

func TestWhatIsNoPOSTIsAnsweredWithoutALook(t *testing.T) {
	rig := newHookRig(t, nil)
	for method, want := range map[string]int{"GET": 200, "HEAD": 200, "PUT": 405, "DELETE": 405, "OPTIONS": 405, "PATCH": 405} {
		req, err := http.NewRequest(method, rig.server.URL+"/hook", nil)
		require.NoError(t, err)
		got := rig.do(req)
		require.Equal(t, want, got.status, method)
		if want == 405 {
			require.Equal(t, "GET, HEAD, POST", got.header.Get("Allow"))
		}
	}
	req := rig.post(hookDone)
	req.URL.Path = "/elsewhere"
	require.Equal(t, 404, rig.do(req).status)
	require.Empty(t, rig.notices.got())
}

func TestWhatWasNotTakenOverIsAskedForAgain(t *testing.T) {
	for _, err := range []error{
		jobpoll.ErrNotTaken, fmt.Errorf("jobpoll: replicate/rp-1: %w", jobpoll.ErrNotTaken), jobpoll.ErrUnknownRoute, jobpoll.ErrShutdown,
		context.DeadlineExceeded, errors.New("anything"),
	} {
		rig := newHookRig(t, nil)
		rig.notices.err = err
		require.Equal(t, 503, rig.do(rig.post(hookDone)).status, err)
		e := rig.last(1)
		require.Equal(t, webhook.ResultNotTaken, e.Result)
		require.ErrorIs(t, e.Err, err)
	}
}

func TestKeysThatCannotBeHadAreNoRefusal(t *testing.T) {
	keys := newHookKeys(t)
	keys.serve(http.HandlerFunc(down))
	rig := newHookRig(t, func(c *webhook.Config) {
		v, err := webhook.NewFal(webhook.KeysConfig{Keys: keys.set(t, webhook.KeySetConfig{Clock: c.Clock}), Clock: c.Clock})
		require.NoError(t, err)
		c.Routes[0].Verifier = v
	})
	require.Equal(t, 503, rig.do(rig.signed(hookDone, sign.Fal{Key: hookKey(1), RequestID: "r", UserID: "u"})).status)
	require.Equal(t, webhook.ResultUnavailable, rig.last(1).Result)
}

// tokenRoute is for a provider that signs nothing.
func tokenRoute(t testing.TB) webhook.Route {
	v, err := webhook.NewToken(webhook.TokenConfig{Path: "token", Tokens: []string{"token-0123456789ab"}})
	require.NoError(t, err)
	return webhook.Route{Name: "minimax", Path: "/minimax/{token}", Verifier: v, Challenge: webhook.EchoChallenge, Parse: provider.ReplicateNotice, ClientKey: "job"}
}

func TestAChallengeIsAnsweredAsItWas(t *testing.T) {
	rig := newHookRig(t, func(c *webhook.Config) { c.Routes = append(c.Routes, tokenRoute(t)) })
	post := func(token, body string) hookAnswer {
		req, err := http.NewRequest(http.MethodPost, rig.server.URL+"/minimax/"+token, strings.NewReader(body))
		require.NoError(t, err)
		return rig.do(req)
	}
	for body, want := range map[string]string{
		`{"challenge":"abc-123"}`:           `{"challenge":"abc-123"}`,
		`{ "challenge" : 17, "more": "x" }`: `{"challenge":17}`,
		`{"challenge":"<script>\u2028\""}`:  `{"challenge":"\u003cscript\u003e\u2028\""}`,
	} {
		got := post("token-0123456789ab", body)
		require.Equal(t, 200, got.status)
		require.JSONEq(t, want, got.body)
		require.NotContains(t, got.body, "<")
		require.Equal(t, "application/json", got.header.Get("Content-Type"))
	}
	require.EqualValues(t, 3, rig.handler.Count("minimax", webhook.ResultChallenged))
	for _, body := range []string{`{"challenge":""}`, `{"challenge":null}`, `{"challenge":{}}`, `{"challenge":["x"]}`, `{"challenge":"` + strings.Repeat("x", 2000) + `"}`, `{"a":1}`} {
		require.Empty(t, post("token-0123456789ab", body).body)
	}
	got := post("token-0123456789ac", `{"challenge":"abc"}`)
	require.Equal(t, 401, got.status)
	require.Empty(t, got.body)
}

func TestHowFarANoticeIsBelieved(t *testing.T) {
	for name, c := range map[string]struct {
		route, parsed jobpoll.Trust
		proof         webhook.Proof
		want          jobpoll.Trust
	}{
		"all agree":          {jobpoll.TrustAuthoritative, jobpoll.TrustAuthoritative, webhook.Proof{Body: true}, jobpoll.TrustAuthoritative},
		"the route does not": {jobpoll.TrustHint, jobpoll.TrustAuthoritative, webhook.Proof{Body: true}, jobpoll.TrustHint},
		"thin":               {jobpoll.TrustAuthoritative, jobpoll.TrustHint, webhook.Proof{Body: true}, jobpoll.TrustHint},
		"only an id signed":  {jobpoll.TrustAuthoritative, jobpoll.TrustAuthoritative, webhook.Proof{EventID: "e"}, jobpoll.TrustHint},
	} {
		rig := newHookRig(t, func(cfg *webhook.Config) {
			cfg.Routes[0].Trust = c.route
			cfg.Routes[0].Verifier = webhook.VerifierFunc(func(*http.Request, []byte) (webhook.Proof, error) { return c.proof, nil })
			cfg.Routes[0].Parse = func([]byte, http.Header) (jobpoll.Notice, error) {
				return jobpoll.Notice{Key: jobpoll.Key{Route: "forged", ID: "x"}, Trust: c.parsed}, nil
			}
		})
		require.Equal(t, 200, rig.do(rig.post("{}")).status)
		require.Equal(t, c.want, rig.notices.got()[0].Trust, name)
		require.Equal(t, jobpoll.Key{Route: "replicate", ID: "x"}, rig.notices.got()[0].Key)
	}
}

func TestTheClientKeyOfTheURLIsFilledIn(t *testing.T) {
	rig := newHookRig(t, func(c *webhook.Config) {
		c.Routes[0].ClientKey = "job"
		c.Routes = append(c.Routes, tokenRoute(t))
	})
	withQuery := func(path, body string) *http.Request {
		req := rig.post(body)
		req.URL.Path, req.URL.RawQuery = path, "job=order-7"
		return req
	}
	rig.do(withQuery("/hook", hookDone))
	rig.do(withQuery("/hook", `{"status":"succeeded","output":"u"}`))
	rig.do(withQuery("/minimax/token-0123456789ab", hookDone))
	n := rig.notices.got()
	require.Len(t, n, 3)
	require.Equal(t, []string{"order-7", "order-7", "order-7"}, []string{n[0].ClientKey, n[1].ClientKey, n[2].ClientKey})
	require.Equal(t, jobpoll.TrustAuthoritative, n[0].Trust, "the body names the job, and is signed")
	require.Equal(t, jobpoll.TrustHint, n[1].Trust, "the URL alone names it")
	require.Equal(t, jobpoll.TrustHint, n[2].Trust)
}

func TestASenderThatHangsUpDoesNotEndTheHandingOver(t *testing.T) {
	rig := newHookRig(t, nil)
	type ctxKey struct{}
	reached, gone := make(chan context.Context), make(chan struct{})
	rig.notices.do = func(ctx context.Context, _ jobpoll.Notice) error {
		reached <- ctx
		<-gone
		return ctx.Err()
	}
	ctx, cancel := context.WithCancel(context.WithValue(t.Context(), ctxKey{}, "trace"))
	r := rig.post(hookDone).WithContext(ctx)
	w := httptest.NewRecorder()
	done := make(chan struct{})
	go func() { rig.handler.ServeHTTP(w, r); close(done) }()
	inner := <-reached
	require.Equal(t, "trace", inner.Value(ctxKey{}))
	cancel()
	close(gone)
	<-done
	require.Equal(t, 200, w.Code)
}

func TestNotifyHasATimeLimitOnTheClock(t *testing.T) {
	rig := newHookRig(t, nil)
	reached := make(chan struct{})
	rig.notices.do = func(ctx context.Context, _ jobpoll.Notice) error {
		close(reached)
		<-ctx.Done()
		return context.Cause(ctx)
	}
	status := make(chan int)
	go func() { status <- rig.do(rig.post(hookDone)).status }()
	<-reached
	rig.clock.Advance(4 * time.Second)
	require.Equal(t, 503, <-status)
	require.ErrorIs(t, rig.last(1).Err, context.DeadlineExceeded)
}

func TestPanicsAreContained(t *testing.T) {
	for name, change := range map[string]func(*webhook.Config){
		"verifier": func(c *webhook.Config) {
			c.Routes[0].Verifier = webhook.VerifierFunc(func(*http.Request, []byte) (webhook.Proof, error) { panic("oh") })
		},
		"parser": func(c *webhook.Config) {
			c.Routes[0].Parse = func([]byte, http.Header) (jobpoll.Notice, error) { panic("oh") }
		},
		"challenge": func(c *webhook.Config) { c.Routes[0].Challenge = func([]byte) ([]byte, bool) { panic("oh") } },
	} {
		rig := newHookRig(t, change)
		require.Equal(t, 500, rig.do(rig.post(hookDone)).status, name)
		require.Equal(t, webhook.ResultPanicked, rig.last(1).Result)
	}
	rig := newHookRig(t, func(c *webhook.Config) { c.Hook = func(webhook.Event) { panic("oh") } })
	require.Equal(t, 200, rig.do(rig.post(hookDone)).status)
	require.Equal(t, 200, rig.do(rig.post(hookDone)).status)
	require.Len(t, rig.notices.got(), 2)
}

func TestAHookThatTakesItsTimeDoesNotKeepTheSenderWaiting(t *testing.T) {
	hold := make(chan struct{})
	rig := newHookRig(t, func(c *webhook.Config) { c.Hook = func(webhook.Event) { <-hold } })
	t.Cleanup(func() { close(hold) })
	require.Equal(t, 200, rig.do(rig.post(hookDone)).status) // would not return
}

// Answers that a sender has while their handlers still go on.
func TestWhatWasAnsweredIsNotInHandAnyMore(t *testing.T) {
	hold := make(chan struct{})
	rig := newHookRig(t, func(c *webhook.Config) {
		c.MaxBody, c.MaxHeld = 1000, 1500
		c.Hook = func(webhook.Event) { <-hold }
	})
	t.Cleanup(func() { close(hold) })
	status := func(body string) int {
		r := rig.post(body)
		r.Close = true // what comes over the same connection waits for the handler
		return rig.do(r).status
	}
	broken := strings.Repeat(" ", 900)
	for range 5 {
		require.Equal(t, 200, status(hookDone+strings.Repeat(" ", 900-len(hookDone))))
		require.Equal(t, 400, status(broken))
		require.Equal(t, 413, status(broken+broken))
	}
}

func TestNoSecretAndNoSignatureReachesALogOrAnError(t *testing.T) {
	rig := newHookRig(t, func(c *webhook.Config) { c.Routes = append(c.Routes, tokenRoute(t)) })
	const forged = "v1,Zm9yZ2VkZm9yZ2VkZm9yZ2VkZm9yZ2VkZm9yZ2VkZm8="
	secrets := []string{hookSecret, hookSecret[6:], forged, forged[3:], "token-0123456789ab", "token-wrong-0123456"}
	var requests []*http.Request
	for _, change := range []func(*http.Request){
		func(*http.Request) {},
		func(r *http.Request) { r.Header.Set("webhook-signature", forged) },
		func(r *http.Request) { r.Header["Webhook-Signature"] = []string{forged, forged} },
		func(r *http.Request) { r.Header.Del("webhook-id") },
		func(r *http.Request) { r.Header.Set("webhook-timestamp", forged) },
		func(r *http.Request) { r.Header.Set("Content-Encoding", forged) },
		func(r *http.Request) { r.URL.Path = "/minimax/token-wrong-0123456" },
		func(r *http.Request) { r.URL.Path = "/minimax/token-0123456789ab" },
	} {
		r := rig.post(hookDone)
		secrets = append(secrets, r.Header.Get("webhook-signature"), strings.TrimPrefix(r.Header.Get("webhook-signature"), "v1,"))
		change(r)
		requests = append(requests, r)
	}
	text := ""
	for i, r := range requests {
		got := rig.do(r)
		e := rig.last(i + 1)
		text += fmt.Sprintf("%v %+v %v\n", got, e, e.Err)
	}
	text += rig.log.String()
	require.Contains(t, text, "refused")
	for _, s := range secrets {
		require.NotContains(t, text, s)
	}
}

func TestWarningsOfAKindComeOnceInTenSeconds(t *testing.T) {
	rig := newHookRig(t, nil)
	bad := sign.Standard{ID: "m", Secrets: []string{hookOldSecret}}
	for range 20 {
		rig.do(rig.signed(hookDone, bad))
	}
	rig.last(20)
	require.Equal(t, 1, strings.Count(rig.log.String(), "level=WARN"))
	rig.clock.Advance(10 * time.Second)
	rig.do(rig.signed(hookDone, bad))
	rig.last(21)
	require.Equal(t, 2, strings.Count(rig.log.String(), "level=WARN"))
	require.Contains(t, rig.log.String(), "more=19")
}

func TestFaultsOfTheConfigurationAreToldAllAtOnce(t *testing.T) {
	good := replicateRoute(t, nil)
	bad := func(change func(*webhook.Route)) webhook.Route {
		rt := good
		change(&rt)
		return rt
	}
	_, err := webhook.New(webhook.Config{
		MaxBody: -1, MaxHeld: -2,
		Routes: []webhook.Route{
			good, good, // the same path
			bad(func(rt *webhook.Route) { rt.Path = "" }),
			bad(func(rt *webhook.Route) { rt.Path = "POST /x" }),
			bad(func(rt *webhook.Route) { rt.Path = "/{" }),
			{Path: "/y"},
			bad(func(rt *webhook.Route) { *rt = tokenRoute(t); rt.Trust = jobpoll.TrustAuthoritative }),
		},
	})
	require.Error(t, err)
	for _, want := range []string{
		"Notifier: it is nil", "MaxBody: -1 is negative", "MaxHeld: -2 is less", "Routes[1].Path", "Routes[2].Path: it is empty", "Routes[3].Path",
		"Routes[4].Path", "Routes[5].Name", "Routes[5].Verifier: there is no key", "Routes[5].Parse", "Routes[6].Trust: a notice cannot be believed",
	} {
		require.ErrorContains(t, err, want)
	}
	for _, l := range strings.Split(err.Error(), "\n") {
		require.True(t, strings.HasPrefix(l, "jobpoll: webhook.Config: "), l)
	}
	_, err = webhook.New(webhook.Config{})
	require.ErrorContains(t, err, "Routes: there is none")
}

func TestResultsAreStoredByName(t *testing.T) {
	for r := webhook.ResultUnknown; r <= webhook.ResultPanicked; r++ {
		b, err := json.Marshal(r)
		require.NoError(t, err)
		var back webhook.Result
		require.NoError(t, json.Unmarshal(b, &back))
		require.Equal(t, r, back)
		require.Equal(t, r >= webhook.ResultRefused || r == webhook.ResultUnknown, r.Status() >= 400)
	}
	var r webhook.Result
	require.NoError(t, json.Unmarshal([]byte(`"of a newer version"`), &r))
	require.Equal(t, webhook.ResultUnknown, r)
	require.Equal(t, "unknown", webhook.Result(200).String())
}
