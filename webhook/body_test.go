package webhook_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll/webhook"
)

// B56: the bytes as they were sent are what is signed.
func TestTheRawBodyIsVerified(t *testing.T) {
	const body = `{"b":1, "a":"\u00e9"}`
	var seen string
	rig := newHookRig(t, func(c *webhook.Config) {
		c.MaxBody = 64
		c.Routes[0].Other = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, err := io.ReadAll(r.Body)
			require.NoError(t, err)
			seen = string(b)
			w.WriteHeader(http.StatusAccepted)
		})
	})
	require.Equal(t, 202, rig.do(rig.post(body)).status)
	require.Equal(t, body, seen)

	changed := rig.post(body)
	other := strings.Replace(body, " ", "", 1)
	changed.Body, changed.ContentLength = io.NopCloser(strings.NewReader(other)), int64(len(other))
	require.Equal(t, 401, rig.do(changed).status)

	require.Equal(t, 413, rig.do(rig.post(body+strings.Repeat(" ", 64))).status)
	require.Equal(t, webhook.ResultTooLarge, rig.last(3).Result)
	require.Zero(t, rig.last(3).Bytes, "it was not read")
	require.Empty(t, rig.notices.got())
}

func TestABodyOfTheLimitIsTakenAndOneMoreByteIsNot(t *testing.T) {
	rig := newHookRig(t, func(c *webhook.Config) { c.MaxBody = int64(len(hookDone)) })
	chunked := func(body string) *http.Request {
		req := rig.post(body)
		req.ContentLength = -1
		return req
	}
	require.Equal(t, 200, rig.do(rig.post(hookDone)).status)
	require.Equal(t, 200, rig.do(chunked(hookDone)).status)
	require.Equal(t, 413, rig.do(rig.post(hookDone+" ")).status)
	require.Equal(t, 413, rig.do(chunked(hookDone+" ")).status)
	require.Equal(t, http.StatusOK, rig.do(rig.post(hookDone)).status)
}

// endless is a body of 100 MB that counts what was taken of it.
type endless struct{ left, taken int }

func (e *endless) Read(p []byte) (int, error) {
	n := min(len(p), e.left)
	if n == 0 {
		return 0, io.EOF
	}
	e.left -= n
	e.taken += n
	return n, nil
}

func TestABodyOf100MBIsNotRead(t *testing.T) {
	rig := newHookRig(t, nil)
	for _, length := range []int64{-1, 100 << 20} {
		body := &endless{left: 100 << 20}
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, "/hook", body)
		r.ContentLength = length
		rig.handler.ServeHTTP(w, r)
		require.Equal(t, 413, w.Code)
		require.LessOrEqual(t, body.taken, webhook.DefaultMaxBody+4096)
		require.Equal(t, "close", w.Header().Get("Connection"))
	}
}

func TestACompressedBodyIsRefusedAndNotUnpacked(t *testing.T) {
	var bomb bytes.Buffer
	z := gzip.NewWriter(&bomb)
	_, _ = z.Write(make([]byte, 2<<20))
	require.NoError(t, z.Close())
	rig := newHookRig(t, nil)
	req := rig.post(bomb.String())
	req.Header.Set("Content-Encoding", "gzip")
	got := rig.do(req)
	require.Equal(t, 415, got.status)
	require.Equal(t, "identity", got.header.Get("Accept-Encoding"))
	require.Zero(t, rig.last(1).Bytes)
	req = rig.post(hookDone)
	req.Header.Set("Content-Encoding", "identity")
	require.Equal(t, 200, rig.do(req).status)
}

func TestABodyThatIsNothingIsAnsweredBy400(t *testing.T) {
	rig := newHookRig(t, nil)
	for _, body := range []string{"", "not JSON", `{"id":"rp-1","status":"succ`, strings.Repeat("[", 500_000), `{"a":` + strings.Repeat(`{"a":`, 100_000), "\xff\xfe", `[1]`, `"text"`} {
		require.Equal(t, 400, rig.do(rig.post(body)).status, "%.20s", body)
	}
	require.Equal(t, 200, rig.do(rig.post(`{"type":"ping"}`)).status, "about no job")
	require.Equal(t, webhook.ResultIgnored, rig.last(9).Result)
	require.Empty(t, rig.notices.got())
}

func TestASlowBodyIsGivenUpOnTheClock(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		rig := newHookRig(t, nil)
		if http2 {
			rig.server.Close()
			rig.server = httptest.NewUnstartedServer(rig.handler)
			rig.server.EnableHTTP2 = true
			rig.server.StartTLS()
			t.Cleanup(rig.server.Close)
		}
		body, feed := io.Pipe()
		t.Cleanup(func() { _ = feed.Close() }) // before the server, which waits for its handlers
		req := rig.post(hookDone)
		req.Body, req.ContentLength = body, -1
		status := make(chan int, 1)
		go func() { status <- rig.do(req).status }()
		_, err := feed.Write([]byte(hookDone[:10]))
		require.NoError(t, err)
		require.Eventually(t, func() bool { return rig.clock.Timers() > 0 }, 10*time.Second, time.Millisecond)
		rig.clock.Advance(10 * time.Second)
		require.Equal(t, 408, <-status)
		require.Equal(t, webhook.ResultBroken, rig.last(1).Result)
		_ = feed.Close()
		require.Equal(t, 200, rig.do(rig.post(hookDone)).status, "what comes after it is taken")
	}
}

func TestBodiesInHandAreBoundedOverAllSenders(t *testing.T) {
	rig := newHookRig(t, func(c *webhook.Config) { c.MaxBody, c.MaxHeld = 1000, 1500 })
	body, feed := io.Pipe()
	t.Cleanup(func() { _ = feed.Close() }) // before the server, which waits for its handlers
	slow := rig.post(strings.Repeat(" ", 900))
	slow.Body, slow.ContentLength = body, -1
	status := make(chan int, 1)
	go func() { status <- rig.do(slow).status }()
	_, err := feed.Write([]byte(strings.Repeat(" ", 800)))
	require.NoError(t, err)
	big := hookDone + strings.Repeat(" ", 900-len(hookDone))
	require.Eventually(t, func() bool { return rig.do(rig.post(big)).status == 503 }, 10*time.Second, time.Millisecond)
	require.Equal(t, 200, rig.do(rig.post(hookDone)).status, "a small one still fits")
	_, err = feed.Write([]byte(strings.Repeat(" ", 100)))
	require.NoError(t, err)
	require.NoError(t, feed.Close())
	require.Equal(t, 400, <-status)
	require.Equal(t, 200, rig.do(rig.post(big)).status, "there is room again")
}
