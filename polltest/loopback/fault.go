package loopback

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/jobpoll/jobpoll/polltest"
)

// Fault says how the answer to one request is broken. The zero Fault does
// nothing.
type Fault struct {
	// Kind is how the answer is broken; empty: not at all. A script has them too:
	// "at 8s broken html once".
	Kind polltest.Fault
	// Status, if not zero, answers with that status and an error of the
	// provider's shape.
	Status int
	// RetryAfter is the wait told with Status; zero: none.
	RetryAfter time.Duration
	// Slow is how long the answer waits on the server's clock after the request
	// took effect.
	Slow time.Duration
	// Before makes the fault stand in the place of what was asked for: a
	// submission makes no job, say. Without it the request takes effect and only
	// its answer is broken.
	Before bool
}

const (
	hugeMember   = 10 << 20
	nestedLevels = 100_000
	badGateway   = "<html>\r\n<head><title>502 Bad Gateway</title></head>\r\n<body>\r\n<center><h1>502 Bad Gateway</h1></center>\r\n</body>\r\n</html>\r\n"
)

// send sends the answer, broken or not.
func (s *Server) send(w http.ResponseWriter, r *http.Request, rec *Request, a outcome) {
	body := encode(a.Body)
	h := w.Header()
	for name, values := range a.Header {
		h[http.CanonicalHeaderKey(name)] = values
	}
	h.Set("Date", s.clock.Now().UTC().Format(http.TimeFormat))
	if a.Body != nil && h.Get("Content-Type") == "" {
		h.Set("Content-Type", "application/json")
	}
	switch a.fault {
	case polltest.FaultHTML:
		a.Status, body = http.StatusBadGateway, []byte(badGateway)
		h.Set("Content-Type", "text/html")
	case polltest.FaultGzip:
		h.Set("Content-Encoding", "gzip")
	case polltest.FaultRedirect:
		a.Status, body = http.StatusFound, nil
		h.Set("Location", s.elsewhere(r))
	case polltest.FaultRedirectLoop:
		a.Status, body = http.StatusFound, nil
		h.Set("Location", r.URL.RequestURI())
	case polltest.FaultType:
		h.Set("Content-Type", "text/plain; charset=utf-8")
	case polltest.FaultEmpty:
		a.Status, body = http.StatusOK, nil
	case polltest.FaultHuge:
		body = extended(body, `"`+strings.Repeat("x", hugeMember)+`"`)
	case polltest.FaultNested:
		body = extended(body, strings.Repeat("[", nestedLevels)+strings.Repeat("]", nestedLevels))
	}
	if a.fault != polltest.FaultHang {
		s.mu.Lock()
		rec.Status = a.Status
		s.mu.Unlock()
	}
	switch a.fault {
	case polltest.FaultReset:
		s.reset(w, a.Status, body)
	case polltest.FaultHang:
		select {
		case <-r.Context().Done():
		case <-s.ctx.Done():
		}
		panic(http.ErrAbortHandler)
	case polltest.FaultEndless:
		w.WriteHeader(a.Status)
		s.endless(w, r)
	case polltest.FaultCut:
		h.Set("Content-Length", strconv.Itoa(len(body)+1))
		w.WriteHeader(a.Status)
		_, _ = w.Write(body[:len(body)/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	default:
		h.Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(a.Status)
		_, _ = w.Write(body)
	}
}

// elsewhere is the same place on another host.
func (s *Server) elsewhere(r *http.Request) string {
	host := s.cfg.RedirectHost
	if host == "" {
		_, port, err := net.SplitHostPort(r.Host)
		if err != nil {
			port = "80"
		}
		host = net.JoinHostPort("localhost", port)
	}
	return "http://" + host + r.URL.RequestURI()
}

// reset breaks off within the body. A connection that is reset before the first
// byte of an answer makes some clients repeat the request by themselves.
func (s *Server) reset(w http.ResponseWriter, status int, body []byte) {
	conn, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	_, _ = fmt.Fprintf(buffered, "HTTP/1.1 %d %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
		status, http.StatusText(status), len(body)+1, body[:len(body)/2])
	_ = buffered.Flush()
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0) // Close sends RST
	}
	_ = conn.Close()
}

// endless sends a text of JSON until the client leaves or the server closes.
func (s *Server) endless(w http.ResponseWriter, r *http.Request) {
	chunk := bytes.Repeat([]byte("x"), 32<<10)
	_, err := w.Write([]byte(`{"text":"`))
	for err == nil && r.Context().Err() == nil && s.ctx.Err() == nil {
		_, err = w.Write(chunk)
	}
	panic(http.ErrAbortHandler)
}

// encode writes JSON as providers do, without HTML escapes.
func encode(v any) []byte {
	switch v := v.(type) {
	case nil:
		return nil
	case []byte:
		return v
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("loopback: a Wire's answer is no JSON: %v", err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// extended puts one more member at the begin of an object.
func extended(object []byte, value string) []byte {
	rest, ok := bytes.CutPrefix(object, []byte("{"))
	if !ok {
		return []byte(value)
	}
	sep := ","
	if bytes.HasPrefix(rest, []byte("}")) {
		sep = ""
	}
	return append([]byte(`{"padding":`+value+sep), rest...)
}
