package provider

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest"
)

// issuer gives numbered tokens of one life, and keeps what was asked and sent.
type issuer struct {
	mu    sync.Mutex
	life  time.Duration // zero: they never expire
	fault error
	asked []time.Duration // since the start
	sent  []string        // by requests
	clock *polltest.Clock
	start time.Time
}

func newIssuer(life time.Duration) *issuer {
	clock := polltest.NewClock(time.Time{})
	return &issuer{life: life, clock: clock, start: clock.Now()}
}

func (i *issuer) token(_ context.Context, now time.Time) (Token, error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.asked = append(i.asked, i.clock.Monotonic())
	t := Token{Secret: fmt.Sprintf(" token-%04d\n", len(i.asked))}
	if i.life != 0 {
		t.Expiry = now.Add(i.life)
	}
	return t, i.fault
}

// client makes a Client of the source, for a server that says what it was sent.
func (i *issuer) client(t *testing.T, source TokenSource) *Client {
	return kitServer(t, func(w http.ResponseWriter, r *http.Request) {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.sent = append(i.sent, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
		fmt.Fprintf(w, `{"you":%q}`, r.Header.Get("Authorization"))
	}, func(cfg *Config) { cfg.Credentials, cfg.Tokens, cfg.Clock = nil, source, i.clock })
}

func (i *issuer) last() string { return i.sent[len(i.sent)-1] }

// fails sets what the issuer answers from now on.
func (i *issuer) fails(err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.fault = err
}

func TestATokenIsRenewedBeforeItsEnd(t *testing.T) {
	const never = 1 << 20 // seconds
	for _, c := range []struct {
		name    string
		life    time.Duration
		renewed int // seconds after it was asked for
	}{
		{"of half an hour", 30 * time.Minute, 25 * 60},
		{"of an hour", time.Hour, 55 * 60},
		{"of 20 minutes", 20 * time.Minute, 15 * 60},
		{"of a short life", time.Minute, 45},
		{"of a very long life", 1 << 62, never},
		{"without an expiry", 0, never},
	} {
		i := newIssuer(c.life)
		client := i.client(t, i.token)
		get := func(want string) {
			_, err := client.Get(t.Context(), "/", nil)
			require.NoError(t, err)
			require.Equal(t, want, i.last(), c.name)
		}
		get("token-0001")
		i.clock.Advance(time.Duration(c.renewed)*time.Second - time.Nanosecond)
		get("token-0001")
		i.clock.Advance(time.Nanosecond)
		if c.renewed == never {
			i.clock.Advance(24 * time.Hour)
			get("token-0001")
			continue
		}
		get("token-0002")
		i.clock.Advance(time.Duration(c.renewed) * time.Second)
		get("token-0003")
		i.clock.Advance(24 * time.Hour) // after its end
		get("token-0004")
		require.Zero(t, i.clock.Timers(), "a timer is left")
	}
}

// Whoever gives tokens may give the one that it has until shortly before its end.
func TestASourceThatGivesItsTokenAgainIsAskedAFewTimes(t *testing.T) {
	i := newIssuer(0)
	expiry := i.start.Add(time.Hour)
	asked := 0
	client := i.client(t, func(_ context.Context, now time.Time) (Token, error) {
		if asked++; !now.Before(expiry.Add(-10 * time.Second)) {
			expiry = now.Add(time.Hour)
		}
		return Token{Secret: fmt.Sprintf("token-%d", expiry.Unix()), Expiry: expiry}, nil
	})
	first := expiry
	for range 3600 {
		_, err := client.Get(t.Context(), "/", nil)
		require.NoError(t, err)
		i.clock.Advance(time.Second)
	}
	require.Less(t, asked, 8)
	require.True(t, expiry.After(first), "the other is known before the end")
}

func TestARenewalThatFailsKeepsTheTokenUntilItsEnd(t *testing.T) {
	i := newIssuer(time.Hour)
	client := i.client(t, i.token)
	_, err := client.Get(t.Context(), "/", nil)
	require.NoError(t, err)
	i.fails(errors.New("no token for token-0001"))
	for range 3599 {
		i.clock.Advance(time.Second)
		_, err := client.Get(t.Context(), "/", nil)
		require.NoError(t, err)
		require.Equal(t, "token-0001", i.last())
	}
	require.Greater(t, len(i.asked), 5)
	require.Less(t, len(i.asked), 15)
	require.Equal(t, []time.Duration{0, 55 * time.Minute, 57*time.Minute + 30*time.Second}, i.asked[:3], "in half of what is left")

	i.clock.Advance(time.Second)
	requests := len(i.sent)
	_, err = client.Post(t.Context(), Request{URL: "/"}, nil)
	require.Equal(t, jobpoll.ErrorAuth, kindOf(err))
	require.ErrorIs(t, err, jobpoll.ErrNotSent)
	require.ErrorContains(t, err, "no token for …")
	require.Len(t, i.sent, requests, "nothing goes out with a token that has expired")

	i.fails(nil)
	_, err = client.Get(t.Context(), "/", nil)
	require.NoError(t, err)
}

func TestARenewalThatHangsHoldsUpOneCallForHalfOfItsTimeout(t *testing.T) {
	i := newIssuer(time.Hour)
	hangs := make(chan struct{})
	client := i.client(t, func(ctx context.Context, now time.Time) (Token, error) {
		if now.Equal(i.start) {
			return Token{Secret: "token-0001", Expiry: now.Add(time.Hour)}, nil
		}
		close(hangs)
		<-ctx.Done()
		return Token{}, ctx.Err()
	})
	_, err := client.Get(t.Context(), "/", nil)
	require.NoError(t, err)
	i.clock.Advance(56 * time.Minute)
	slow := make(chan error, 1)
	go func() {
		_, err := client.Get(t.Context(), "/", nil)
		slow <- err
	}()
	<-hangs
	_, err = client.Get(t.Context(), "/", nil)
	require.NoError(t, err, "the others go on with the old one")
	require.Len(t, i.sent, 2)
	i.clock.Advance(DefaultTimeout / 2)
	require.NoError(t, <-slow)
	require.Equal(t, "token-0001", i.last())
}

// askedByMany asks a vault from many goroutines while the source is held, and then lets
// that give its answer.
func askedByMany(t *testing.T, fault error) (asked int, secrets, errs map[string]int) {
	secrets, errs = map[string]int{}, map[string]int{}
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		cfg := Config{Clock: jobpoll.SystemClock(), Tokens: func(_ context.Context, now time.Time) (Token, error) {
			asked++
			<-release
			return Token{Secret: fmt.Sprintf("token-%d", asked), Expiry: now.Add(time.Hour)}, fault
		}}
		v := newVault(&cfg)
		var mu sync.Mutex
		for range 50 {
			go func() {
				s, err := v.get(t.Context())
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					errs[err.Error()]++
					return
				}
				secrets[s.text]++
			}()
		}
		synctest.Wait()
		close(release)
		synctest.Wait()
	})
	return asked, secrets, errs
}

