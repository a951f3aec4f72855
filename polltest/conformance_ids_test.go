package polltest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/jobpoll/jobpoll"
)

// confSent is a request for a job.
type confSent struct{ path, query, kind, body string }

// confAsking is the provider with an adapter that asks for a job in a way of its own,
// where it has no status URL of it.
func confAsking(ask func(id string) confSent) Adapter {
	p := confBroken(func(a *confAdapter) {
		a.request = func(ctx context.Context, job jobpoll.Job) (*http.Request, error) {
			if job.Ref != "" {
				return a.get(ctx, job)
			}
			sent := ask(job.ID)
			req, err := a.to(ctx, http.MethodGet, a.base+sent.path)
			if err != nil {
				return nil, err
			}
			if sent.query != "" {
				req.URL.RawQuery = sent.query
			}
			if sent.kind != "" {
				req.Method, req.Body, req.ContentLength = http.MethodPost, io.NopCloser(strings.NewReader(sent.body)), int64(len(sent.body))
				req.Header.Set("Content-Type", sent.kind)
			}
			return req, nil
		}
	})
	p.Method = http.MethodPost
	return p
}

func confMultipart(id string) confSent {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	_ = w.WriteField("id", id)
	_ = w.Close()
	return confSent{path: "/jobs", kind: w.FormDataContentType(), body: b.String()}
}

func TestAnIDMayBeEscapedInAnyWay(t *testing.T) {
	for name, ask := range map[string]func(id string) confSent{
		"each byte of the path": func(id string) confSent {
			path := "/jobs/"
			for _, b := range []byte(id) {
				path += fmt.Sprintf("%%%02x", b)
			}
			return confSent{path: path}
		},
		"in the query": func(id string) confSent {
			return confSent{path: "/jobs", query: "id=" + url.QueryEscape(id)}
		},
		"in the query, spaces as %20": func(id string) confSent {
			return confSent{path: "/jobs", query: "id=" + strings.ReplaceAll(url.QueryEscape(id), "+", "%20")}
		},
		"in JSON": func(id string) confSent {
			raw, _ := json.Marshal(map[string]any{"jobs": []any{map[string]any{"id": "jobs/" + id}}})
			return confSent{path: "/jobs", kind: "application/json", body: string(raw)}
		},
		"as a name in JSON of another type": func(id string) confSent {
			raw, _ := json.Marshal(map[string]any{id: true})
			return confSent{path: "/jobs", kind: "application/vnd.acme+json", body: string(raw)}
		},
		"in a form": func(id string) confSent {
			return confSent{path: "/jobs", kind: "application/x-www-form-urlencoded", body: url.Values{"id": {id}}.Encode()}
		},
		"in a form of parts": confMultipart,
		"in a body of text": func(id string) confSent {
			return confSent{path: "/jobs", kind: "text/plain", body: id}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.NoError(t, TestChecker(confAsking(ask)))
		})
	}
}

func TestAnIDThatIsPastedIsFoundWhereverItStands(t *testing.T) {
	for name, ask := range map[string]func(id string) confSent{
		"in the path": func(id string) confSent {
			return confSent{path: "/jobs/" + id}
		},
		"in the query": func(id string) confSent {
			return confSent{path: "/jobs", query: "id=" + id}
		},
		"in the query, escaped for a path": func(id string) confSent {
			return confSent{path: "/jobs", query: "id=" + url.PathEscape(id)}
		},
		"in the path, escaped twice": func(id string) confSent {
			return confSent{path: "/jobs/" + url.PathEscape(url.PathEscape(id))}
		},
		"in JSON": func(id string) confSent {
			return confSent{path: "/jobs", kind: "application/json", body: `{"id":"` + id + `"}`}
		},
		"in JSON, escaped for a URL": func(id string) confSent {
			return confSent{path: "/jobs", kind: "application/json", body: `{"id":"` + url.QueryEscape(id) + `"}`}
		},
		"in a form": func(id string) confSent {
			return confSent{path: "/jobs", kind: "application/x-www-form-urlencoded", body: "id=" + id}
		},
		"in a form of parts, escaped for a URL": func(id string) confSent {
			return confMultipart(url.QueryEscape(id))
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, []string{"id-escaped"}, confChecks(t, TestChecker(confAsking(ask))))
		})
	}
}
