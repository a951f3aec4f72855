package provider

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

// rawServer answers each request by what serve writes to the connection, which
// stays open until the client or the test leaves where serve does not close it.
func rawServer(t testing.TB, serve func(conn net.Conn, r *http.Request)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
			go func() {
				in := bufio.NewReader(conn)
				for {
					r, err := http.ReadRequest(in)
					if err != nil {
						_ = conn.Close()
						return
					}
					_, _ = io.Copy(io.Discard, r.Body)
					serve(conn, r)
				}
			}()
		}
	}()
	return "http://" + l.Addr().String()
}

// rawly writes a text and closes.
func rawly(parts ...string) func(net.Conn, *http.Request) {
	return func(conn net.Conn, _ *http.Request) {
		for _, p := range parts {
			_, _ = io.WriteString(conn, p)
		}
		_ = conn.Close()
	}
}

const (
	goodHead = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
	goodBody = `{"id":"x","status":"processing","data":{"id":"x","status":"processing"}}`
)

// squeezed is gzip of gzip, n times.
func squeezed(b []byte, n int) string {
	for range n {
		var z bytes.Buffer
		w := gzip.NewWriter(&z)
		_, _ = w.Write(b)
		_ = w.Close()
		b = z.Bytes()
	}
	return string(b)
}

// What is no HTTP, or HTTP that means harm, is a transient error at once; nothing
// waits for the bound of a call.
func TestRawAnswersThatMeanHarmArePassingFaults(t *testing.T) {
	zip := func(n int) string {
		z := squeezed([]byte(goodBody), n)
		return fmt.Sprintf(goodHead+"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%s", len(z), z)
	}
	for name, serve := range map[string]func(net.Conn, *http.Request){
		"101": func(c net.Conn, _ *http.Request) {
			_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\n\r\n")
		},
		"101 with a protocol": func(c net.Conn, _ *http.Request) {
			_, _ = io.WriteString(c, "HTTP/1.1 101 x\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n")
		},
		"nothing":                   rawly(""),
		"HTTP/0.9":                  rawly(goodBody),
		"a status of letters":       rawly("HTTP/1.1 two OK\r\n\r\n"),
		"a negative status":         rawly("HTTP/1.1 -20 OK\r\n\r\n"),
		"status 0":                  rawly("HTTP/1.1 000 OK\r\nContent-Length: 0\r\n\r\n"),
		"status 999":                rawly("HTTP/1.1 999 OK\r\nContent-Length: 0\r\n\r\n"),
		"a status line without end": rawly("HTTP/1.1 200 "+strings.Repeat("x", 1<<20), "\r\n\r\n"),
		"a flood of 1xx":            rawly(strings.Repeat("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", 10000)),
		"a header without end":      rawly(goodHead+"X: "+strings.Repeat("x", 1<<20), "\r\n\r\n"),
		"a header without colon":    rawly(goodHead + "nonsense\r\n\r\n" + goodBody),
		"two lengths":               rawly(goodHead + "Content-Length: 5\r\nContent-Length: 6\r\n\r\n" + goodBody),
		"a negative length":         rawly(goodHead + "Content-Length: -1\r\n\r\n" + goodBody),
		"a length of letters":       rawly(goodHead + "Content-Length: 0x10\r\n\r\n" + goodBody),
		"a length too long":         rawly(goodHead + "Content-Length: 99999\r\n\r\n" + goodBody),
		"a length of an exabyte":    rawly(goodHead + "Content-Length: 1000000000000000000\r\n\r\n" + goodBody),
		"a length too short":        rawly(goodHead + "Content-Length: 10\r\n\r\n" + goodBody[:10]),
		"a chunk of nonsense":       rawly(goodHead + "Transfer-Encoding: chunked\r\n\r\nzz\r\n" + goodBody),
		"a chunk of 2^64":           rawly(goodHead + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n" + goodBody),
		"a chunk that is cut":       rawly(goodHead + "Transfer-Encoding: chunked\r\n\r\n50\r\n" + goodBody),
		"a chunk's endless line":    rawly(goodHead + "Transfer-Encoding: chunked\r\n\r\n1;" + strings.Repeat("x", 1<<20)),
		"an unknown coding":         rawly(goodHead + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
		"gzip of gzip":              func(c net.Conn, r *http.Request) { rawly(zip(3))(c, r) },
		"a trailer without end":     rawly(goodHead+"Transfer-Encoding: chunked\r\nTrailer: X\r\n\r\n"+fmt.Sprintf("%x\r\n%s\r\n0\r\n", len(goodBody), goodBody), "X: "+strings.Repeat("x", 1<<20)),
		"NDJSON":                    rawly(goodHead + "\r\n" + goodBody + "\n" + goodBody),
		"a BOM of UTF-16":           rawly(goodHead + "\r\n\xff\xfe{\x00}\x00"),
		"a place that is no URL":    rawly("HTTP/1.1 302 Found\r\nLocation: http://[::1\r\nContent-Length: 0\r\n\r\n"),
		"300":                       rawly("HTTP/1.1 300 x\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n"),
		"304":                       rawly("HTTP/1.1 304 x\r\n\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			base := rawServer(t, serve)
			for _, provider := range alikeAdapters() {
				a := newAdapterFor(t, provider, Config{BaseURL: base, Credentials: Secret(kitKey), Timeout: -1})
				told := make(chan error, 1)
				go func() {
					_, err := a.Check(t.Context(), jobpoll.Job{Route: "r", ID: "x", Ref: refFor(provider)})
					told <- err
				}()
				select {
				case err := <-told:
					var ce *jobpoll.CheckError
					if assert.ErrorAs(t, err, &ce, provider) {
						assert.Equal(t, jobpoll.ErrorTransient, ce.Kind, "%s: %v", provider, err)
						assert.Less(t, len(err.Error()), 1000)
					}
				case <-time.After(5 * time.Second):
					t.Fatalf("%s waits", provider)
				}
			}
		})
	}
}
