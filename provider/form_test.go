package provider

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
	"github.com/jobpoll/jobpoll/polltest/loopback"
)

// sentJSON is the body of a request as JSON. A form is an object: a text is a field
// as it is, or a list of them, and a file an object of its name, type and content.
func sentJSON(t assert.TestingT, r *http.Request, body []byte) string {
	if !strings.HasPrefix(r.Header.Get("Content-Type"), "multipart/form-data;") {
		return string(body)
	}
	again := r.Clone(r.Context())
	again.Body = io.NopCloser(bytes.NewReader(body))
	parts, err := again.MultipartReader()
	if !assert.NoError(t, err) {
		return ""
	}
	fields := map[string]any{}
	for {
		p, err := parts.NextPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if !assert.NoError(t, err) {
			return ""
		}
		raw, err := io.ReadAll(p)
		assert.NoError(t, err)
		var v any = string(raw)
		if name := p.FileName(); name != "" {
			v = map[string]string{"name": name, "type": p.Header.Get("Content-Type"), "content": string(raw)}
		}
		if before, ok := fields[p.FormName()]; ok {
			v = []any{before, v}
		}
		fields[p.FormName()] = v
	}
	text, err := json.Marshal(fields)
	assert.NoError(t, err)
	return string(text)
}

func TestAFormIsSentAsItStands(t *testing.T) {
	var sent string
	c := kitServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		assert.Equal(t, int64(len(body)), r.ContentLength)
		sent = sentJSON(t, r, body)
		fmt.Fprint(w, `{}`)
	})
	png := "\x89PNG\r\n\x1a\n"
	for _, tt := range []struct {
		form Form
		want string
	}{
		{Form{}, `{}`},
		{Form{Fields: url.Values{"b": {"2"}, "a": {"1\r\n--x", ""}}}, `{"a":["1\r\n--x",""],"b":"2"}`},
		{Form{Files: []File{{Field: "image", Name: "a b.png", Content: []byte(png)}}}, `{"image":{"name":"a b.png","type":"image/png","content":"\ufffdPNG\r\n\u001a\n"}}`},
		{Form{Files: []File{{Field: "i", Type: "image/webp", Content: []byte("x")}, {Field: "i", Content: nil}}},
			`{"i":[{"name":"i","type":"image/webp","content":"x"},{"name":"i","type":"text/plain; charset=utf-8","content":""}]}`},
		{Form{Fields: url.Values{"a\"\r\nX: 1": {"v"}}}, `{"a\"%0D%0AX: 1":"v"}`},
		{Form{Files: []File{{Field: "f", Name: "a\"\\é\r\n\r\nb", Content: []byte("{}")}}}, `{"f":{"name":"a\"\\é%0D%0A%0D%0Ab","type":"text/plain; charset=utf-8","content":"{}"}}`},
	} {
		for _, call := range []func(Request) error{
			func(r Request) error { _, err := c.Do(t.Context(), r, nil); return err },
			func(r Request) error { _, err := c.Post(t.Context(), r, nil); return err },
		} {
			require.NoError(t, call(Request{URL: "/", Body: tt.form, Header: http.Header{"Content-Type": {"text/plain"}}}))
			require.JSONEq(t, tt.want, sent)
		}
	}
}

func TestAFormThatCannotBeSentIsRefused(t *testing.T) {
	c := kitServer(t, func(http.ResponseWriter, *http.Request) { t.Error("it was sent") })
	for name, body := range map[string]any{
		"no field":          Form{Files: []File{{Name: "a.png"}}},
		"a type of no type": Form{Files: []File{{Field: "a", Type: "image/png\r\nX: 1"}}},
		"a field's NUL":     Form{Fields: url.Values{"a\x00": {"1"}}},
		"a file's field":    Form{Files: []File{{Field: "a\x1b"}}},
		"a file's name":     Form{Files: []File{{Field: "a", Name: "a\x00.png"}}},
		"a part of JSON":    map[string]any{"form": Form{}},
		"an address":        &Form{},
	} {
		_, err := c.Post(t.Context(), Request{URL: "/", Body: body}, nil)
		require.Equal(t, jobpoll.ErrorInvalid, kindOf(err), name)
		require.ErrorIs(t, err, jobpoll.ErrNotSent, name)
	}
	r, err := NewReplicate(Config{BaseURL: c.prefix, Credentials: Secret(kitKey)})
	require.NoError(t, err)
	_, _, err = r.Submit(t.Context(), Order{Model: "a/b", Input: Form{}})
	require.Equal(t, jobpoll.ErrorInvalid, kindOf(err), "a provider that takes none")
}

// Neither the Client nor net/http sends a form again, and the caller's stays as it is.
func TestAFormIsSentOnce(t *testing.T) {
	for _, name := range []string{"stability", "openai"} {
		for _, status := range []int{0, 307, 408, 409, 500, 502, 503, 200, 400, 401, 402, 413, 429} {
			var posts atomic.Int32
			c := kitServer(t, func(w http.ResponseWriter, r *http.Request) {
				if posts.Add(1); status == 0 {
					conn, _, _ := w.(http.Hijacker).Hijack()
					_ = conn.Close()
					return
				}
				w.Header().Set("Location", "/elsewhere")
				w.WriteHeader(status)
				fmt.Fprint(w, `{}`)
			})
			a := newAdapterFor(t, name, Config{BaseURL: c.prefix, Credentials: Secret(kitKey)})
			form := Form{Fields: url.Values{"seed": {"1"}}, Files: []File{{Field: "image", Content: []byte("x")}}}
			_, _, err := a.Submit(t.Context(), Order{Model: "m", Input: form, Header: http.Header{"Idempotency-Key": {"mine"}}})
			require.Error(t, err)
			require.Equal(t, status < 400 || status >= 500 || status == 408 || status == 409, errors.Is(err, ErrAmbiguous), "%s %d: %v", name, status, err)
			require.EqualValues(t, 1, posts.Load(), "%s %d", name, status)
			require.Equal(t, url.Values{"seed": {"1"}}, form.Fields)
		}
	}
}

func TestOpenAITakesAnImageWithAnOrder(t *testing.T) {
	var got json.RawMessage
	g := newWireRig(t, "openai", `queued`, func(c *loopback.Config) {
		c.Script = func(_ int, body json.RawMessage) string { got = body; return `queued` }
	})
	image := File{Field: "input_reference", Name: "a.png", Content: []byte("an image")}
	job, rep, err := g.adapter.Submit(t.Context(), Order{Model: "own/model", Input: Form{Fields: url.Values{"prompt": {"a"}}, Files: []File{image}}})
	require.NoError(t, err)
	require.Equal(t, "own/model", job.Profile)
	require.Equal(t, jobpoll.StateQueued, rep.State)
	require.JSONEq(t, `{"model":"own/model","prompt":"a","input_reference":{"name":"a.png","type":"text/plain; charset=utf-8","size":8}}`, string(got))
}