func TestManyCallsShareOneAnswer(t *testing.T) {
	asked, secrets, errs := askedByMany(t, nil)
	require.Equal(t, 1, asked)
	require.Equal(t, map[string]int{"token-1": 50}, secrets)
	require.Empty(t, errs)
	asked, secrets, errs = askedByMany(t, errors.New("no"))
	require.Equal(t, 1, asked, "a failure too")
	require.Equal(t, map[string]int{"no": 50}, errs)
	require.Empty(t, secrets)
}

func TestManyCallsRenewATokenOnce(t *testing.T) {
	i := newIssuer(time.Hour)
	var inside atomic.Int32
	client := i.client(t, func(ctx context.Context, now time.Time) (Token, error) {
		assert.EqualValues(t, 1, inside.Add(1), "one at a time")
		defer inside.Add(-1)
		return i.token(ctx, now)
	})
	for n, wait := range []time.Duration{0, 55 * time.Minute, 2 * time.Hour} { // the first, before its end, after its end
		i.clock.Advance(wait)
		var calls sync.WaitGroup
		for range 50 {
			calls.Go(func() {
				_, err := client.Get(t.Context(), "/", nil)
				assert.NoError(t, err)
			})
		}
		calls.Wait()
		require.Len(t, i.asked, n+1)
	}
}

func TestAClockThatIsSetBackHasTheTokenRenewed(t *testing.T) {
	i := newIssuer(time.Hour)
	client := i.client(t, i.token)
	get := func(want string) {
		_, err := client.Get(t.Context(), "/", nil)
		require.NoError(t, err)
		require.Equal(t, want, i.last())
	}
	get("token-0001")
	i.clock.Jump(-time.Second)
	get("token-0002")
	get("token-0002")
	i.clock.Jump(-100 * 24 * time.Hour)
	i.fails(errors.New("no"))
	get("token-0002") // which may hold for all that is known
	i.fails(nil)
	i.clock.Advance(30 * time.Second)
	get("token-0002")
	i.clock.Jump(2 * 100 * 24 * time.Hour)
	get("token-0004")
	i.clock.Suspend(2*time.Hour, false)
	get("token-0005")
}

