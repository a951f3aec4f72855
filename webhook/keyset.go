package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jobpoll/jobpoll"
)

// Defaults of KeySetConfig.
const (
	DefaultKeyTimeout = 3 * time.Second
	// DefaultKeyAge is the most that fal and Atlas Cloud allow.
	DefaultKeyAge   = 24 * time.Hour
	DefaultKeyFloor = time.Minute
)

// Where providers publish the keys of their signatures.
const (
	FalKeysURL    = "https://rest.fal.ai/.well-known/jwks.json"
	AtlasKeysURL  = "https://api.atlascloud.ai/api/v1/webhooks/jwks.json"
	GeminiKeysURL = "https://generativelanguage.googleapis.com/.well-known/jwks.json"
)

// KeySetConfig says where the public keys of a provider are.
type KeySetConfig struct {
	// URL is the address of the JSON Web Key Set: https, or http of the own
	// machine. Required.
	URL string
	// HTTP is the caller's client; its Transport, Jar and Timeout are used, and no
	// redirect is followed. Nil: one with a transport of its own.
	HTTP *http.Client
	// Timeout bounds one fetch, on Clock. Zero: 3 s. Negative is refused.
	Timeout time.Duration
	// MaxAge is how long keys are used before they are fetched anew. Zero: a day.
	// Negative is refused.
	MaxAge time.Duration
	// Floor is the least time from one fetch to the next, whatever is sent. While
	// there is no key at all it is 5 s at the most. Zero: a minute. Negative is
	// refused.
	Floor time.Duration
	// Clock is what ages are measured on. Nil: package time.
	Clock jobpoll.Clock
}

// KeySet is the public keys of a provider, fetched when they are needed: before
// the first verification, when they are older than MaxAge, and when a signature
// belongs to none of them, as they may have been exchanged. Callers that need a
// fetch at the same time share one; none of them ends it for the others. When it
// fails, the old keys stay.
//
// A document of more than 256 KiB or 32 keys is refused, as is one without a
// key that can be used. RSA keys of less than 2048 bits, and points of Ed25519
// that anybody can sign for, are left out.
//
// It is safe for concurrent use, and may serve several Verifiers.
type KeySet struct {
	name
	cfg    KeySetConfig
	client *http.Client
	held   atomic.Pointer[heldKeys]

	mu      sync.Mutex
	flight  *flight // the fetch under way, nil if there is none
	tried   bool
	triedAt time.Time
	lastErr error // of the last fetch
}

// heldKeys are the keys of one fetch.
type heldKeys struct {
	keys []publicKeyOf
	at   time.Time
}

// flight is one fetch; held and err are set when done is closed.
type flight struct {
	done chan struct{}
	held *heldKeys
	err  error
}

// coldFloor is the floor while there is no key.
const coldFloor = 5 * time.Second

// NewKeySet makes a KeySet, and reports all faults of cfg joined. It fetches nothing.
func NewKeySet(cfg KeySetConfig) (*KeySet, error) {
	f := &faults{what: "NewKeySet"}
	f.at("URL", checkKeysURL(cfg.URL))
	if cfg.Timeout < 0 {
		f.add("Timeout", "%v is negative", cfg.Timeout)
	}
	if cfg.MaxAge < 0 {
		f.add("MaxAge", "%v is negative", cfg.MaxAge)
	}
	if cfg.Floor < 0 {
		f.add("Floor", "%v is negative", cfg.Floor)
	}
	if err := f.join(); err != nil {
		return nil, err
	}
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultKeyTimeout)
	cfg.MaxAge = cmp.Or(cfg.MaxAge, DefaultKeyAge)
	cfg.Floor = cmp.Or(cfg.Floor, DefaultKeyFloor)
	if cfg.Clock == nil {
		cfg.Clock = jobpoll.SystemClock()
	}
	client := &http.Client{}
	if cfg.HTTP != nil {
		*client = *cfg.HTTP
	}
	if client.Transport == nil {
		client.Transport = keysTransport()
	}
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &KeySet{name: "webhook.KeySet", cfg: cfg, client: client}, nil
}

// keysTransport keeps no connection for a fetch a day.
func keysTransport() http.RoundTripper {
	t, ok := http.DefaultTransport.(*http.Transport)
	if !ok {
		return http.DefaultTransport // replaced by the program
	}
	t = t.Clone()
	t.DisableKeepAlives = true
	t.MaxResponseHeaderBytes = 64 << 10
	return t
}

