package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync/atomic"

	"github.com/jobpoll/jobpoll"
)

// Handler takes deliveries and hands them over as notices. It is an http.Handler
// for all of its routes; other paths are answered by 404. It is safe for
// concurrent use.
type Handler struct {
	cfg    Config
	mux    *http.ServeMux
	held   held
	routes []*mounted
}

// mounted is a Route that is served.
type mounted struct {
	Route
	h      *Handler
	counts [results]atomic.Uint64
	said   [results]lastLine
}

// New makes a Handler. It copies cfg and reports all faults joined; it starts
// nothing.
func New(cfg Config) (*Handler, error) {
	f := &faults{what: "webhook.Config"}
	h := &Handler{cfg: cfg.withDefaults(f), mux: http.NewServeMux()}
	h.held.most = h.cfg.MaxHeld
	for i, rt := range cfg.Routes {
		at := fmt.Sprintf("Routes[%d]", i)
		before := len(f.all)
		rt.check(f, at, len(cfg.Routes) == 1)
		if rt.Path == "" {
			rt.Path = "/"
		}
		m := &mounted{Route: rt, h: h}
		h.routes = append(h.routes, m)
		if len(f.all) == before {
			f.at(at+".Path", handle(h.mux, rt.Path, m))
		}
	}
	h.cfg.Routes = nil // they are copied
	if err := f.join(); err != nil {
		return nil, err
	}
	return h, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// Count is how many requests for the routes of that name came to a Result.
func (h *Handler) Count(name string, r Result) (n uint64) {
	for _, m := range h.routes {
		if m.Name == name {
			n += m.counts[r.known()].Load()
		}
	}
	return n
}

// ServeHTTP answers one request for the route.
func (m *mounted) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := m.h.cfg.Clock.Now()
	e := Event{Route: m.Name}
	var answer []byte
	release := func() {}
	switch r.Method {
	case http.MethodPost:
		in := m.h.readBody(w, r)
		release = in.release
		defer release()
		e.Result, e.Err, e.Bytes = in.result, in.err, len(in.body)
		if in.err == nil {
			answer = m.deliver(r, in.body, &e)
		}
	case http.MethodGet, http.MethodHead:
		e.Result = ResultProbed
	default:
		e.Result, e.Err = ResultMethod, errors.New("the method is not POST")
	}
	m.counts[e.Result].Add(1) // before the sender can know
	if e.Result == ResultIgnored && m.Other != nil {
		m.Other.ServeHTTP(w, r)
	} else {
		// Before the sender can know, and before a Hook that takes its time.
		r.Body = http.NoBody
		release()
		m.answer(w, r, e.Result, answer)
	}
	e.Took = m.h.cfg.Clock.Now().Sub(begun)
	m.tell(r.Context(), e)
}

// answer writes what the sender gets, and sees that it is on its way where a
// Hook might keep it waiting.
func (m *mounted) answer(w http.ResponseWriter, r *http.Request, res Result, body []byte) {
	head := w.Header()
	switch {
	case len(body) > 0:
		head.Set("Content-Type", "application/json")
		head.Set("X-Content-Type-Options", "nosniff")
	case res == ResultMethod:
		head.Set("Allow", "GET, HEAD, POST")
	case res == ResultEncoded:
		head.Set("Accept-Encoding", "identity")
	}
	if !res.readAll() && r.ProtoMajor == 1 {
		head.Set("Connection", "close") // rather than to read the rest
	}
	head.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(res.Status())
	_, _ = w.Write(body) // the sender may be gone
	if m.h.cfg.Hook != nil {
		_ = http.NewResponseController(w).Flush()
	}
}

// deliver takes a delivery as far as it goes, and gives the body of the answer.
func (m *mounted) deliver(r *http.Request, body []byte, e *Event) (answer []byte) {
	defer func() {
		if v := recover(); v != nil {
			e.Result, e.Err = ResultPanicked, fmt.Errorf("a panic: %s", jobpoll.Excerpt(fmt.Sprint(v)))
		}
	}()
	proof, err := m.Verifier.Verify(r, body)
	if err != nil {
		e.Result, e.Err = ResultRefused, err
		if errors.Is(err, ErrUnavailable) {
			e.Result = ResultUnavailable
		}
		return nil
	}
	if m.Challenge != nil {
		if answer, ok := m.Challenge(body); ok {
			e.Result = ResultChallenged
			return answer
		}
	}
	n, err := m.Parse(body, r.Header)
	if err != nil {
		e.Result, e.Err = ResultUnreadable, err
		return nil
	}
	m.complete(&n, proof, r)
	e.Key, e.ClientKey, e.EventID, e.Trust = n.Key, n.ClientKey, n.EventID, n.Trust
	if n.Key.ID == "" && n.ClientKey == "" {
		e.Result = ResultIgnored
		return nil
	}
	e.Result = ResultTaken
	if e.Err = m.h.notify(r.Context(), n); e.Err != nil {
		e.Result = ResultNotTaken
	}
	return nil
}

// maxClientKey bounds a ClientKey of the URL, in bytes; a longer one is none.
const maxClientKey = 1 << 10

// complete fills in what the parser does not know.
func (m *mounted) complete(n *jobpoll.Notice, proof Proof, r *http.Request) {
	n.Key.Route = m.Name
	if proof.EventID != "" {
		n.EventID = proof.EventID
	}
	if !proof.Body || m.Trust != jobpoll.TrustAuthoritative {
		n.Trust = jobpoll.TrustHint
	}
	if m.ClientKey != "" && n.ClientKey == "" {
		key := cmp.Or(r.PathValue(m.ClientKey), r.URL.Query().Get(m.ClientKey))
		if len(key) <= maxClientKey {
			n.ClientKey = key
		}
		if n.Key.ID == "" { // no signature says that it is about this job
			n.Trust = jobpoll.TrustHint
		}
	}
}

var errNotifySlow = fmt.Errorf("the notice was not taken over within Config.NotifyTimeout: %w", context.DeadlineExceeded)

// notify hands a notice over. That the sender hangs up does not end it: what is
// stored half would have to be stored again.
func (h *Handler) notify(ctx context.Context, n jobpoll.Notice) error {
	ctx = context.WithoutCancel(ctx)
	if h.cfg.NotifyTimeout > 0 {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		defer h.cfg.Clock.AfterFunc(h.cfg.NotifyTimeout, func() { cancel(errNotifySlow) }).Stop()
	}
	return h.cfg.Notifier.Notify(ctx, n)
}