func TestATokenThatCannotBeSentIsRefused(t *testing.T) {
	for want, give := range map[string]func(time.Time) Token{
		"expired already": func(now time.Time) Token { return Token{Secret: "token-0001", Expiry: now} },
		"at 1969-12-31":   func(time.Time) Token { return Token{Secret: "token-0001", Expiry: time.Unix(-1, 0)} },
		"is empty":        func(now time.Time) Token { return Token{Secret: " \n", Expiry: now.Add(time.Hour)} },
		"line break":      func(now time.Time) Token { return Token{Secret: "a\nb", Expiry: now.Add(time.Hour)} },
	} {
		i := newIssuer(0)
		client := i.client(t, func(_ context.Context, now time.Time) (Token, error) { return give(now), nil })
		_, err := client.Get(t.Context(), "/", nil)
		require.Equal(t, jobpoll.ErrorAuth, kindOf(err), want)
		require.ErrorContains(t, err, want)
		require.Empty(t, i.sent)
	}
}

func TestARefusedTokenIsMintedAnew(t *testing.T) {
	i := newIssuer(time.Hour)
	client := i.client(t, i.token)
	_, err := client.Get(t.Context(), "/", nil)
	require.NoError(t, err)
	require.NoError(t, client.Refresh(t.Context()))
	_, err = client.Get(t.Context(), "/", nil)
	require.NoError(t, err)
	require.Equal(t, "token-0002", i.last())
}

// A call hides the token that it carried, though another is in use by then.
func TestACallHidesTheTokenThatItCarried(t *testing.T) {
	i := newIssuer(time.Hour)
	client := i.client(t, i.token)
	began, goOn := make(chan struct{}), make(chan struct{})
	slow := kitServer(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/slow" {
			close(began)
			<-goOn
		}
		http.Error(w, "I do not like "+r.Header.Get("Authorization"), http.StatusBadRequest)
	})
	client.prefix, client.base = slow.prefix, slow.base
	done := make(chan error, 1)
	go func() {
		_, err := client.Get(t.Context(), "/slow", nil)
		done <- err
	}()
	<-began
	require.NoError(t, client.Refresh(t.Context()))
	_, err := client.Get(t.Context(), "/", nil)
	require.ErrorContains(t, err, "I do not like Bearer …")
	require.NotContains(t, err.Error(), "token-0002")
	close(goOn)
	err = <-done
	require.ErrorContains(t, err, "I do not like Bearer …")
	require.NotContains(t, err.Error(), "token-0001")
}

func TestATokenIsNotPrinted(t *testing.T) {
	tok := Token{Secret: kitKey, Expiry: time.Unix(1<<30, 0).UTC()}
	keys := KlingTokens("access-0123456789", kitKey)
	_, err := NewClient(Config{BaseURL: "x", Tokens: keys, Credentials: Secret(kitKey)})
	require.ErrorContains(t, err, "not both")
	var log strings.Builder
	asJSON := slog.New(slog.NewJSONHandler(&log, nil))
	plain := slog.New(slog.NewTextHandler(&log, nil))
	for _, v := range []any{tok, &tok, []Token{tok}, keys, Config{Tokens: keys}, err} {
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
			fmt.Fprintf(&log, verb+"\n", v)
		}
		asJSON.Info("x", "v", v)
		plain.Info("x", "v", v)
	}
	require.NotContains(t, log.String(), kitKey)
	require.NotContains(t, strings.ToLower(log.String()), fmt.Sprintf("%x", kitKey))
	require.Equal(t, "provider.Token(…, 2004-01-10T13:37:04Z)", fmt.Sprint(tok))
}

func TestEmptyKeysOfATokenAreRefusedAtOnce(t *testing.T) {
	for _, keys := range []TokenSource{KlingTokens("", "s"), KlingTokens("a", ""), KlingTokens(" ", "\n")} {
		_, err := NewKling(Config{Tokens: keys})
		require.ErrorContains(t, err, "jobpoll: provider.Config.Tokens: the secret is empty")
		_, err = keys(t.Context(), time.Time{})
		require.ErrorContains(t, err, "the secret is empty", "where it is called all the same")
	}
	_, err := NewKling(Config{})
	require.ErrorContains(t, err, "Credentials is nil, and so is Tokens")
	_, err = NewKling(Config{Tokens: KlingTokens("a", "s")})
	require.NoError(t, err)
}

// A monotonic reading stands still while a machine is suspended.
func TestTheEndOfATokenIsOneOfTheWallClock(t *testing.T) {
	cfg := Config{Clock: jobpoll.SystemClock(), Tokens: KlingTokens("a", "s")}
	v := newVault(&cfg)
	_, err := v.get(t.Context())
	require.NoError(t, err)
	k := v.current.Load()
	for _, at := range []time.Time{v.now(), k.asked, k.due, k.expiry} {
		require.Equal(t, at.Round(0), at, "it has a monotonic part")
	}
}
