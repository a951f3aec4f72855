package provider

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

// Frames of HTTP/2, RFC 9113.
const (
	frameHeaders   = 1
	frameReset     = 3
	frameSettings  = 4
	frameGoAway    = 7
	refusedStream  = 7
	clientPreface  = 24 // bytes
	frameHeader    = 9
	noErrorAtAll   = 0
	lastStreamZero = 0
)

func frame(kind byte, stream uint32, payload ...uint32) []byte {
	b := []byte{0, 0, byte(4 * len(payload)), kind, 0}
	b = binary.BigEndian.AppendUint32(b, stream)
	for _, p := range payload {
		b = binary.BigEndian.AppendUint32(b, p)
	}
	return b
}

// goAwayServer answers the headers of each request by one frame, counts them, and
// hangs up.
func goAwayServer(t *testing.T, streams *atomic.Int32, answer func(stream uint32) []byte) (string, *http.Client) {
	certified := httptest.NewUnstartedServer(nil)
	certified.EnableHTTP2 = true
	certified.StartTLS()
	t.Cleanup(certified.Close)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: certified.TLS.Certificates, NextProtos: []string{"h2"}})
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	serve := func(conn net.Conn) {
		defer conn.Close()
		_, _ = io.CopyN(io.Discard, conn, clientPreface)
		_, _ = conn.Write(frame(frameSettings, 0))
		head := make([]byte, frameHeader)
		for {
			if _, err := io.ReadFull(conn, head); err != nil {
				return
			}
			length := int64(head[0])<<16 | int64(head[1])<<8 | int64(head[2])
			if _, err := io.CopyN(io.Discard, conn, length); err != nil {
				return
			}
			if head[3] == frameHeaders {
				streams.Add(1)
				_, _ = conn.Write(answer(binary.BigEndian.Uint32(head[5:])))
			}
		}
	}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go serve(conn)
		}
	}()
	return "https://" + l.Addr().String(), certified.Client()
}

// Over HTTP/2 a server may say that it has not looked at a request, which net/http
// then repeats. A submission may be repeated by nobody, whatever the server says.
func TestASubmissionGoesOutOnceWhateverHTTP2SaysOfIt(t *testing.T) {
	for name, answer := range map[string]func(uint32) []byte{
		"GOAWAY":         func(uint32) []byte { return frame(frameGoAway, 0, lastStreamZero, noErrorAtAll) },
		"REFUSED_STREAM": func(stream uint32) []byte { return frame(frameReset, stream, refusedStream) },
	} {
		var streams atomic.Int32
		base, client := goAwayServer(t, &streams, answer)
		for _, adapter := range alikeAdapters() {
			streams.Store(0)
			a := newAdapterFor(t, adapter, Config{BaseURL: base, Credentials: Secret(kitKey), HTTP: client})
			_, _, err := a.Submit(t.Context(), Order{Model: "own/app", Header: http.Header{"Idempotency-Key": {"mine"}}})
			require.ErrorIs(t, err, ErrAmbiguous, "%s %s", name, adapter)
			require.EqualValues(t, 1, streams.Load(), "%s %s", name, adapter)
			client.CloseIdleConnections()
		}
		c, err := NewClient(Config{BaseURL: base, Credentials: Secret(kitKey), HTTP: client})
		require.NoError(t, err)
		streams.Store(0)
		_, err = c.Post(t.Context(), Request{URL: "/x"}, nil)
		require.ErrorIs(t, err, ErrAmbiguous, name)
		require.EqualValues(t, 1, streams.Load(), "%s, without a body", name)
	}
}

// A look is repeated by net/http while a server sends it away: that has a bound.
func TestALookThatIsSentAwayIsGivenUp(t *testing.T) {
	var streams atomic.Int32
	base, client := goAwayServer(t, &streams, func(uint32) []byte { return frame(frameGoAway, 0, lastStreamZero, noErrorAtAll) })
	for _, adapter := range alikeAdapters() {
		streams.Store(0)
		a := newAdapterFor(t, adapter, Config{BaseURL: base, Credentials: Secret(kitKey), HTTP: client, Timeout: -1})
		_, err := a.Check(t.Context(), jobpoll.Job{Route: "r", ID: "x", Ref: refFor(adapter)})
		var ce *jobpoll.CheckError
		require.ErrorAs(t, err, &ce)
		require.Equal(t, jobpoll.ErrorTransient, ce.Kind)
		require.ErrorIs(t, err, errSentAway)
		require.LessOrEqual(t, streams.Load(), int32(maxConns+1))
	}
}
