package webhook

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

var (
	errBusy    = errors.New("too many bytes of bodies are in hand")
	errTooSlow = errors.New("the body did not come in time")
	errEncoded = errors.New("the body is compressed, and what is signed is not known")
)

// held counts the bytes of bodies that are in hand.
type held struct {
	most int64
	now  atomic.Int64
}

// heldReader takes what it reads into account.
type heldReader struct {
	io.Reader
	held *held
	own  int64
}

func (r *heldReader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.own += int64(n)
	if r.held.now.Add(int64(n)) > r.held.most {
		return n, errBusy
	}
	return n, err
}

// release gives back what was taken; a second one does nothing.
func (r *heldReader) release() {
	r.held.now.Add(-r.own)
	r.own = 0
}

// intake is a body that was read, or what came of it.
type intake struct {
	body    []byte
	result  Result // ResultUnknown: all is well so far
	err     error
	release func() // must be called when the bytes are no longer in use
}

// readBody reads the body once, into memory and to a bound, and gives back what
// it has read for others to read again.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) intake {
	nothing := func() {}
	if e := r.Header.Values("Content-Encoding"); len(e) > 1 || len(e) == 1 && e[0] != "" && !strings.EqualFold(e[0], "identity") {
		return intake{result: ResultEncoded, err: errEncoded, release: nothing}
	}
	if r.ContentLength > h.cfg.MaxBody {
		return intake{result: ResultTooLarge, err: &http.MaxBytesError{Limit: h.cfg.MaxBody}, release: nothing}
	}
	if r.Body == nil { // as no server gives it
		r.Body = http.NoBody
	}
	src := &heldReader{Reader: http.MaxBytesReader(w, r.Body, h.cfg.MaxBody), held: &h.held}
	ended := h.limitRead(w)
	var b bytes.Buffer
	if n := r.ContentLength; n > 0 {
		b.Grow(int(min(n, 16<<10)) + bytes.MinRead) // a promise is not held memory
	}
	_, err := b.ReadFrom(src)
	if late := ended(); late && err != nil {
		err = errTooSlow
	}
	r.Body = io.NopCloser(bytes.NewReader(b.Bytes()))
	in := intake{body: b.Bytes(), err: err, release: src.release}
	var tooLarge *http.MaxBytesError
	switch {
	case err == nil:
	case errors.As(err, &tooLarge):
		in.result = ResultTooLarge
	case errors.Is(err, errBusy):
		in.result = ResultBusy
	default:
		in.result = ResultBroken
	}
	return in
}

// limitRead ends the reading of a body that takes too long. What it returns
// must be called when that is over, and tells whether it came to this.
func (h *Handler) limitRead(w http.ResponseWriter) (ended func() (late bool)) {
	if h.cfg.BodyTimeout < 0 {
		return func() bool { return false }
	}
	fired := make(chan struct{})
	timer := h.cfg.Clock.AfterFunc(h.cfg.BodyTimeout, func() {
		defer close(fired)
		// An instant that is past, whatever the clock. It has no effect where the
		// writer cannot do it.
		_ = http.NewResponseController(w).SetReadDeadline(time.Unix(1, 0))
	})
	return func() bool {
		if timer.Stop() {
			return false
		}
		<-fired // the writer must not be used once the handler has returned
		return true
	}
}