// checkKeysURL refuses what keys cannot be trusted from.
func checkKeysURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return errors.New("it is empty")
	case err != nil, u.Hostname() == "":
		return errors.New("it is no URL") // the error would show it, and what stands in it
	case u.User != nil:
		return errors.New("it holds a user, and public keys need none")
	case u.Scheme == "https", u.Scheme == "http" && ownMachine(u.Hostname()):
		return nil
	}
	return errors.New("it needs https, but for the own machine: whoever can change the keys can sign")
}

func ownMachine(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// keys gives the keys to verify with. An error matches ErrUnavailable.
func (s *KeySet) keys(ctx context.Context) (*heldKeys, error) {
	held := s.held.Load()
	if held != nil && within(s.cfg.Clock.Now(), held.at, s.cfg.MaxAge) {
		return held, nil
	}
	if fresh, err := s.fetch(ctx); err == nil {
		return fresh, nil
	} else if held == nil {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	return held, nil
}

// newer gives keys that came after those that a signature belongs to none of;
// nil if there are none.
func (s *KeySet) newer(ctx context.Context, than *heldKeys) (*heldKeys, error) {
	if held := s.held.Load(); held != than {
		return held, nil
	}
	fresh, err := s.fetch(ctx)
	if err == errFloor {
		return nil, nil
	}
	return fresh, err
}

// within reports whether now is less than d after at; a clock that went back
// says nothing.
func within(now, at time.Time, d time.Duration) bool {
	age := now.Sub(at)
	return age >= 0 && age < d
}

var errFloor = errors.New("they were fetched a moment ago")

// fetch takes part in the fetch under way, or begins one. Where the floor does
// not allow one it gives the error of the last, errFloor if that went well.
func (s *KeySet) fetch(ctx context.Context) (*heldKeys, error) {
	f, err := s.join()
	if err != nil {
		return nil, err
	}
	select {
	case <-f.done:
		return f.held, f.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (s *KeySet) join() (*flight, error) {
	now := s.cfg.Clock.Now()
	floor := s.cfg.Floor
	if s.held.Load() == nil {
		floor = min(floor, coldFloor)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.flight != nil {
		return s.flight, nil
	}
	if s.tried && within(now, s.triedAt, floor) {
		if s.lastErr != nil {
			return nil, s.lastErr
		}
		return nil, errFloor
	}
	s.tried, s.triedAt = true, now
	f := &flight{done: make(chan struct{})}
	s.flight = f
	go s.fly(f)
	return f, nil
}

// fly makes a fetch, for all who wait for it and on the time of none.
func (s *KeySet) fly(f *flight) {
	f.err = errors.New("the transport ended the goroutine of the fetch")
	defer func() {
		if v := recover(); v != nil {
			f.err = errors.New("the transport panicked")
		}
		if f.held != nil {
			s.held.Store(f.held)
		}
		s.mu.Lock()
		s.flight, s.lastErr = nil, f.err
		s.mu.Unlock()
		close(f.done)
	}()
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	timer := s.cfg.Clock.AfterFunc(s.cfg.Timeout, func() { cancel(context.DeadlineExceeded) })
	defer timer.Stop()
	keys, err := s.get(ctx)
	if err != nil {
		f.err = err
		return
	}
	f.held, f.err = &heldKeys{keys: keys, at: s.cfg.Clock.Now()}, nil
}

// get reads the document once.
func (s *KeySet) get(ctx context.Context) ([]publicKeyOf, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.cfg.URL, nil)
	if err != nil {
		return nil, errors.New("no request can be made for them")
	}
	req.Header.Set("Accept", "application/jwk-set+json, application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, fmt.Errorf("no answer from where they are: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("status %d from where they are", resp.StatusCode)
	}
	doc, err := io.ReadAll(io.LimitReader(resp.Body, maxKeySet+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading them: %w", err)
	case len(doc) > maxKeySet:
		return nil, fmt.Errorf("more than %d bytes from where they are", maxKeySet)
	}
	keys, err := parseKeySet(doc)
	if err != nil {
		return nil, fmt.Errorf("what is there: %w", err)
	}
	return keys, nil
}
